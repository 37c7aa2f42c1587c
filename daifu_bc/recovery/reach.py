"""Whether an exception that leaves one frame arrives in another one further out."""

from __future__ import annotations

from types import FrameType

from daifu_bc.recovery.flight import Flight, leaves_of
from daifu_bc.recovery.managers import stops
from daifu_bc.recovery.spots import Spot, spot_at


def obstacle(inner: FrameType, frame: FrameType, exception: BaseException) -> str:
    """What keeps an exception that leaves `inner` from arriving in `frame`; empty if nothing does.

    Carriers are no different here: what they catch does not go on, whoever may look at it later.

    Args:
        inner: a frame.
        frame: one of those that it was called from.
        exception: what leaves it.
    """
    flight = Flight(type(exception), leaves_of(exception))
    left = inner
    while True:
        outer = left.f_back
        if outer is None:
            return "it is not on this thread's stack"
        spot = spot_at(outer, outer.f_lasti)
        if spot_at(left, left.f_lasti).ends_specially and not spot.site.delegates:
            return f"what leaves `{left.f_code.co_qualname}` does not go to its caller"
        if spot.site.is_silent:
            return f"the interpreter has called `{left.f_code.co_qualname}` by itself, and only prints its errors"
        if outer is frame:
            return ""
        reason = _taken(flight, spot, outer)
        if reason:
            return reason
        left = outer


def taken_at(frame: FrameType, exception: BaseException) -> str:
    """What in a frame takes an exception that is raised where it is now; empty if nothing does."""
    return _taken(Flight(type(exception), leaves_of(exception)), spot_at(frame, frame.f_lasti), frame)


def _taken(flight: Flight, spot: Spot, frame: FrameType) -> str:
    for step in spot.steps:
        if step.is_with:
            stopped, how = stops(step.handler, frame, flight.kind)
            if stopped:
                return f"in {step.where}, {how}"
        elif step.meetings:
            clause, how = flight.meet(step.meetings, frame)
            if clause is not None and how:
                return f"a clause at {step.where} {how} it"
    return ""
