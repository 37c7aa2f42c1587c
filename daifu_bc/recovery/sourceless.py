"""Where the crashed frame goes on in a new body if there is no syntax tree to go by."""

from __future__ import annotations

import difflib
import dis
from types import CodeType
from typing import Final

from daifu_bc.analysis.flow import Flow
from daifu_bc.errors import NoPoint
from daifu_bc.recovery.capture import Capture
from daifu_bc.recovery.likeness import saying
from daifu_bc.recovery.restarts import statements_of
from daifu_bc.rewrite.barrier import pristine

_KEEP: Final = "Keep the blocks around the crashed statement as they are."


def place_by_instructions(captured: Capture, flow: Flow) -> int:
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
