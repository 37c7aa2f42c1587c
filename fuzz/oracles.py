"""The oracles, each a function from a case to a report. They run in the process that a program may kill."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any
from unittest import mock

from daifu_bc.analysis.flow import Flow
from daifu_bc.errors import NoPoint
from daifu_bc.recovery import intercept, journal
from daifu_bc.rewrite import barrier
from daifu_bc.rewrite.continuation import Start, build_continuation
from fuzz import mending
from fuzz.case import Case, Report
from fuzz.continuing import Choice, Observer
from fuzz.instrument import PART_OF_STATEMENT, restart_points
from fuzz.open_names import opened
from tests.oracles import differences
from tests.programs.run import Job, Outcome, Watcher, run
from tests.programs.world import Plan

#: Runs of one program in which spots at which nothing can be tried are found and left out.
MOST_RUNS = 25


class Examiner:
    """Runs programs and compares.

    Args:
        folder: where their texts are written.
        stage: told what is being run, so that a death can be ascribed.
    """

    def __init__(self, folder: Path, stage: Callable[[str], None]) -> None:
        self._folder = folder
        self._stage = stage
        self.faults: list[str] = []

    def examine(self, case: Case) -> Report:
        """What the case's oracle says of it."""
        self.faults = []
        with self._watching():
            report = ORACLES[case.oracle](self, case)
        if report.usable:
            report.found += [f"internal error: {fault}" for fault in self.faults]
        return report

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """Hears of refusals to vaccinate, and of the engine's own errors."""

        def refused(code: CodeType, error: Exception) -> None:
            if "nothing in it that can raise" not in str(error):
                self.faults.append(
                    f"refused to vaccinate {code.co_qualname}: {type(error).__name__}: {error}"
                )

        def failed(word: str, *_: object, outcome: str = "", **__: object) -> None:
            if word == "internal error":
                self.faults.append(f"{outcome}")

        intercept._reported.clear()
        with (
            mock.patch.object(barrier, "on_refusal", refused),
            mock.patch.object(journal, "record", failed),
        ):
            yield

    def _run(self, stage: str, job: Job) -> Outcome:
        self._stage(stage)
        return run(job, self._folder)

    def _expected(self, job: Job) -> Outcome | None:
        """The independent run; None if nothing can be said of the program."""
        outcome = self._run("expected", job)
        return None if outcome.death or "Overflow" in outcome.error else outcome

    def _compared(self, expected: Outcome, seen: Outcome, **what: bool) -> Report:
        found = differences(expected, seen, **what)
        return Report(found, holds=seen.holds + seen.other_holds)

    # -- the oracles -------------------------------------------------------------------------------------------

    def no_crash(self, case: Case) -> Report:
        """Vaccinated, the program is the plain program."""
        expected = self._expected(Job(case.source))
        if expected is None:
            return Report(usable=False)
        return self._compared(expected, self._run("held", Job(case.source, form="held")), columns=True)

    def let_go(self, case: Case) -> Report:
        """An exception that is let go is the plain program's exception."""
        plan = Plan(**case.parameters["plan"])
        expected = self._expected(Job(case.source, plan=plan))
        if expected is None or not expected.failures:
            return Report(usable=False)
        return self._compared(
            expected, self._run("held", Job(case.source, form="held", plan=plan)), columns=True
        )

    def retry(self, case: Case) -> Report:
        """With each failing call repeated, the run is the one in which none fails."""
        plan = Plan(**case.parameters["plan"])
        expected = self._expected(Job(case.source))
        if expected is None or not expected.calls:
            return Report(usable=False)
        seen = self._run("held", Job(case.source, form="held", plan=plan, answers=[["pass"]]))
        return self._with_holds(self._compared(expected, seen), seen)

    def _with_holds(self, report: Report, seen: Outcome) -> Report:
        if not report.found and seen.holds != seen.failures:
            report.found.append(f"holds: {seen.failures} failures, {seen.holds} holds")
        return report

    def skip(self, case: Case) -> Report:
        """With a failing statement skipped, the run is the one with `pass` in its place."""
        plan = Plan(**case.parameters["plan"])
        expected = self._expected(Job(case.source, form="skipping", plan=plan))
        if expected is None or not expected.failures or mending.has_dropped_code(case.source):
            return Report(usable=False)
        seen = self._run("held", Job(case.source, form="held", plan=plan, answers=[["skip"]]))
        return self._compared(expected, seen, places=False)

    def surgery(self, case: Case) -> Report:
        """With the failing call mended in the text, the run is the one of the text that was mended from the start."""
        plan = Plan(**case.parameters["plan"])
        above = "# a comment above everything\n\n" if case.parameters.get("moved") else ""
        edited = above + mending.with_mended(case.source, int(next(iter(plan.keys))))
        expected = self._expected(Job(case.source))
        if expected is None:
            return Report(usable=False)
        job = Job(case.source, form="held", plan=plan, answers=[["surgery", "pass"]], edited=edited)
        return self._compared(expected, self._run("held", job), places=not above)

    def statements(self, case: Case) -> Report:
        """Held between any two statements, the run goes on with the next one."""
        source = mending.with_statements(case.source)
        expected = self._expected(Job(source))
        if expected is None:
            return Report(usable=False)
        plan = Plan("every", period=1, limit=1)
        seen = self._run(
            "held", Job(source, form="held", plan=plan, answers=[[case.parameters.get("word", "pass")]])
        )
        return self._with_holds(self._compared(expected, seen), seen)

    def continuation(self, case: Case) -> Report:
        """Going on in a continuation at any restart point changes nothing."""
        source = opened(case.source) if case.parameters.get("open") else case.source
        expected = self._expected(Job(source))
        if expected is None:
            return Report(usable=False)
        parameters: dict[str, Any] = dict(case.parameters)
        parameters.pop("open", None)
        choice = Choice(**parameters | {"only": tuple(parameters.get("only", ()))})
        excluded: set[str] = set()
        report = Report()
        for _ in range(MOST_RUNS):
            observer = Observer(choice, excluded)
            seen = self._observed(source, observer)
            excluded = observer.excluded
            if observer.failed or not observer.spoiled or seen.death:
                report.found = differences(expected, seen, columns=True)
                report.found += [f"refused: {reason}" for reason in observer.failed]
                report.holds = len(observer.gone_on)
                break
            report.notes["runs spoiled"] = report.notes.get("runs spoiled", 0) + 1
            for reason in observer.spoiled:
                what = reason.partition(":")[0]
                report.notes[what] = report.notes.get(what, 0) + 1
        else:
            report.usable = False
        return report

    def _observed(self, source: str, observer: Observer) -> Outcome:
        self._stage("continued")
        seen = run(Job(source, form="held"), self._folder, Watcher(observer.prepared, observer.respond))
        observer.end()
        gc.collect()
        return seen

    def build(self, case: Case) -> Report:
        """Each code object can be vaccinated, and a continuation can be built at each of its restart points."""
        try:
            code = compile(case.source, "program", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
            return Report(usable=False)
        self._stage("build")
        report = Report()
        chooser = random.Random(case.parameters.get("seed", 0))
        barrier.vaccinate_code(code)
        total = sum(len(restart_points(Flow(part))) for part in _parts(code))
        share = case.parameters.get("most", total) / max(1, total)
        for part in _parts(code):
            self._stage("build")
            report.found += _buildable(part, chooser, share)
        return report

    def open_no_crash(self, case: Case) -> Report:
        """The same as `no_crash` for a program whose names mean nothing."""
        return self.no_crash(Case("no-crash", opened(case.source)))


def _parts(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)


def _buildable(code: CodeType, chooser: random.Random, share: float) -> list[str]:
    if code.co_name in PART_OF_STATEMENT:
        return []
    found = []
    flow = Flow(code)
    for place in restart_points(flow):
        if chooser.random() >= share:
            continue
        names = [name for name in code.co_varnames if name not in code.co_cellvars and chooser.random() < 0.7]
        try:
            start = Start(place, flow.stacks[place] or (), frozenset(names))
            build_continuation(flow, start, runs=chooser.random() < 0.5)
        except NoPoint:
            continue
        except Exception as error:
            instruction = flow.instructions[place]
            found.append(
                f"refused: {code.co_qualname}, before {instruction.name}: {type(error).__name__}: {error}"
            )
    return found


ORACLES: dict[str, Callable[[Examiner, Case], Report]] = {
    "no-crash": Examiner.no_crash,
    "raise": Examiner.let_go,
    "retry": Examiner.retry,
    "skip": Examiner.skip,
    "surgery": Examiner.surgery,
    "statements": Examiner.statements,
    "continuation": Examiner.continuation,
    "build": Examiner.build,
    "open-no-crash": Examiner.open_no_crash,
}
