"""Replaces one statement of a body whose source is not to be had."""

from __future__ import annotations

import gc
from types import CodeType, FunctionType

from daifu_bc.analysis.flow import Flow, Stack
from daifu_bc.errors import CannotVaccinate, DaifuError, Refusal
from daifu_bc.recovery.bodies import flow_of
from daifu_bc.recovery.history import Step, TextChange
from daifu_bc.recovery.restarts import Restarts, parameters, statements_of
from daifu_bc.recovery.skips import Skip
from daifu_bc.recovery.swap import swap
from daifu_bc.recovery.transfer import Transfer
from daifu_bc.rewrite.barrier import from_verify, pristine, vaccinate_code
from daifu_bc.rewrite.graft import graft, with_checked_loads

_COPIES = 16


def replace_statement(flow: Flow, line: int, text: str) -> tuple[CodeType, dict[int, int]]:
    """Vaccinated code with one statement replaced; and for each offset of the body that of the same instruction in it.

    Args:
        flow: the body.
        line: where the statement begins.
        text: what takes its place.

    Raises:
        Refusal: it cannot be done.
    """
    size = len(flow.code.co_code)
    done: set[int] = set()
    new = flow
    for _ in range(_COPIES):
        # A `finally` stands in the bytecode once for each way into it; what was replaced is reached no more.
        places = [
            place
            for place in _beginnings(new, line)
            if new.instructions[place].start < size and new.instructions[place].start not in done
        ]
        if not places:
            break
        place = min(places, key=lambda one: (len(new.stacks[one] or ()), one))
        done.add(new.instructions[place].start)
        behind = _behind(new, place)
        if behind is not None:  # what returns None stands on the same line
            done.add(new.instructions[behind].start)
        try:
            new = Flow(graft(new, place, behind, text, line))
        except CannotVaccinate as error:
            raise _unsound(error) from None
    if not done:
        table = statements_of(flow)
        lines = sorted({one.first for place, one in enumerate(table.of) if one and table.is_start(place)})
        some = ", ".join(map(str, lines[:12])) + (", ..." if len(lines) > 12 else "")
        raise Refusal(f"no statement of {flow.code.co_name} begins on line {line}", remedy=f"Lines: {some}.")
    code, moved = with_checked_loads(new, parameters(flow.code))
    try:
        from_verify(code, code)
    except DaifuError as error:
        raise Refusal(
            "what was built of the new text is not sound, and is not used", why=str(error)
        ) from None
    return vaccinate_code(code), moved


def _unsound(error: DaifuError) -> Refusal:
    return Refusal(
        "what was built of the new text is not sound, and is not used",
        why=str(error),
        remedy="Give the whole function by `surgery NAME`.",
    )


def _beginnings(flow: Flow, line: int) -> list[int]:
    table = statements_of(flow)
    return [
        place
        for place, owner in enumerate(table.of)
        if owner is not None and owner.first == line and table.is_start(place)
        if flow.instructions[place].name != "RETURN_VALUE"  # its value has been computed
    ]


def _behind(flow: Flow, place: int) -> int | None:
    """Where the run goes on behind a statement; None for the end of the function."""
    stack: Stack = flow.stacks[place] or ()
    start = Skip(Restarts(flow, place, stack, frozenset())).start()
    if start.half or (start.returns and (stack or flow.entry(place) is not None)):
        raise Refusal(
            "it cannot be told where the run goes on behind that statement",
            remedy="Give the whole function by `surgery NAME`.",
        )
    return None if start.returns else start.place


def graft_into(
    flow: Flow, place: int, line: int, text: str, step: Step | None
) -> tuple[str, Transfer | None]:
    """Gives all functions that run a body the one with a statement replaced.

    Args:
        flow: the body.
        place: where the frame would go on in it; -1 if none is held.
        line: where the statement begins.
        text: what takes its place.
        step: remembers it; None if nothing is to be changed.

    Returns:
        What it did, or would do, and where the frame goes on.

    Raises:
        Refusal: it cannot be done.
    """
    old = flow.code
    built, moved = replace_statement(flow, line, text)
    functions = _functions_of(old)
    count = f"{len(functions)} function{'s' * (len(functions) != 1)}"
    verb = "replaced" if step is not None else "would replace"
    said = f"{verb} the statement of line {line} in {old.co_qualname} ({count})"
    going = None
    if place >= 0:
        new = flow_of(pristine(built))
        there = new.index[moved[flow.instructions[place].start]]
        if new.stacks[there] is None:
            raise Refusal(
                f"the run would go on inside the statement of line {line}, which is replaced",
                remedy=f"Say `goto {line}` first.",
            )
        going = Transfer(new, there)
    if step is not None:
        swap(functions, built, step)
        step.texts.append(TextChange(old.co_filename, "", text))
    return said, going


def _functions_of(code: CodeType) -> list[FunctionType]:
    alive = [thing for thing in gc.get_objects() if type(thing) is FunctionType]
    return [
        function
        for function in alive
        if function.__code__.co_name == code.co_name
        and function.__code__.co_firstlineno == code.co_firstlineno
        and pristine(function.__code__) is code
    ]
