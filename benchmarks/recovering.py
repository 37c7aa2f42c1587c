"""From a word at the prompt to the statement running again; each process measures a program from its first crash on.

CPU time of the process, as everywhere: what the journal waits for the disk is not in it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from benchmarks.pairs import FOLDER, Namespace, compiled, loaded
from daifu_bc.analysis import sources
from daifu_bc.recovery import policy
from daifu_bc.recovery.hold import Hold
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.rewrite.barrier import vaccinate_code

FIRST_BOUND = 10.0
AGAIN_BOUND = 1.0
SURGERY_BOUND = 20.0
PLACES = ("epoch", "batch", "with", "try", "start", "end")
SURGERIES = 100
LIVE_OBJECTS = 500_000
#: Lines that a large module has beside the function that is operated on.
MODULE_LINES = 3000

Answer = Callable[[Hold], object]


class Crash(Exception):
    """What the patient dies of."""


class Patient:
    """The training run, made to crash at places, and the time that its recovery takes.

    Args:
        path: the module's file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.source = path.read_text(encoding="utf-8")
        sources.remember(str(path), self.source.encode())  # as the importer does
        self.module: Namespace = loaded(vaccinate_code(compiled(path)), path.stem)
        self.answer: Answer = Hold.retry
        self._waiting: list[str] = []
        self._started = 0.0
        self.taken: list[float] = []
        policy.set_playbook(self._respond)

    def _respond(self, hold: HoldLike) -> None:
        assert isinstance(hold, Hold)
        self._started = time.process_time()
        self.answer(hold)

    def _check(self, place: str) -> None:
        now = time.process_time()
        if self._started:
            self.taken.append((now - self._started) * 1e3)
            self._started = 0.0
        if self._waiting and self._waiting[0] == place:
            del self._waiting[0]
            raise Crash(place)

    def crash(self, places: list[str], answer: Answer, epochs: int = 1) -> list[float]:
        """Crash at these places one after the other; milliseconds from the answer to the statement's running again."""
        self._waiting = places
        self.answer = answer
        self.taken = []
        self.module["train"](self._check, epochs)
        if self._waiting:
            raise AssertionError(f"not crashed at {self._waiting}")
        return self.taken


def passing(hold: Hold) -> None:
    """The word `pass`."""
    hold.retry()


def acting(hold: Hold) -> None:
    """An action, one assignment, and `pass`."""
    result = hold.act("rate = rate / 2")
    if result.error is not None:
        raise result.error
    hold.retry()


class Operating:
    """A surgery that changes one literal, another value each time, and `pass`.

    Args:
        patient: the program.
        from_disk: whether the file is edited, or the new definition is given.
    """

    def __init__(self, patient: Patient, *, from_disk: bool) -> None:
        self.patient = patient
        self.from_disk = from_disk
        start = patient.source.index("def train")
        end = patient.source.index("return history\n", start) + len("return history\n")
        self.before, self.definition, self.after = (
            patient.source[:start],
            patient.source[start:end],
            patient.source[end:],
        )
        self.number = 0

    def __call__(self, hold: Hold) -> None:
        self.number += 1
        edited = self.definition.replace("* 1e-3", f"* 1e-{3 + self.number}")
        if self.from_disk:
            self.patient.path.write_text(self.before + edited + self.after, encoding="utf-8")
            self.patient._started = time.process_time()  # the editor's work is not ours
            hold.surgery(from_disk=True)
        else:
            hold.surgery(name="train", source=edited)
        hold.retry()


def measure(quick: bool) -> list[Figure]:
    """In an ordinary process."""
    return _measure(quick, "")


def measure_crowded(quick: bool) -> list[Figure]:
    """In a process with many live objects, which a search for the functions to replace has to pass."""
    crowd = [[i] for i in range(LIVE_OBJECTS)]
    figures = _measure(quick, f", {LIVE_OBJECTS:,} live objects")
    assert len(crowd) == LIVE_OBJECTS
    return figures


def _measure(quick: bool, suffix: str) -> list[Figure]:
    group = "crowded" if suffix else "recovering"
    figures: list[Figure] = []

    def note(name: str, values: list[float], bound: float | None) -> None:
        figures.append(Figure(group, name + suffix, "ms", values, bound))

    with tempfile.TemporaryDirectory() as folder:
        os.environ["DAIFU_JOURNAL"] = os.path.join(folder, "journal.jsonl")
        patient = Patient(_copy(folder, "patient.py"))
        first = [patient.crash([place], passing)[0] for place in PLACES]
        note("`pass`, first hold in the process", first[:1], FIRST_BOUND)
        note("`pass`, first time at a place", first[1:], FIRST_BOUND)
        second = [patient.crash([place], passing)[0] for place in PLACES]
        note("`pass`, second time at a place", second, AGAIN_BOUND)
        note("`pass`, 50 times over in one loop", patient.crash(["batch"] * 50, passing, 50)[1:], AGAIN_BOUND)
        fresh = Patient(_copy(folder, "patient2.py"))
        note(
            "action and `pass`, first time at a place",
            [fresh.crash([p], acting)[0] for p in PLACES],
            FIRST_BOUND,
        )
        note(
            "action and `pass`, second time at a place",
            [fresh.crash([p], acting)[0] for p in PLACES],
            AGAIN_BOUND,
        )
        for name, lines in (("", 0), (f" in a module of {MODULE_LINES:,} lines", MODULE_LINES)):
            for from_disk in (False, True):
                if lines and suffix:
                    continue
                patient = Patient(_copy(folder, f"patient_{lines}_{from_disk}.py", lines))
                words = ("`surgery` from disk" if from_disk else "`surgery` of a definition") + name
                count = 3 if lines else 10 if quick else SURGERIES
                taken = patient.crash(["epoch"] * count, Operating(patient, from_disk=from_disk), count)
                for number in (1, 10, 100):
                    if number <= count:
                        note(f"{words}, number {number}", [taken[number - 1]], SURGERY_BOUND)
                if count == SURGERIES:
                    note(f"{words}, all {SURGERIES}", taken, SURGERY_BOUND)
    policy.set_playbook(None)
    return figures


def _copy(folder: str, name: str, lines: int = 0) -> Path:
    path = Path(folder) / name
    text = (FOLDER / "patient.py").read_text(encoding="utf-8")
    other = "".join(
        f"\n\ndef other{i}(x: int) -> int:\n    y = x + {i}\n    for j in range(y):\n        x += j\n    return x\n"
        for i in range(lines // 7)
    )
    path.write_text(text + other, encoding="utf-8")
    return path


def main() -> None:  # for a profiler
    """Run the measure that is named on the command line."""
    measures: dict[str, Any] = {"recovering": measure, "crowded": measure_crowded}
    for figure in measures[sys.argv[1]](False):
        print(f"{figure.name}: {figure.median:.2f} {figure.unit}")


if __name__ == "__main__":
    main()
