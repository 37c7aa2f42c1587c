"""A generated program crashes and goes on, in edited text or in any frame: what must come of it a walker works out.

The walker runs the program by its tree, and at the crash goes on in the edited tree by the rule that the guide gives; it
knows each statement by its identity, while the engine compares texts. What the engine refuses it may refuse, if it says
why and the exception then is the plain program's; but it must not refuse often. A frame of the stack, and how it goes on,
it must never refuse.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, event, given, note
from hypothesis import strategies as st

from tests import oracles
from tests.oracles import Outcome, run_held
from tests.walking.cases import Case, a_frame, an_edit

needs_engine = pytest.mark.skipif(oracles.needs_engine(), reason="there is no engine yet")

#: Of a hundred edits that can be followed so many may be refused.
MOST_REFUSED = 4


def played(case: Case) -> tuple[Outcome, list[str]]:
    """What the engine makes of a case, and in which ways that is wrong."""
    seen = run_held(case.program, case.plan, answers=case.words, edited=case.edited)
    if seen.death:
        return seen, [f"death: {seen.death}"]
    if not seen.refusals and case.expected is None:
        return seen, []  # nobody can say
    expected = case.let_go if seen.refusals or case.expected is None else case.expected
    found = []
    for name in ("events", "result", "error", "failures"):
        wanted, given = getattr(expected, name), getattr(seen, name)
        # What it was raised while handling is not worked out.
        given = given.partition(" while ")[0] if name == "error" else given
        if wanted != given:
            found.append(f"{name}:\n  expected {wanted}\n  seen     {given}")
    if any(": NoPoint: " not in refusal and ": Refusal: " not in refusal for refusal in seen.refusals):
        found.append(f"refused without a reason: {seen.refusals}")
    return seen, found


def check(case: Case | None) -> None:
    """Play a case, and fail if anything is wrong."""
    assume(case is not None)
    assert case is not None
    note(repr(case))
    seen, found = played(case)
    for kind in case.did:
        event(f"{kind}{', refused' if seen.refusals else ''}")
    assert not found, "\n".join([*found, *seen.refusals])


@needs_engine
@given(st.data())
def test_run_goes_on_in_the_edited_text(data: st.DataObject) -> None:
    check(an_edit(lambda most: data.draw(st.integers(0, most)), most=2))


@needs_engine
def test_few_edits_are_refused() -> None:
    followed = refused = 0
    for seed in range(120):
        numbers = random.Random(seed)
        case = an_edit(lambda most, numbers=numbers: numbers.randint(0, most), most=2)  # type: ignore[misc]
        if case is None or case.expected is None:
            continue
        seen, found = played(case)
        assert not found, f"{case}\n{found}"
        followed += 1
        refused += bool(seen.refusals)
    assert followed > 70
    assert refused * 100 <= followed * MOST_REFUSED


@needs_engine
@given(st.data())
def test_any_frame_goes_on(data: st.DataObject) -> None:
    case = a_frame(lambda most: data.draw(st.integers(0, most)))
    assume(case is not None)
    assert case is not None
    note(repr(case))
    event(case.did[0])
    seen, found = played(case)
    assert not found and not seen.refusals, "\n".join([*found, *seen.refusals])


@needs_engine
def test_frames_are_chosen_everywhere() -> None:
    inner = outer = 0
    verbs: set[str] = set()
    for seed in range(80):
        numbers = random.Random(seed)
        case = a_frame(lambda most, numbers=numbers: numbers.randint(0, most))  # type: ignore[misc]
        if case is None:
            continue
        seen, found = played(case)
        assert not found and not seen.refusals, f"{case}\n{found}{seen.refusals}"
        crashed = seen.failures == 1 and seen.holds == 1
        assert crashed
        frame = case.words[0][0].removeprefix("frame ")
        inner += (
            f"key={next(iter(case.plan.keys))})"
            in case.program.partition(f"def {frame}(")[2].partition("\ndef ")[0]
        )
        outer += frame != "main"
        verbs.add(case.did[0])
    assert verbs == {"pass", "skip", "return", "skip body", "skip loop"}
    assert 0 < inner < outer
