"""From a crash in the middle of an epoch to the crashed statement's running again: recovered in place, or started anew.

All ways are taken by turns with the same program, in processes of their own. In place it is the time that the journal
records from the decision on, by a playbook, to the statement. A restart is what passes from the start of Python to the
same statement of the same step: importing, building, loading, going to the place in the data, and doing the lost steps again.
All ways have to end with the same weights, bit for bit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.figures import Figure
from benchmarks.models import program
from benchmarks.models.catalogue import KINDS
from benchmarks.pairs import FOLDER

TIMEOUT_SECONDS = 120
#: Playbooks by the fault that they repair; FIXED stands for the edited copy of the program.
PLAYBOOKS = {
    "transient": "pass\n",
    "value": "action shares = iter([1.0])\npass\n",
    "code": "surgery FIXED\npass\n",
}
WORDS = {"transient": "`pass`", "value": "action, `pass`", "code": "`surgery`, `pass`"}
#: How the program's mistake is put right.
EDIT = ('PLACE["shaer"]', 'PLACE["share"]')


class Plan(NamedTuple):
    """How much is done.

    Attributes:
        steps: of the epoch.
        crash: the step before which it happens.
        every: steps between checkpoints.
        repeats: how often each way is taken.
    """

    steps: int
    crash: int
    every: int
    repeats: int

    @property
    def lost(self) -> int:
        """Steps since the last checkpoint."""
        return self.crash % self.every


FULL = Plan(steps=100, crash=50, every=20, repeats=2)
QUICK = Plan(steps=20, crash=10, every=4, repeats=1)


class Runs:
    """Runs of the program with one model.

    Args:
        name: of the model.
        plan: how much is done.
        folder: for what is written.
    """

    def __init__(self, name: str, plan: Plan, folder: Path) -> None:
        self.folder = folder
        self.output = folder / "output.json"
        self.arguments = [
            name,
            *("--steps", str(plan.steps), "--crash", str(plan.crash), "--until", str(plan.crash + 2)),
            *("--output", str(self.output), "--checkpoint", str(folder / "checkpoint.pt")),
        ]
        self.every = plan.every
        fixed = Path(program.__file__).read_text(encoding="utf-8").replace(*EDIT)
        (folder / "fixed.py").write_text(fixed, encoding="utf-8")

    def _run(self, command: list[str], code: int, **variables: str) -> float:
        """Run it to its end; when it was started."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("DAIFU")} | {
            "DAIFU_ATTACH": "0"
        }
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=FOLDER.parent,
            env=environment | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        if done.returncode != code:
            raise AssertionError(f"{command} has ended with {done.returncode}: {done.stderr[-2000:]}")
        return started

    def crash(self) -> None:
        """Die, and leave the last checkpoint."""
        faulty = ["--fault", "transient", "--every", str(self.every)]
        self._run(["benchmarks.models.program", *self.arguments, *faulty], 1)

    def restart(self, *options: str) -> dict[str, Any]:
        """Start anew: seconds to the first step, seconds to the place of the crash, and the weights."""
        started = self._run(["benchmarks.models.program", *self.arguments, *options], 0)
        found = json.loads(self.output.read_text(encoding="utf-8"))
        return {
            "start": found["ready"] - started,
            "again": found["reached"][0] - started,
            "digest": found["digest"],
        }

    def recover(self, fault: str) -> dict[str, Any]:
        """Crash and be repaired: seconds from the decision and from the crash to the statement, and the weights."""
        book, journal = self.folder / "book.txt", self.folder / "journal.jsonl"
        book.write_text(PLAYBOOKS[fault].replace("FIXED", str(self.folder / "fixed.py")), encoding="utf-8")
        journal.unlink(missing_ok=True)
        command = ["daifu_bc", "run", "--playbook", str(book), "-m", "benchmarks.models.program"]
        self._run([*command, *self.arguments, "--fault", fault], 0, DAIFU_JOURNAL=str(journal))
        entries = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
        (again,) = (entry for entry in entries if entry["event"] == "running again")
        # The word that takes longest is the surgery; it is asked before `pass` is, and counts too.
        before = sum(
            entry.get("seconds", 0.0) for entry in entries if entry["event"] in ("action", "surgery")
        )
        found = json.loads(self.output.read_text(encoding="utf-8"))
        return {
            "decided": before + again["seconds"],
            "again": again["held"],
            "digest": found["digest"],
        }


def measure(name: str, quick: bool) -> list[Figure]:
    """The figures of one model."""
    plan = QUICK if quick else FULL
    title = KINDS[name].title
    figures: dict[str, Figure] = {}

    def note(way: str, seconds: float) -> None:
        figure = figures.setdefault(way, Figure("restoring", f"{title}, {way}", "ms", []))
        figure.values.append(seconds * 1e3)

    with tempfile.TemporaryDirectory(prefix="restoring-") as folder:
        runs = Runs(name, plan, Path(folder))
        digests = set()
        for _ in range(plan.repeats):
            runs.crash()
            for fault, words in WORDS.items():
                found = runs.recover(fault)
                note(words, found["decided"])
                note(f"{words}, from the crash on", found["again"])
                digests.add(found["digest"])
            for way, options in (("from scratch", ()), ("from a checkpoint", ("--resume",))):
                found = runs.restart(*options)
                note(f"{way}, to the first step", found["start"])
                note(way, found["again"])
                digests.add(found["digest"])
    if len(digests) != 1:
        raise AssertionError(f"{title} does not end the same in all ways: {digests}")
    for way, lost in (("from scratch", plan.crash), ("from a checkpoint", plan.lost)):
        figures[way].note = f"{lost} lost steps"
    return list(figures.values())
