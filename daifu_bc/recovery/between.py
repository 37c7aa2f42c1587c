"""A frame between two statements that nothing has happened in: how it is found, and taken to its barrier."""

from __future__ import annotations

from types import FrameType

from daifu_bc.analysis.code import entry_at, exception_entries
from daifu_bc.analysis.flow import Flow
from daifu_bc.analysis.handlers import may_catch
from daifu_bc.errors import DaifuError
from daifu_bc.recovery.capture import Capture, foresee, leads_to_barrier
from daifu_bc.recovery.restarts import statements_of


class Paused(BaseException):
    """Takes a frame to its barrier, so that it can go on elsewhere."""

    # A person reads it without the name of a module that means nothing to them.
    __module__ = "builtins"


def at_statement(frame: FrameType) -> Capture | None:
    """The frame as it would be captured, if it is about to begin a statement."""
    try:
        captured = foresee(frame)
    except DaifuError:
        return None
    flow, place = captured.flow, captured.place
    depth = len(flow.stacks[place] or ())
    # What is raised there must find all that lies on the stack: not so while a `with` is being entered.
    entry = entry_at(exception_entries(frame.f_code.co_exceptiontable), frame.f_lasti)
    if entry is None or not entry.depth == depth == len(captured.items):
        return None
    # What cannot raise (a jump) has no barrier: the program's own `finally` would run first. Where clauses of the
    # program's may catch, these are asked first, and the barrier is behind them.
    own = flow.entry(place)
    if not leads_to_barrier(frame.f_code, entry) and (own is None or not may_catch(flow, own)):
        return None
    return captured if statements_of(flow).is_start(place) or _is_test_again(flow, place) else None


def _is_test_again(flow: Flow, place: int) -> bool:
    """Whether a loop begins anew here: where its body is empty no other statement begins in it."""
    return flow.is_restart_point(place) and any(
        before >= place for before in statements_of(flow).predecessors(place)
    )
