"""The statement of a new body that corresponds to one of the old body, block by block."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from types import CodeType

from daifu_bc.analysis.align import align
from daifu_bc.analysis.flow import Flow
from daifu_bc.errors import NoPoint
from daifu_bc.recovery.capture import Capture
from daifu_bc.recovery.restarts import statements_of


def further_variables(old: CodeType, new: CodeType) -> set[str]:
    """The variables of the functions around it that only a new body uses: a frame of the old one has no cells for them."""
    return set(new.co_freevars) - set(old.co_freevars) - set(old.co_cellvars)


def counterpart(captured: Capture, flow: Flow) -> int:
    """Where in a new body the statement begins that a frame is about to run.

    Args:
        captured: the frame, at the beginning of a statement.
        flow: the new body.

    Raises:
        NoPoint: there is no such statement, or not in the same blocks.
    """
    old, new = statements_of(captured.flow), statements_of(flow)
    statement = old.of[captured.place]
    missing = further_variables(captured.code, flow.code)
    if old.function is None or new.function is None or statement is None or statement.node is None or missing:
        raise NoPoint("it cannot be told which statement of the new body is meant")
    aligned = align(old.function.body, statement.node, new.function.body, whole=True)
    mine = _beginnings(captured.flow, statement.node, captured.kinds)
    found = _beginnings(flow, aligned.statement, captured.kinds)
    if len(found) != len(mine) or captured.place not in mine:
        raise NoPoint(f"line {aligned.statement.lineno} of the new body does not begin in the same blocks")
    return found[mine.index(captured.place)]


def _beginnings(flow: Flow, node: ast.AST, kinds: Iterable[str]) -> list[int]:
    """Where a statement begins; in several places where the compiler has repeated it."""
    table, wanted = statements_of(flow), list(kinds)
    return [
        place
        for place, owner in enumerate(table.of)
        if owner is not None and owner.node is node and table.is_start(place) and flow.kinds(place) == wanted
    ]
