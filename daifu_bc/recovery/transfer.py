"""Where the crashed frame goes on in the new body of its function."""

from __future__ import annotations

import ast
import difflib
import dis
import inspect
from types import CodeType

from daifu_bc.analysis.align import align, header_of
from daifu_bc.analysis.flow import EXIT, EXIT_SELF, Flow
from daifu_bc.analysis.statements import find_function
from daifu_bc.errors import NoPoint, Refusal
from daifu_bc.recovery.bodies import flow_of
from daifu_bc.recovery.capture import Capture
from daifu_bc.recovery.likeness import saying
from daifu_bc.recovery.restarts import Restarts, calls_exit, statements_of
from daifu_bc.rewrite.barrier import pristine

_KINDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_KEEP = "Keep the blocks around the crashed statement as they are."


def transfer(captured: Capture, code: CodeType, tree: ast.Module) -> tuple[Flow, int, list[str]]:
    """Where a new body goes on: at its first changed statement in the crashed one's block, else at the crashed one.

    Args:
        captured: the crashed frame.
        code: the new pristine code object.
        tree: the syntax tree that it was compiled from.

    Returns:
        The new body's analysis, the place in it, and what there is to say about it.

    Raises:
        NoPoint: the blocks around the crashed statement are not the same.
        Refusal: the new body needs variables of an outer function that the frame does not have.
    """
    known = set(captured.code.co_freevars) | set(captured.code.co_cellvars)
    missing = [name for name in code.co_freevars if name not in known]
    if missing:
        raise Refusal(
            f"the new body uses {', '.join(missing)} of the function around it, which the running one does not",
            remedy="Pass the value in another way.",
        )
    if (captured.code.co_flags ^ code.co_flags) & _KINDS:
        raise Refusal(
            f"{code.co_name} has become a function of another kind (a generator, a coroutine), and its caller waits for a value",
            remedy="Keep `yield`, `await` and `async` as they are while it runs.",
        )
    flow = flow_of(code)
    old = statements_of(captured.flow).function
    new = find_function(tree, code)
    statement = statements_of(captured.flow).of[captured.place]
    if old is None or new is None or statement is None or statement.node is None:
        return flow, _by_what_it_says(captured, flow), []
    exits = _exit_place(captured)
    aligned = align(old.body, statement.node, new.body, whole=exits)
    depth = _changed_depth(captured) if aligned.changed else _block_depth(captured)
    notes = ["the new body goes on at its first changed statement"] if aligned.changed and not exits else []
    if aligned.again:
        first = aligned.statement.lineno
        notes.append(f"the statements from line {first} on run again; `goto {aligned.again}` leaves them out")
    if aligned.passed:
        lines = ", ".join(map(str, aligned.passed))
        notes.append(f"line {lines} changed too, and ran already: not run again by itself")
    return flow, _place(captured, flow, aligned.statement, depth, exits), notes


def _exit_place(captured: Capture) -> bool:
    """Whether the crash was in the exit of a `with`."""
    begin = statements_of(captured.flow).begin_of(captured.place)
    return begin is not None and calls_exit(captured.flow, begin.place, captured.items)


def _changed_depth(captured: Capture) -> int:
    """How many items are kept when the crashed statement has changed: a loop begins anew, an open `with` stays open."""
    restarts = Restarts(captured.flow, captured.place, captured.items, frozenset())
    depth = len(restarts.base())
    for index, item in enumerate(restarts.open):
        if index >= depth and captured.flow.kind(item) in (EXIT, EXIT_SELF):
            depth = index + 1
    return depth


def _place(captured: Capture, flow: Flow, statement: ast.stmt, depth: int, exits: bool) -> int:
    """The place at which a statement of the new text begins with the blocks that are open."""
    kinds = captured.kinds
    found = [
        place
        for place in _beginnings(flow, statement.lineno)
        if _fits(flow, place, kinds, depth, exits=exits)
    ]
    if not found:
        raise NoPoint(
            f"line {statement.lineno} of the new text is no place at which the run could go on", remedy=_KEEP
        )
    # A `finally` stands in the bytecode once for each way into it: the same copy as the one that crashed.
    table = statements_of(captured.flow)
    owner, begin = table.of[captured.place], table.begin_of(captured.place)
    if owner is not None and begin is not None:
        old = _beginnings(captured.flow, owner.first)
        copies = [place for place in old if _fits(captured.flow, place, kinds, depth, exits=exits)]
        if len(copies) == len(found):
            rank = sum(place <= begin.place for place in copies) - 1
            return found[max(rank, 0)]
        way = _ways_on(captured.flow, begin.place)
        same = [place for place in found if _ways_on(flow, place) == way]
        if same or not way:
            return (same or found)[0]
        raise NoPoint(
            f"it cannot be told in which way line {statement.lineno} of the new text was reached: the ways out of its `try` "
            "have changed",
            remedy="Leave `return`, `break` and `continue` there as they were.",
        )
    return found[0]


