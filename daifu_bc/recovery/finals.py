"""Where a place lies as seen from a `finally`: in the blocks before it, or in its body."""

from __future__ import annotations

from daifu_bc.analysis.flow import Flow
from daifu_bc.analysis.statements import Statement, Statements


def in_try(flow: Flow, statements: Statements, place: int, handler: int) -> bool:
    """Whether a place lies in the blocks that a `finally` belongs to, by the statements of the program.

    Args:
        flow: the code.
        statements: its statements.
        place: the place.
        handler: where the handler begins that runs the `finally`.
    """
    part = _part_of_try(flow, statements, place, handler)
    return part is not None and not _is_final(part)


def in_finally(flow: Flow, statements: Statements, place: int, handler: int) -> bool:
    """Whether a place lies in the body of a `finally`, in any copy of it: who goes there runs it.

    Args:
        flow: the code.
        statements: its statements; without source those that begin where the body does.
        place: the place.
        handler: where the handler begins that runs the `finally`.
    """
    part = _part_of_try(flow, statements, place, handler)
    if part is not None:
        return _is_final(part)
    owner = statements.of[place]
    return owner is not None and owner.node is None and owner is _first(flow, statements, handler)


def _part_of_try(flow: Flow, statements: Statements, place: int, handler: int) -> Statement | None:
    """The statement around a place that stands directly in the `try` that a handler belongs to; None if none does."""
    final = _first(flow, statements, handler)
    while final is not None and not _is_final(final):
        final = final.parent
    inner = statements.of[place] if final is not None else None
    while final is not None and inner is not None and inner.parent is not final.parent:
        inner = inner.parent
    return inner


def _first(flow: Flow, statements: Statements, handler: int) -> Statement | None:
    """The first statement that a handler runs."""
    return next((owner for owner in statements.of[flow.index[handler] + 1 :] if owner is not None), None)


def _is_final(statement: Statement) -> bool:
    """Whether a statement stands directly in a `finally`."""
    around = statement.parent
    return around is not None and statement.node in getattr(around.node, "finalbody", ())
