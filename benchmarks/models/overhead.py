"""What a training step costs vaccinated, and with checkpoints instead: all in one process, in turns.

Vaccinated against plain is CPU time of the process. Checkpoints wait for the disk and write in a thread beside the
training, so that the clock on the wall is what counts for them.
"""

from __future__ import annotations

import gc
import logging
import shutil
import statistics
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.distributed import checkpoint

from benchmarks.counting import Step, executed
from benchmarks.figures import Figure
from benchmarks.models.catalogue import KINDS
from benchmarks.models.editions import Editions
from benchmarks.models.training import Training
from benchmarks.pairs import settle, somebody_answering

#: Steps of a sample, and so the longest distance of checkpoints that is measured.
STEPS = 10
EDITIONS = {"project": "scope `project`", "all": "scope `all`"}
#: Ways of checkpointing, how many steps apart.
DISTANCES = (1, STEPS)


class Sample(NamedTuple):
    """Seconds that a run of steps has taken, of the processors and on the wall."""

    cpu: float
    wall: float


class Steps:
    """A model that trains on the same batches from the same state again and again.

    Args:
        name: of the model in the catalogue.
        folder: for checkpoints.
        device: where it trains.
    """

    def __init__(self, name: str, folder: Path, device: str = "cpu") -> None:
        self.training = Training(name, STEPS, device)
        self.batches = [(inputs, targets) for _, inputs, targets in self.training.batches()]
        self.begin = self.training.copied_state()
        self.folder = folder

    def plain(self, steps: int = STEPS) -> float:
        """Train; the last loss."""
        loss = torch.zeros(())
        for inputs, targets in self.batches[:steps]:
            loss = self.training.step(inputs, targets)
        return float(loss)

    def saving(self, every: int) -> float:
        """Train, with `torch.save` after every so many steps."""
        loss = torch.zeros(())
        for number, (inputs, targets) in enumerate(self.batches, 1):
            loss = self.training.step(inputs, targets)
            if number % every == 0:
                self.training.save(self.folder / "checkpoint.pt", number)
        return float(loss)

    def saving_beside(self, every: int) -> float:
        """Train, with an asynchronous checkpoint before every so many steps; one that is not done is waited for."""
        loss = torch.zeros(())
        running: Any = None
        for number, (inputs, targets) in enumerate(self.batches):
            if number % every == 0:
                if running is not None:
                    running.result()
                place = self.folder / "beside"
                running = checkpoint.async_save(
                    self.training.state(number), checkpoint_id=place, no_dist=True
                )
            loss = self.training.step(inputs, targets)
        running.result()
        return float(loss)

    def sample(self, work: Callable[[], float]) -> Sample:
        """Bring the model back to its begin, and train."""
        self.training.restore(self.begin)
        self.plain(1)  # what the code's last exchange costs, and what the optimiser makes at its first step
        gc.collect()
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        return Sample(time.process_time() - cpu, time.perf_counter() - wall)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep to itself what checkpointing says about a process that is alone."""
    logging.disable(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


def measure(name: str, quick: bool) -> list[Figure]:
    """The figures of one model; in a process that does nothing else."""
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="checkpoints-"))
    try:
        with quiet(), somebody_answering():
            return _measure(name, Steps(name, folder), rounds=2 if quick else 9)
    finally:
        shutil.rmtree(folder)


def _measure(name: str, steps: Steps, rounds: int) -> list[Figure]:
    title = KINDS[name].title
    editions = Editions(lambda: steps.plain(1))
    figures = [_counted(title, steps, editions, edition) for edition in EDITIONS]
    samples = _samples(steps, editions, rounds)
    for edition, text in EDITIONS.items():
        figure = Figure("overhead", f"{title}, {text}", "ratio", [], plain_unit="ms")
        figure.note = f"{editions.vaccinated(edition)} of {len(editions.functions)} functions"
        for taken in samples:
            figure.values.append(taken[edition].cpu / taken["plain"].cpu)
            figure.control.append(taken["again"].cpu / taken["plain"].cpu)
            figure.plain.append(taken["plain"].cpu / STEPS * 1e3)
        figures.append(figure)
    for way, text in (("saving", "`torch.save`"), ("beside", "`async_save`")):
        for every in DISTANCES:
            ratio = Figure("checkpoints", f"{title}, {text}, every {every}", "ratio", [], plain_unit="ms")
            busy = Figure("checkpoints CPU", f"{title}, {text}, every {every}", "ratio", [], plain_unit="ms")
            cost = Figure("cost", f"{title}, {text}, every {every}", "ms", [])
            for taken in samples:
                plain = statistics.mean((taken["plain"].wall, taken["again"].wall))
                ratio.values.append(taken[f"{way}{every}"].wall / plain)
                ratio.control.append(taken["again"].wall / taken["plain"].wall)
                ratio.plain.append(plain / STEPS * 1e3)
                cost.values.append((taken[f"{way}{every}"].wall - plain) / (STEPS // every) * 1e3)
                busy.values.append(taken[f"{way}{every}"].cpu / taken["plain"].cpu)
                busy.control.append(taken["again"].cpu / taken["plain"].cpu)
            figures += [ratio, busy, cost]
    return figures


def _samples(steps: Steps, editions: Editions, rounds: int) -> list[dict[str, Sample]]:
    """Rounds of one sample of each variant, in an order that rotates."""
    works: dict[str, tuple[str, Callable[[], float]]] = {
        edition: (edition, steps.plain) for edition in ("plain", *EDITIONS, "again")
    }
    for every in DISTANCES:
        works[f"saving{every}"] = ("plain", lambda every=every: steps.saving(every))  # type: ignore[misc]
        works[f"beside{every}"] = ("plain", lambda every=every: steps.saving_beside(every))  # type: ignore[misc]
    settle()
    names = list(works)
    for name in names:
        editions.use(works[name][0])
        steps.sample(works[name][1])
    results = []
    for turn in range(rounds):
        first = turn % len(names)
        taken = {}
        for name in names[first:] + names[:first]:
            editions.use(works[name][0])
            taken[name] = steps.sample(works[name][1])
        results.append(taken)
    editions.use("plain")
    return results


def _counted(title: str, steps: Steps, editions: Editions, edition: str) -> Figure:
    """Bytecode instructions that a step executes more than plain, those of PyTorch's Python functions included."""
    plain, losses = _instructions(steps, editions, "plain")
    again, same = _instructions(steps, editions, edition)
    if losses != same:
        raise AssertionError(f"{title} gives other losses in scope {edition}")
    more = Counter(again) - Counter(plain)
    known = set(plain)
    if [step for step in again if step in known] != plain:
        raise AssertionError(f"{title} executes other instructions of its own in scope {edition}")
    note = "the same sequence"
    if more:
        note = f"the same sequence, and {len(again) - len(plain)} for a generator that PyTorch abandons"
    return Figure(
        "instructions",
        f"{title}, {EDITIONS[edition]}",
        "instructions",
        [float(len(again) - len(plain))],
        plain=[float(len(plain))],
        plain_unit="instructions",
        note=note,
    )


def _instructions(steps: Steps, editions: Editions, edition: str) -> tuple[list[Step], list[float]]:
    editions.use(edition)
    losses = []
    for _ in range(2):  # what is only done once does not count
        steps.training.restore(steps.begin)
        losses.append(steps.plain(1))
    steps.training.restore(steps.begin)
    gc.collect()
    gc.disable()  # what is collected may run code
    try:
        found = executed(lambda _: losses.append(steps.plain(1)))
    finally:
        gc.enable()
    return found, losses
