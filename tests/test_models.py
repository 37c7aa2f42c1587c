"""The models of the benchmarks: they train, and vaccinated code computes the same, bit for bit."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.models.catalogue import KINDS

STEPS = 2


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.torch
@pytest.mark.parametrize("name", KINDS)
def test_vaccinated_training_is_the_same(name: str) -> None:
    from benchmarks.counting import executed
    from benchmarks.models.editions import NAMES, Editions
    from benchmarks.models.training import Training

    training = Training(name, STEPS)
    fresh = training.copied_state()
    batches = list(training.batches())

    def losses(steps: int) -> list[float]:
        training.restore(fresh)
        return [float(training.step(inputs, targets)) for _, inputs, targets in batches[:steps]]

    first = losses(STEPS)
    assert len(set(first)) == STEPS  # it trains
    editions = Editions(lambda: losses(1))
    gc.collect()
    gc.disable()  # what is collected may run code
    try:
        counted = {}
        for edition in NAMES:
            editions.use(edition)
            assert losses(STEPS) == first
            counted[edition] = executed(lambda _: losses(1))
    finally:
        gc.enable()
        editions.use("plain")
    assert 5 < editions.vaccinated("project") < editions.vaccinated("all")
    assert editions.vaccinated("again") == 0
    assert len(counted["plain"]) > 1000
    assert counted["plain"] == counted["project"]
    # PyTorch abandons a generator in each step: the GeneratorExit that ends it meets a barrier, and nothing else does.
    known = set(counted["plain"])
    assert [step for step in counted["all"] if step in known] == counted["plain"]
    assert len(counted["all"]) - len(counted["plain"]) < 100


@pytest.mark.torch
def test_a_resumed_run_ends_the_same(tmp_path: Path) -> None:
    from benchmarks.models.training import Training

    straight = Training("gpt2", 4)  # the one with dropout
    expected = [float(straight.step(inputs, targets)) for _, inputs, targets in straight.batches()]
    begun = Training("gpt2", 4)
    for _, inputs, targets in itertools.islice(begun.batches(), 2):
        begun.step(inputs, targets)
    begun.save(tmp_path / "checkpoint", 2)
    resumed = Training("gpt2", 4)
    done = resumed.load(tmp_path / "checkpoint")
    rest = [float(resumed.step(inputs, targets)) for _, inputs, targets in resumed.batches(done)]
    assert rest == expected[2:]
