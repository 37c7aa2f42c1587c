"""What came of a recovery, held against what was expected of it."""

from __future__ import annotations

import difflib
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from benchmarks.crash_cases.case import EQUAL, Case, Recovery
from benchmarks.crash_cases.runner import Run, Start, cold, run_fixed, run_plain, run_recovery
from daifu_bc.frontends.commands import read
from daifu_bc.frontends.playbook import parse_playbook

#: Words that only look.
LOOKING = frozenset({"list", "where", "locals", "p", "pp", "exc", "why", "help"})


@dataclass(frozen=True)
class Lost:
    """What a way to begin again would have lost, all stops of the run together.

    Attributes:
        seconds: time that is spent again.
        steps: lines `progress` that come again.
    """

    seconds: float
    steps: int


@dataclass(frozen=True)
class Result:
    """One recovery of a case.

    Attributes:
        case: the case's name.
        category: of the case.
        about: of the case.
        recovery: what distinguishes the recovery.
        stops: `exception at function, file` of each.
        words: those of each stop.
        outcome: `recovered`, or `ends with EXCEPTION`.
        equal: whether the output was the fixed program's.
        reason: why it need not be; empty if it has to.
        running_again: of each stop, milliseconds from the word that decides until the program runs.
        repair: of each stop, milliseconds from the exception until the program runs.
        restart: what a restart from scratch after each stop would have lost.
        checkpoint: what a restart from the last checkpoint would have lost; None if there is none.
        seconds: how long the run took in all.
        problems: expectations that are not met.
    """

    case: str
    category: str
    about: str
    recovery: str
    stops: list[str]
    words: list[str]
    outcome: str
    equal: bool
    reason: str
    running_again: list[float]
    repair: list[float]
    restart: Lost
    checkpoint: Lost | None
    seconds: float
    problems: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """What is written into the file of results."""
        return asdict(self)

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Result:
        """The result that was written."""
        last = entry["checkpoint"]
        lost = {"restart": Lost(**entry["restart"]), "checkpoint": Lost(**last) if last else None}
        return cls(**entry | lost)


def results_of(case: Case, start: Start = cold) -> list[Result]:
    """Run a case: fixed, plain, and with each of its recoveries."""
    fixed, plain = run_fixed(case, start), run_plain(case, start)
    problems = problems_of_programs(case, fixed, plain)
    return [
        result(case, recovery, fixed, run_recovery(case, recovery, start), problems)
        for recovery in case.recoveries
    ]


def problems_of_programs(case: Case, fixed: Run, plain: Run) -> list[str]:
    """What is wrong with the fixed program, which must end well, and the crashing one, which must crash."""
    problems = []
    if fixed.code:
        problems.append(f"the fixed program ended with exit code {fixed.code}:\n{fixed.errors}")
    if not fixed.lines:
        problems.append("the fixed program printed nothing")
    if plain.code != 1 or plain.ended_with != case.exceptions[0]:
        problems.append(
            f"the plain program should have ended with {case.exceptions[0]}, not {plain.ended_with or plain.code}:"
            f"\n{plain.errors}"
        )
    if plain.lines != fixed.lines[: len(plain.lines)] or len(plain.lines) >= len(fixed.lines):
        problems.append("what the plain program printed until it crashed is not how the fixed one begins")
    return problems


def result(case: Case, recovery: Recovery, fixed: Run, run: Run, problems: list[str]) -> Result:
    """Hold a run against what was expected of the recovery."""
    held = [entry for entry in run.journal if entry["event"] == "held"]
    running = [entry for entry in run.journal if entry["event"] == "running again"]
    exceptions = [entry["what"].rpartition(".")[2] for entry in held]
    places = [f"{entry['function']}, {entry['file'].rpartition('/')[2]}" for entry in held]
    outcome = f"ends with {run.ended_with or run.code}" if run.code else "recovered"
    equal = run.lines == fixed.lines
    problems = list(problems)
    if outcome != recovery.expect:
        problems.append(f"expected: {recovery.expect}; it was: {outcome}\n{run.errors}")
    if exceptions != list(recovery.exceptions):
        problems.append(
            f"stops expected: {', '.join(recovery.exceptions)}; there were: {', '.join(exceptions)}"
        )
    if places != list(recovery.held):
        problems.append(f"held expected: {'; '.join(recovery.held)}; it was: {'; '.join(places)}")
    if not recovery.ends_with and equal != (recovery.compare == EQUAL):
        problems.append(f"output compared: {recovery.compare}; it differs so:\n{difference(fixed, run)}")
    if any(entry["event"] == "internal error" for entry in run.journal):
        problems.append("daifu reported an internal error")
    times, saved = [_moment(entry) - run.began for entry in held], _saved(run)
    return Result(
        case=case.name,
        category=case.category,
        about=case.about,
        recovery=recovery.name,
        stops=[f"{kind} at {place}" for kind, place in zip(exceptions, places, strict=True)],
        words=words_of(case, recovery)[: len(held)],
        outcome=outcome,
        equal=equal,
        reason="" if recovery.compare == EQUAL else recovery.compare,
        running_again=[round(1000 * entry["seconds"], 3) for entry in running],
        repair=[round(1000 * entry["held"], 3) for entry in running],
        restart=_lost(times, run, ()),
        checkpoint=_lost(times, run, saved) if any(when < stop for when in saved for stop in times) else None,
        seconds=round(run.seconds, 3),
        problems=problems,
    )


def difference(fixed: Run, run: Run) -> str:
    """The output of a run against the fixed program's, as a diff."""
    return "\n".join(difflib.unified_diff(fixed.lines, run.lines, "fixed", "recovered", lineterm="", n=1))


def words_of(case: Case, recovery: Recovery) -> list[str]:
    """The words of each of a playbook's blocks, without those that only look."""
    text = (case.folder / recovery.playbook).read_text(encoding="utf-8")
    playbook = parse_playbook(text, recovery.playbook)
    blocks = []
    for block in playbook.blocks:
        names = [read(command)[0].name for command in block]
        blocks.append(", ".join(name for name in names if name not in LOOKING))
    return blocks


def _moment(entry: dict[str, Any]) -> float:
    return datetime.fromisoformat(entry["time"]).timestamp()


def _saved(run: Run) -> list[float]:
    """When checkpoints were written."""
    return [when for when, line in zip(run.times, run.lines, strict=True) if line.startswith("checkpoint")]


def _lost(stops: list[float], run: Run, saved: list[float] | tuple[()]) -> Lost:
    """What is done again if the run begins again after each stop.

    From scratch that is all until the stop. From a checkpoint it is the time since the checkpoint, and what the program
    does before its first step, which no checkpoint keeps.
    """
    steps = [when for when, line in zip(run.times, run.lines, strict=True) if line.startswith("progress")]
    seconds, count = 0.0, 0
    for stop in stops:
        last = max((when for when in saved if when < stop), default=0.0)
        ready = min([when for when in steps if when < stop] or [0.0]) if last else 0.0
        seconds += stop - last + ready
        count += sum(last < when < stop for when in steps)
    return Lost(round(seconds, 3), count)