def _ways_on(flow: Flow, place: int) -> list[set[object]]:
    """What the copies of `finally` bodies around a place lead to, the inner one's first."""
    table = statements_of(flow)
    ways: list[set[object]] = []
    for copy in Restarts(flow, place, flow.stacks[place] or (), frozenset()).copies():
        after = {following for here in copy for following in flow.successors(here)} - copy
        owners = [table.of[following] for following in after]
        ways.append(
            {header_of(owner.node) for owner in owners if owner is not None and owner.node is not None}
        )
    return ways


def _beginnings(flow: Flow, line: int) -> list[int]:
    table = statements_of(flow)
    return [
        place
        for place, owner in enumerate(table.of)
        if owner is not None and owner.first == line and table.is_start(place)
    ]


def _fits(flow: Flow, place: int, kinds: list[str], depth: int, *, exits: bool) -> bool:
    found = flow.kinds(place)
    if exits:
        stack = (flow.stacks[place] or ())[: len(kinds)]
        return found[: len(kinds)] == kinds and calls_exit(flow, place, stack)
    return found == kinds[: len(found)] and len(found) == depth


def _block_depth(captured: Capture) -> int:
    """How many items the block of the crashed statement keeps."""
    begin = statements_of(captured.flow).begin_of(captured.place)
    return min(len(begin.stack), len(captured.kinds)) if begin is not None else len(captured.kinds)


def _by_what_it_says(captured: Capture, flow: Flow) -> int:
    """Without a tree to go by (a lambda, a generator expression, no source): the first start that says something else.

    What is compared are instructions: without source the statements of the running body are its lines, and those of
    the new text need not be the same.
    """
    begin = statements_of(captured.flow).begin_of(captured.place)
    old, new = _starts(captured.flow), _starts(flow)
    if begin is None or begin.half or begin.place not in old:
        raise NoPoint("the crashed statement has no beginning that could be found again", remedy=_KEEP)
    wanted = captured.flow.kinds(begin.place)
    # The block of the crashed statement begins behind the last start that keeps less.
    index = old.index(begin.place)
    while index and len(captured.flow.kinds(old[index - 1])) >= len(wanted):
        index -= 1
    first, distance = old[index], begin.place - old[index]
    before, after = _said(captured.flow), _said(flow)
    start = _block_in(before, old[0], first, after, new[0])
    if start >= 0:
        same = _same(before[first:], after[start:])
        target = start + distance
        # The crashed statement itself, also where the new text counts it to a longer one.
        if same >= distance and flow.is_restart_point(target) and flow.kinds(target) == wanted:
            return target
        fitting = [place for place in new if start <= place <= start + same and flow.kinds(place) == wanted]
        if same < distance and fitting:
            return fitting[-1]
    raise NoPoint(
        "without the running body's source it cannot be told where the new one goes on", remedy=_KEEP
    )


def _block_in(
    before: list[tuple[object, ...]], top: int, first: int, after: list[tuple[object, ...]], new_top: int
) -> int:
    """Where the block that begins at `first` begins in the new body; -1 if it cannot be told.

    Args:
        before: what the running body says.
        top: where its first statement begins.
        first: where the block begins in it.
        after: what the new body says.
        new_top: where the first statement of that begins.
    """
    if _same(before[top:first], after[new_top:]) == first - top:
        return new_top + first - top
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return next(
        (b + first - a for a, b, size in matcher.get_matching_blocks() if a < first <= a + size),
        -1,
    )


def _same(one: list[tuple[object, ...]], other: list[tuple[object, ...]]) -> int:
    """How many items are the same at the beginning."""
    for index, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return index
    return min(len(one), len(other))


def _said(flow: Flow) -> list[tuple[object, ...]]:
    """What each instruction says; not where it jumps to, nor how the compiler proves that a local is bound."""
    said = {
        instruction.offset: (
            instruction.opname.replace("_BORROW", "").replace("_CHECK", ""),
            saying(pristine(instruction.argval))
            if isinstance(instruction.argval, CodeType)
            else ""
            if instruction.opcode in dis.hasjrel
            else instruction.argrepr,
        )
        for instruction in dis.get_instructions(flow.code)
    }
    return [said[instruction.offset] for instruction in flow.instructions]


def _starts(flow: Flow) -> list[int]:
    table = statements_of(flow)
    return [place for place in range(len(flow.instructions)) if table.is_start(place)]
