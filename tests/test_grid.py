"""The grid: each program, without a crash and with each remedy, does what the plain program does.

What must happen is worked out without the engine: by the same program with the fault switched off (pass,
action), with the crashed statement replaced by ``pass`` (skip), with the edited text (surgery), or plain with
the fault (raise).
"""

from __future__ import annotations

import pytest

from tests import oracles
from tests.grid.named_programs import named_programs
from tests.grid.program import GridProgram
from tests.grid.systematic import systematic_programs
from tests.oracles import Outcome, Plan, differences, run_held, run_plain, run_skipping

pytestmark = pytest.mark.skipif(oracles.needs_engine(), reason="there is no engine yet")

PROGRAMS = [*named_programs().values(), *systematic_programs()]


def with_remedy(remedy: str) -> pytest.MarkDecorator:
    """Parametrize a test by the programs on which the remedy can be tried."""
    chosen = [program for program in PROGRAMS if remedy in program.remedies and program.runs_here()]
    return pytest.mark.parametrize("program", chosen, ids=[program.name for program in chosen])


def crash_points(program: GridProgram) -> list[list[int]]:
    """The failing calls to try: the program's own choice, or the first, the second and the last one alone."""
    if program.at:
        return [list(program.at)]
    calls = run_plain(program.source, sourceless=program.sourceless).calls
    return [[number] for number in sorted({1, min(2, calls), calls})]


def crashing_line(program: GridProgram, at: list[int]) -> int:
    """The line of the program that crashes."""
    crashed = run_plain(program.source, Plan("at", at), sourceless=program.sourceless)
    places = crashed.thread_places or crashed.places
    return int(places[-1].rpartition(":")[2]) if places else 0


def check(program: GridProgram, what: str, found: list[str]) -> None:
    """Fail with the program's text if anything was found."""
    if found:
        pytest.fail("\n".join([f"{program.name}, {what}", program.source, *found]), pytrace=False)


def holds_each_failure(seen: Outcome) -> list[str]:
    """Say whether each injected failure was held, once."""
    if seen.death or seen.refusals or seen.holds == seen.failures:
        return []
    return [f"{seen.failures} failures, {seen.holds} holds"]


@with_remedy("nothing")
def test_without_crash(program: GridProgram) -> None:
    expected = run_plain(program.source, sourceless=program.sourceless)
    seen = run_held(program.source, sourceless=program.sourceless)
    check(program, "no crash", differences(expected, seen, columns=True))


@with_remedy("pass")
def test_pass(program: GridProgram) -> None:
    expected = run_plain(program.source, sourceless=program.sourceless)
    for at in crash_points(program):
        seen = run_held(program.source, Plan("at", at), answers=[["pass"]], sourceless=program.sourceless)
        check(program, f"pass at {at}", differences(expected, seen) + holds_each_failure(seen))


@with_remedy("skip")
def test_skip(program: GridProgram) -> None:
    for at in crash_points(program):
        plan = Plan("at", at)
        expected = run_skipping(program.source, plan, sourceless=program.sourceless)
        seen = run_held(program.source, plan, answers=[["skip"]], sourceless=program.sourceless)
        # The lines of a program that was rewritten for the expectation are its own, its columns are not.
        check(program, f"skip at {at}", differences(expected, seen, places=False) + holds_each_failure(seen))


@with_remedy("surgery")
def test_surgery(program: GridProgram) -> None:
    answers = [list(words) for words in program.answers]
    for at in crash_points(program)[:2]:
        line = crashing_line(program, at)
        edited = program.text_after_surgery(line)
        plan = Plan(program.surgery_mode, at, line=line)
        expected = run_plain(program.expected or edited, plan, sourceless=program.sourceless)
        seen = run_held(program.source, plan, answers=answers, edited=edited, sourceless=program.sourceless)
        found = differences(expected, seen)
        if not seen.holds and not seen.death:
            found.append("nothing was held")
        check(program, f"surgery at {at}", found)


@with_remedy("action")
def test_action(program: GridProgram) -> None:
    expected = run_plain(program.source, sourceless=program.sourceless)
    answers = [[f"action {program.action}", "pass"]]
    for at in crash_points(program)[:2]:
        plan = Plan(program.plan_mode, at[:1])
        seen = run_held(program.source, plan, answers=answers, sourceless=program.sourceless)
        check(program, f"action at {at}", differences(expected, seen) + holds_each_failure(seen))


@with_remedy("raise")
def test_raise(program: GridProgram) -> None:
    for at in crash_points(program):
        plan = Plan("at", at)
        expected = run_plain(program.source, plan, sourceless=program.sourceless)
        seen = run_held(program.source, plan, sourceless=program.sourceless)
        found = differences(expected, seen, columns=True)
        if program.handled and seen.holds:
            found.append(f"{seen.holds} holds for an exception that the program handles")
        check(program, f"raise at {at}", found)
