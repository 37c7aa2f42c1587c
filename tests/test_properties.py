"""Properties of the engine, on programs that Hypothesis writes.

The number of examples of a property is set by the profile (``HYPOTHESIS_PROFILE``: ``ci`` or ``long``).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import assume, event, given, note, settings
from hypothesis import strategies as st

from fuzz.case import Case
from fuzz.process import Examination
from tests import oracles
from tests.oracles import Outcome, Plan, differences, run_held, run_plain, run_skipping
from tests.strategies import Options, WrittenProgram, programs

needs_engine = pytest.mark.skipif(oracles.needs_engine(), reason="there is no engine yet")

WITHOUT_CRASHES = Options(crashes=False, leaves_finally=True)
WITH_CRASHES = Options()
FOR_RETRY = Options(async_exits=False)
FOR_SKIP = Options(crashes_without_statement=False)


@pytest.fixture(scope="module")
def examination() -> Iterator[Examination]:
    """The process in which programs go on in continuations."""
    with Examination() as running:
        yield running


def usable(outcome: Outcome) -> Outcome:
    """Leave out programs that would not end in reasonable time."""
    assert not outcome.death, outcome.death
    assume("Overflow" not in outcome.error)
    event(outcome.error.partition("(")[0] or "ends without an exception")
    return outcome


def check(found: list[str]) -> None:
    """Fail if anything was found."""
    for line in found:
        note(line)
    assert not found, "\n".join(found)


def some_of_keys(program: WrittenProgram) -> st.SearchStrategy[Plan]:
    """Plans by which some calls of some keys fail."""
    calls = st.lists(st.integers(1, 3), min_size=1, max_size=2, unique=True)
    keys = st.dictionaries(st.sampled_from([str(key) for key in program.keys]), calls, min_size=1, max_size=4)
    return st.builds(lambda chosen: Plan("keyed", keys=chosen), keys)


@given(programs(WITHOUT_CRASHES))
def test_generated_programs_are_the_same_in_each_run(program: WrittenProgram) -> None:
    first = usable(run_plain(program.source))
    again = oracles.run_anew(program.source)
    check(differences(first, again, columns=True))


@given(programs(WITH_CRASHES))
def test_mending_changes_nothing_else(program: WrittenProgram) -> None:
    assume(program.keys)
    expected = usable(run_plain(program.source))
    check(differences(expected, run_plain(program.with_mended(program.keys[-1]))))


@needs_engine
@given(programs(WITHOUT_CRASHES))
def test_vaccinated_program_is_the_plain_program(program: WrittenProgram) -> None:
    expected = usable(run_plain(program.source))
    check(differences(expected, run_held(program.source), columns=True))


@needs_engine
@given(programs(WITH_CRASHES), st.data())
def test_exception_let_go_is_the_plain_exception(program: WrittenProgram, data: st.DataObject) -> None:
    assume(program.keys)
    plan = data.draw(some_of_keys(program))
    expected = usable(run_plain(program.source, plan))
    check(differences(expected, run_held(program.source, plan), columns=True))


@needs_engine
@given(programs(FOR_RETRY), st.integers(1, 4))
def test_retry_gives_the_run_without_crash(program: WrittenProgram, period: int) -> None:
    expected = usable(run_plain(program.source))
    assume(expected.calls)
    seen = run_held(program.source, Plan("every", period=period), answers=[["pass"]])
    found = differences(expected, seen)
    if not found and seen.holds != seen.failures:
        found = [f"{seen.failures} failures, {seen.holds} holds"]
    check(found)


@needs_engine
@given(programs(FOR_SKIP), st.data())
def test_skip_gives_the_run_with_pass_in_its_place(program: WrittenProgram, data: st.DataObject) -> None:
    assume(program.keys)
    plan = data.draw(some_of_keys(program))
    expected = usable(run_skipping(program.source, plan))
    assume(expected.failures)
    check(differences(expected, run_held(program.source, plan, answers=[["skip"]]), places=False))


@needs_engine
@given(programs(WITH_CRASHES), st.data())
def test_surgery_gives_the_run_of_the_edited_text(program: WrittenProgram, data: st.DataObject) -> None:
    assume(program.mendable)
    key = data.draw(st.sampled_from(program.mendable))
    edited = program.with_mended(key)
    if data.draw(st.booleans()):
        edited = "# a comment above everything\n\n" + edited
    plan = Plan("broken", keys={str(key): [data.draw(st.integers(1, 2))]})
    expected = usable(run_plain(program.source))
    seen = run_held(program.source, plan, answers=[["surgery", "pass"]], edited=edited)
    # Where lines moved, the traceback of an exception of the program's own shows the new lines.
    check(differences(expected, seen, places=edited[0] != "#"))


@needs_engine
@given(programs(FOR_RETRY), st.integers(0, 4), st.lists(st.integers(0, 99), min_size=1, max_size=4))
def test_pause_at_any_moment_changes_nothing(program: WrittenProgram, period: int, shares: list[int]) -> None:
    # What it calls is where another thread asks for the pause, so that the same example stops in the same places.
    expected = usable(run_plain(program.source))
    assume(expected.moments)
    moments = [1 + expected.moments * share // 100 for share in shares]
    plan = Plan("every", period=period) if period and expected.calls else Plan()
    seen = run_held(program.source, plan, answers=[["pass"]], moments=moments)
    found = differences(expected, seen)
    # The last one may have come too late.
    if not found and not seen.asked - 1 <= len(seen.stopped) <= seen.asked:
        found = [f"{seen.asked} pauses asked for, {len(seen.stopped)} came"]
    event(f"{len(seen.stopped)} pauses")
    check(found)


@needs_engine
def test_a_pause_in_a_comprehension_that_crashes_comes_once() -> None:
    source = (
        "def main():\n    crash(1, key=1)\n    say([crash(v, key=2) for v in range(2)][-1])\n    say(2)\n"
    )
    for moment in range(1, 5):
        seen = run_held(source, Plan("every", period=2), answers=[["pass"]], moments=[moment])
        assert (seen.events, len(seen.stopped)) == (["1", "2"], 1)


@needs_engine
@settings(max_examples=settings.default.max_examples // 3)  # type: ignore[union-attr]  # each goes on at every point
@given(programs(WITHOUT_CRASHES), st.integers(0, 1000), st.sampled_from([0, 25, 100]))
def test_going_on_anywhere_changes_nothing(
    examination: Examination, program: WrittenProgram, seed: int, own_code: int
) -> None:
    # At each restart point that the run reaches, the first time it gets there.
    report = examination.examine(Case("continuation", program.source, {"seed": seed, "own_code": own_code}))
    assume(report.usable)
    event("goes on in continuations" if report.holds else "reaches no restart point")
    check(report.found)
