"""A generated program crashes, a generated edit is made, and the run goes on: what must come of it a walker works out.

The walker runs the program by its tree, and at the crash goes on in the edited tree by the rule that the guide gives; it
knows each statement by its identity, while the engine compares texts. What the engine refuses it may refuse, if it says
why and the exception then is the plain program's; but it must not refuse often.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, event, given, note
from hypothesis import strategies as st

from tests import oracles
from tests.oracles import Outcome, run_held
from tests.walking.cases import Case, an_edit

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
