"""The models of the benchmarks: they train, and vaccinated code computes the same, bit for bit."""

from __future__ import annotations

import gc
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.figures import Figure
from benchmarks.models import arithmetic, tables
from benchmarks.models.catalogue import KINDS

STEPS = 2
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def one_thread() -> Iterator[None]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.torch
@pytest.mark.usefixtures("one_thread")
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
@pytest.mark.usefixtures("one_thread")
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


@pytest.mark.torch
@pytest.mark.slow
def test_all_ways_from_a_crash_end_the_same() -> None:
    from benchmarks.models import restoring

    found = {figure.name: figure for figure in restoring.measure("resnet18", quick=True)}
    assert (
        len(found) == 10
    )  # three in place, each from the decision and from the crash on; two anew, each with its start
    assert found["ResNet-18, from scratch"].note == "10 lost steps"
    assert found["ResNet-18, from a checkpoint"].note == "2 lost steps"
    for words in tables.IN_PLACE:
        assert found[f"ResNet-18, {words}"].median < found[f"ResNet-18, {words}, from the crash on"].median


def test_the_best_distance_of_checkpoints_loses_least() -> None:
    # sqrt(2 * 0.5 * 10000) = 100: a checkpoint's 0.5 of 100 s, and half of 100 s with 20 s more in 10000 s.
    assert arithmetic.best_interval(0.5, 10_000.0) == pytest.approx(100.0)
    assert arithmetic.share_lost(100.0, 0.5, 20.0, 10_000.0) == pytest.approx(0.012)
    for other in (90.0, 110.0):
        assert arithmetic.share_lost(other, 0.5, 20.0, 10_000.0) > 0.012
    assert arithmetic.same_loss(0.005, 0.02) == pytest.approx(0.5)


def test_speed_ups_are_told() -> None:
    times = {
        "`pass`": 8.0,
        "action, `pass`": 10.0,
        "`surgery`, `pass`": 40.0,
        "from scratch": 4000.0,
        "from a checkpoint": 3200.0,
        "from a checkpoint, to the first step": 3000.0,
    }
    figures = {
        f"GPT-2, {way}": Figure("restoring", f"GPT-2, {way}", "ms", [value]) for way, value in times.items()
    }
    # 1,372 * 8 ms are 10,976 ms, of which the start takes 3,000; (3,000 + 3,600,000) / 8 are 450,375.
    *_, row = tables.speed_up(figures)
    assert row == "| GPT-2 | 500 / 400 | 400 / 320 | 100 / 80 | 8.0 s | 450,375 |"


def test_a_page_without_a_place_for_the_tables_is_refused() -> None:
    with pytest.raises(ValueError, match="models: begin"):
        tables.document("nothing\n", {}, [])


def test_the_page_gets_the_tables_and_keeps_the_rest() -> None:
    machine = {
        "python": "3.11.7 (main)",
        "torch": "2.13.0",
        "cpu_count": 2,
        "load_average_while_measuring": "1 to 2",
    }
    page = f"before\n{tables.BEGIN}\nold\n{tables.END}\nafter\n"
    told = tables.document(page, machine, [])
    assert told.startswith(f"before\n{tables.BEGIN}\nCPython 3.11.7, PyTorch 2.13.0, 2 virtual cores ")
    assert told.endswith(f"load average 1 to 2.\n{tables.END}\nafter\n")


def gpu(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", *arguments],
        cwd=ROOT,
        env={"CUDA_VISIBLE_DEVICES": "", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_a_gpu_nothing_is_measured(tmp_path: Path) -> None:
    output = tmp_path / "gpu.json"
    assert gpu("--output", str(output)) == "There is no GPU that PyTorch can use; nothing is measured.\n"
    assert not output.exists()


@pytest.mark.torch
@pytest.mark.slow
def test_what_is_done_on_a_gpu_is_rehearsed(tmp_path: Path) -> None:
    output = tmp_path / "gpu.json"
    gpu("--rehearse", "--output", str(output), "resnet18")
    memory, project, everything = json.loads(output.read_text())["figures"]
    assert memory["note"].startswith("RuntimeError after a batch of ")
    assert [len(figure["values"]) for figure in (memory, project, everything)] == [1, 1, 1]
