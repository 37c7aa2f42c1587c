"""The test programs themselves: each runs plain, and there is something to compare after its crash."""

from __future__ import annotations

import pytest

from tests.grid.named_programs import named_programs
from tests.grid.parts import BLOCKS, FRAMES, ORIGINS, STATEMENTS
from tests.grid.program import GridProgram
from tests.grid.systematic import systematic_programs
from tests.oracles import Outcome, Plan, run_held, run_plain, run_skipping

PROGRAMS = [
    program for program in (*named_programs().values(), *systematic_programs()) if program.runs_here()
]
NAMED_COUNT = 198


def of_program(program: GridProgram, mode: str, at: list[int]) -> Outcome:
    """Run a program plain."""
    return run_plain(program.source, Plan(mode, at), sourceless=program.sourceless)


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_program_is_worth_running(program: GridProgram) -> None:
    at = list(program.at or [1])
    whole = of_program(program, "off", [])
    crashed = of_program(program, "at" if program.surgery_mode != "off" else "off", at)
    assert not whole.death
    assert not whole.stderr
    assert whole.events
    if program.surgery_mode == "off":
        assert whole.error.startswith("ZeroDivisionError")
        return
    assert not whole.error
    assert not whole.thread_errors
    assert crashed.failures
    if program.handled:
        assert crashed.events != whole.events or crashed.error or "SystemExit" in program.source
        return
    assert crashed.error or crashed.thread_errors
    first_difference = next(
        (i for i, pair in enumerate(zip(whole.events, crashed.events, strict=False)) if pair[0] != pair[1]),
        len(crashed.events),
    )
    assert len(whole.events) > first_difference, "no event after the crash"


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_edited_text_is_worth_running(program: GridProgram) -> None:
    if "surgery" not in program.remedies:
        pytest.skip("no surgery on this program")
    at = list(program.at or [1])
    crashed = of_program(program, "at", at)
    places = crashed.thread_places or crashed.places
    line = int(places[-1].rpartition(":")[2]) if places else 0
    plan = Plan(program.surgery_mode, at, line=line)
    edited = program.expected or program.text_after_surgery(line)
    outcome = run_plain(edited, plan, sourceless=program.sourceless)
    assert not outcome.death
    assert not outcome.error
    assert outcome.events
    if not program.edited:
        assert outcome.events == of_program(program, "off", []).events


def test_every_name_has_a_program() -> None:
    assert len(named_programs()) == NAMED_COUNT


def test_every_part_is_used() -> None:
    for index, parts in enumerate((FRAMES, BLOCKS, STATEMENTS, ORIGINS)):
        used = {program.name.split(" / ")[index] for program in systematic_programs()}
        assert used == {part.name for part in parts}


def test_skipping_replaces_one_execution_of_a_statement() -> None:
    source = "def main():\n    for i in range(3):\n        x = crash(i)\n        say(x)\n"
    outcome = run_skipping(source, Plan("at", [2]))
    assert outcome.events == ["0", "0", "2"]


def test_skipping_a_header_skips_the_whole_compound_statement() -> None:
    source = "for i in Stream(3):\n    say(i)\nelse:\n    say('else')\nsay('after')\n"
    outcome = run_skipping(source, Plan("at", [2]))
    assert outcome.events == ["0", "'after'"]


def test_a_program_that_kills_the_interpreter_is_named() -> None:
    outcome = run_plain("import os\nos.abort()\n")
    assert "exit status" in outcome.death
    assert "program.py" in outcome.death
    assert run_plain("say(1)\n").events == ["1"]


def test_a_run_without_engine_does_not_need_it() -> None:
    assert run_plain("say(1)\n").holds == 0
    assert callable(run_held)
