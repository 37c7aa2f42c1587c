"""Where the crashed frame goes on in the new body of its function."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass, field
from types import CellType, CodeType
from typing import Final

from daifu_bc.analysis.align import Aligned, align
from daifu_bc.analysis.counterparts import header_of
from daifu_bc.analysis.flow import EXIT, EXIT_SELF, Flow
from daifu_bc.analysis.statements import Statement, find_function
from daifu_bc.errors import NoPoint, Refusal
from daifu_bc.recovery.bodies import flow_of
from daifu_bc.recovery.capture import Capture
from daifu_bc.recovery.restarts import Restarts, calls_exit, statements_of
from daifu_bc.recovery.skips import Skip
from daifu_bc.recovery.sourceless import place_by_instructions
from daifu_bc.recovery.variables import renamed

_KINDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_KEEP: Final = "Keep the blocks around the crashed statement as they are, or `goto` another line first."


@dataclass
class Transfer:
    """Where a frame goes on in a new body.

    Attributes:
        flow: the new body's analysis.
        place: the place in it.
        notes: what there is to say about it, sentences.
        first: handlers of `finally` blocks of the running body that have to run before.
        leaves: whether blocks of the running body have to be left before.
        renamed: variables that have another name in the new body, old name -> new name.
        cells: those of variables around it that the running body does not use.
        passed: lines of changed statements that have run, and that the notes tell of.
    """

    flow: Flow
    place: int
    notes: list[str] = field(default_factory=list)
    first: frozenset[int] = frozenset()
    leaves: bool = False
    renamed: dict[str, str] = field(default_factory=dict)
    cells: dict[str, CellType] = field(default_factory=dict)
    passed: tuple[int, ...] = ()


def transfer(
    captured: Capture, code: CodeType, tree: ast.Module, cells: dict[str, CellType] | None = None
) -> Transfer:
    """Where a new body goes on: at its first changed statement in the crashed one's block, else at the crashed one.

    Args:
        captured: the crashed frame.
        code: the new pristine code object.
        tree: the syntax tree that it was compiled from.
        cells: those of variables around it that the running body does not use.

    Raises:
        NoPoint: there is no such place.
        Refusal: the new body needs variables of an outer function that the frame does not have.
    """
    cells = cells or {}
    known = {*captured.code.co_freevars, *captured.code.co_cellvars, *cells}
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
        return Transfer(flow, place_by_instructions(captured, flow), cells=cells)
    names = renamed(old, new, captured.code, code)
    exits = _exit_place(captured)
    aligned = align(old.body, statement.node, new.body, whole=exits)
    if aligned.anchor is statement.node:
        restarts = Restarts(captured.flow, captured.place, captured.items, frozenset())
        depths = [_block_depth(captured)]
        if aligned.changed:
            depths = [_changed_depth(captured, restarts), len(restarts.base())]
        begin = statements_of(captured.flow).begin_of(captured.place)
        place = _place(
            captured, flow, aligned, depths, statement, begin.place if begin else None, exits=exits
        )
        leaves = aligned.changed and len(flow.stacks[place] or ()) < depths[0]
        notes = _notes(aligned, names, exits=exits)
        return Transfer(flow, place, notes, frozenset(), leaves, names, cells, tuple(aligned.passed))
    # A block is gone: it is left, and the run goes on in the one around it.
    around = next(one for one in statements_of(captured.flow).all() if one.node is aligned.anchor)
    origin = _begin_around(captured, around)
    depth = len(captured.flow.stacks[origin] or ())
    place = _place(captured, flow, aligned, [depth], around, origin)
    first = Restarts(captured.flow, captured.place, captured.items, frozenset()).finally_between(origin)
    leaves = bool(first) or any(captured.flow.kind(item) == EXIT for item in captured.items[depth:])
    notes = _notes(aligned, names)
    return Transfer(flow, place, notes, frozenset(first), leaves, names, cells, tuple(aligned.passed))


def _notes(aligned: Aligned, names: dict[str, str], *, exits: bool = False) -> list[str]:
    """What there is to say about where a new body goes on."""
    notes = []
    first = aligned.statement.lineno
    if aligned.changed and not exits:
        what = (
            "behind the statements that are left of its block"
            if aligned.behind
            else "at its first changed statement"
        )
        notes.append(f"the new body goes on {what}")
    if aligned.gone:
        lines = ", ".join(f"`{_keyword(node)}` of line {node.lineno}" for node in aligned.gone)
        notes.append(f"left, as the new text has it no more or elsewhere: {lines}")
    if aligned.again:
        notes.append(f"the statements from line {first} on run again; `goto {aligned.again}` leaves them out")
    if aligned.passed:
        lines = ", ".join(map(str, aligned.passed))
        notes.append(
            f"line {lines} changed too, and ran already: not run again by itself; `goto {aligned.passed[0]}` does"
        )
    notes += [
        f"{new} has the value of {old}, which it stands for in the new text" for old, new in names.items()
    ]
    return notes


def _keyword(node: ast.stmt) -> str:
    names = {"AsyncFor": "async for", "AsyncWith": "async with", "TryStar": "try"}
    return names.get(type(node).__name__, type(node).__name__.lower())


def _begin_around(captured: Capture, around: Statement) -> int:
    """Where a compound statement began in whose blocks the crash was.

    Raises:
        NoPoint: that cannot be told.
    """
    flow, table = captured.flow, statements_of(captured.flow)
    found = [
        place
        for place, owner in enumerate(table.of)
        if owner is around and table.is_start(place)
        if flow.stacks[place] == captured.items[: len(flow.stacks[place] or ())]
    ]
    if not found:
        raise NoPoint(
            f"it cannot be told what the block of line {around.first} keeps, which is gone from the new text",
            remedy=_KEEP,
        )
    # Not where it ends: what follows it in an `except` body, say, keeps less on the stack.
    begun = set(table.before(captured.place))
    found = [place for place in found if place in begun] or found
    least = min(len(flow.stacks[place] or ()) for place in found)
    fitting = [place for place in found if len(flow.stacks[place] or ()) == least]
    before = [place for place in fitting if place <= captured.place]
    return max(before) if len(before) > 1 else (before or fitting)[0]


def _exit_place(captured: Capture) -> bool:
    """Whether the crash was in the exit of a `with`."""
    begin = statements_of(captured.flow).begin_of(captured.place)
    return begin is not None and calls_exit(captured.flow, begin.place, captured.items)


def _changed_depth(captured: Capture, restarts: Restarts) -> int:
    """How many items are kept when the crashed statement has changed: a loop begins anew, an open `with` stays open."""
    depth = len(restarts.base())
    for index, item in enumerate(restarts.open):
        if index >= depth and captured.flow.kind(item) in (EXIT, EXIT_SELF):
            depth = index + 1
    return depth


def _place(
    captured: Capture,
    flow: Flow,
    aligned: Aligned,
    depths: list[int],
    around: Statement,
    origin: int | None,
    *,
    exits: bool = False,
) -> int:
    """The place at which a statement of the new text begins with the blocks that are open.

    Args:
        captured: the crashed frame.
        flow: the new body.
        aligned: the statement.
        depths: how many items are kept there; the first number that has a place.
        around: the statement of the running body that it stands for.
        origin: where that begins.
        exits: whether it is the exit of a `with` that is called.
    """
    statement, kinds = aligned.statement, captured.kinds
    beginnings = (
        _behind(flow, statement, kinds[: depths[-1]]) if aligned.behind else _beginnings(flow, statement)
    )
    found: list[int] = []
    for depth in depths:
        found = [place for place in beginnings if _fits(flow, place, kinds, depth, exits=exits)]
        if found:
            break
    else:
        raise NoPoint(
            f"line {statement.lineno} of the new text is no place at which the run could go on", remedy=_KEEP
        )
    # A `finally` stands in the bytecode once for each way into it: the same copy as the one that crashed.
    if origin is not None and around.node is not None:
        old = _beginnings(captured.flow, around.node)
        copies = [place for place in old if _fits(captured.flow, place, kinds, depth, exits=exits)]
        if len(copies) == len(found):
            rank = sum(place <= origin for place in copies) - 1
            return found[max(rank, 0)]
        way = _ways_on(captured.flow, origin)
        same = [place for place in found if _said(_ways_on(flow, place)) == _said(way)]
        if not same:  # what follows may have been edited as well, a variable renamed in it, say
            same = [place for place in found if _kinds_of(_ways_on(flow, place)) == _kinds_of(way)]
            same = same if len(same) == 1 else []
        if same or not way:
            return (same or found)[0]
        raise NoPoint(
            f"it cannot be told in which way line {statement.lineno} of the new text was reached: the ways out of its `try` "
            "have changed",
            remedy="Leave `return`, `break` and `continue` there as they were.",
        )
    return found[0]


def _behind(flow: Flow, statement: ast.stmt, kinds: list[str]) -> list[int]:
    """Where a body goes on behind a statement."""
    found = []
    table = statements_of(flow)
    for place, owner in enumerate(table.of):
        stack = flow.stacks[place]
        if owner is None or stack is None or not _is_at(owner, statement) or flow.kinds(place) != kinds:
            continue
        if table.is_start(place):
            start = Skip(Restarts(flow, place, stack, frozenset())).start()
            if not start.returns and not start.half:
                found.append(start.place)
    return list(dict.fromkeys(found))


def _is_at(owner: Statement, statement: ast.stmt) -> bool:
    """Whether two statements stand in the same place; the trees may be two of the same text."""
    node = owner.node
    if node is None:
        return owner.first == statement.lineno
    return (node.lineno, node.col_offset) == (statement.lineno, statement.col_offset)


def _kinds_of(ways: list[set[ast.stmt]]) -> list[set[object]]:
    return [{type(node) for node in way} for way in ways]


def _said(ways: list[set[ast.stmt]]) -> list[set[object]]:
    return [{header_of(node) for node in way} for way in ways]


def _ways_on(flow: Flow, place: int) -> list[set[ast.stmt]]:
    """What the copies of `finally` bodies around a place lead to, the inner one's first."""
    table = statements_of(flow)
    ways: list[set[ast.stmt]] = []
    for copy in Restarts(flow, place, flow.stacks[place] or (), frozenset()).copies():
        after = {following for here in copy for following in flow.successors(here)} - copy
        owners = [table.of[following] for following in after]
        ways.append({owner.node for owner in owners if owner is not None and owner.node is not None})
    return ways


def _beginnings(flow: Flow, statement: ast.stmt) -> list[int]:
    table = statements_of(flow)
    return [
        place
        for place, owner in enumerate(table.of)
        if owner is not None and _is_at(owner, statement) and table.is_start(place)
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
