"""Is it a crash? Whether somebody is going to handle an exception that has arrived at a frame.

The walk goes outward: in each frame the handlers around its present instruction, inner to outer, then what the C code
between two frames makes of the exception. No code of the program runs meanwhile, and nothing of it is kept alive: what
is remembered between two calls are numbers and sentences. It cannot be exact; the reasons say what was found.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable
from types import FrameType, TracebackType
from typing import Final

from daifu_bc.recovery import carriers
from daifu_bc.recovery.answers import Route, leave_alone, remember, remembered
from daifu_bc.recovery.callers import EXPECTED, calls_directly, swallowed
from daifu_bc.recovery.flight import Flight, is_control_flow, leaves_of
from daifu_bc.recovery.lookups import UNKNOWN, evaluate, frame_scope
from daifu_bc.recovery.spots import Spot, Verdict, Where, forget_spots, spot_at, spot_before
from daifu_bc.recovery.waiting import routes_of_worker, worker_future

__all__ = ["Route", "Verdict", "Where", "deliveries", "judge", "leave_alone"]

#: Whether a KeyboardInterrupt is held like any other exception.
hold_keyboard_interrupt = False

#: Told of each internal error; by default the exception silently goes its way.
on_internal_error: Callable[[Exception], None] | None = None

#: Asked where a frame's exception goes that does not go to the caller: how a task or a worker's job ends. Each is given
#: the frame, and returns None if it knows nothing of it.
deliveries: list[Callable[[FrameType], list[Route] | None]] = [routes_of_worker]

# By module and name: exceptions that cancel, looked for only where their module is loaded.
_CANCELLING: Final = (("asyncio.exceptions", "CancelledError"), ("trio", "Cancelled"))
_MOST_DELIVERIES: Final = 20
_MOST_ATTEMPTS: Final = 5
_PATIENCE: Final = 0.005


_generation = carriers.generation
_NOT_A_CRASH: Final = Verdict(False, ("It is for control flow, nothing has gone wrong.",))
_CANCELLED: Final = Verdict(False, ("It cancels a task, nothing has gone wrong.",))
_INTERRUPTED: Final = Verdict(False, ("KeyboardInterrupt is only held when asked for.",))
_NO_ROOM: Final = Verdict(False, ("The stack is too full here to tell; a frame further out may hold it.",))
_FAILED: Final = Verdict(False, ("An internal error of daifu_bc; the exception goes its way.",))


def judge(exception: BaseException, frame: FrameType) -> Verdict:
    """Whether an exception that has just arrived at `frame` is to be held there.

    Args:
        exception: it.
        frame: where it is, with a traceback entry of this frame in front if it has one.
    """
    try:
        kind = type(exception)
        if is_control_flow(kind):
            return _NOT_A_CRASH
        if not issubclass(kind, Exception):
            if issubclass(kind, KeyboardInterrupt) and not hold_keyboard_interrupt:
                return _INTERRUPTED
            if cancels(kind):
                return _CANCELLED
        traceback = exception.__traceback__
        known = remembered(exception, frame, traceback)
        if known is not None:
            return known
        if _generation != carriers.generation:
            _forget()
        walk = _Walk(Flight(kind, leaves_of(exception)))
        verdict = walk.run(frame, traceback)
        remember(exception, frame, traceback, walk.holder, verdict)
        return verdict
    except RecursionError:
        return _NO_ROOM
    except Exception as error:  # noqa: BLE001 - whatever goes wrong here must not change what the program does
        _report(error)
        return _FAILED


def _report(error: Exception) -> None:
    try:
        if on_internal_error is not None:
            on_internal_error(error)
    except Exception:  # noqa: BLE001 - nobody is left to be told
        return


def cancels(kind: type[BaseException]) -> bool:
    """Whether it is how asyncio or trio cancels."""
    for module, name in _CANCELLING:
        loaded = sys.modules.get(module)
        if loaded is not None:
            cls = loaded.__dict__.get(name)
            if type(cls) is type and issubclass(kind, cls):
                return True
    return False


def _forget() -> None:
    global _generation
    _generation = carriers.generation
    forget_spots()


class _Walk:
    """The way outward of one exception."""

    __slots__ = ("deliveries", "flight", "holder", "reasons")

    def __init__(self, flight: Flight) -> None:
        self.flight = flight
        self.reasons: list[str] = []
        self.holder = 0
        self.deliveries = 0

    def run(self, frame: FrameType, traceback: TracebackType | None) -> Verdict:
        """Judges from `frame` outward."""
        offset = frame.f_lasti
        if traceback is not None and traceback.tb_frame is frame:
            offset = traceback.tb_lasti
        spot = spot_at(frame, offset)
        if spot is not None:
            if spot.thrown_in:
                return self._no(
                    "It was thrown into a generator at a `yield`; where it came from it has been judged."
                )
            before = spot_before(frame)
            if before is not None:
                spot = before
        verdict = self.outward(frame, spot)
        if verdict is not None:
            return verdict
        hook = _hook_on(frame)
        if hook:
            return self._no(f"An error in `{hook}` is only printed.")
        return Verdict(True, (*self.reasons, "Nobody handles it."))

    def outward(self, frame: FrameType, spot: Spot | None) -> Verdict | None:
        """Goes outward from a frame; None if nobody handles the exception."""
        flight = self.flight
        while True:
            if spot is not None and spot.matters:
                verdict = self._meet(frame, spot)
                if verdict is not None:
                    return verdict
                if spot.policy == carriers.OUTERMOST:
                    return None
            outer = frame.f_back
            special = spot is not None and spot.ends_specially
            if special or outer is None:
                routes = self._routes(frame, outer) if special else None
                if routes is not None:
                    return self._deliver(routes)
                if outer is None:
                    return None
            next_spot = spot_at(outer, outer.f_lasti)
            if next_spot is not None:
                if next_spot.site.is_silent:
                    return self._no(
                        "The interpreter called this when an object died; its errors are only printed.", outer
                    )
                if issubclass(flight.kind, EXPECTED):
                    how = swallowed(frame, outer, next_spot.site, flight.kind)
                    if how:
                        return self._no(f"In {next_spot.where}, {how}.", outer)
                if (
                    special
                    and spot is not None
                    and spot.is_del
                    and not _called_by_name(frame, outer, next_spot)
                ):
                    return self._no("Errors in `__del__` are only printed.", outer)
            frame, spot = outer, next_spot

    def _no(self, reason: str, holder: FrameType | None = None, where: Where | None = None) -> Verdict:
        if holder is not None:
            self.holder = id(holder)
        return Verdict(False, (*self.reasons, reason), where)

    def _meet(self, frame: FrameType, spot: Spot) -> Verdict | None:
        """Lets the exception meet the handlers around the present instruction of a frame."""
        if spot.policy is not None:
            if spot.policy == carriers.HANDLES:
                return self._no(f"{spot.where} handles it: a carrier.", frame, spot.where)
            if spot.policy == carriers.PASSES:
                self.reasons.append(f"{spot.where} only carries other code; what it catches is lost.")
                return None
        for step in spot.steps:
            if step.is_with:
                stopped, how = step.stops(frame, self.flight.kind)
                if stopped:
                    return self._no(f"In {step.where}, {how}.", frame, step.where)
                self.reasons.append(step.passes)
            elif step.handler.clauses:
                clause, how = self.flight.meet(step.handler, frame)
                if how:
                    assert clause is not None
                    if not self.reasons:
                        self.holder = id(frame)
                        return step.verdict(clause, how)
                    return self._no(step.sentence(clause, how), frame, step.clause_where(clause))
                if clause is not None:
                    self.reasons.append(step.sentence(clause, ""))
            else:
                self.reasons.append(step.passes)
        return None

    def _routes(self, frame: FrameType, outer: FrameType | None) -> list[Route] | None:
        """Where the exception goes if this frame's end is a task's, not a call's."""
        if outer is not None:
            spot = spot_at(outer, outer.f_lasti)
            if spot is not None and spot.site.delegates:
                return None
        for attempt in range(_MOST_ATTEMPTS):
            found: list[Route] | None = None
            for ask in deliveries:
                routes = ask(frame)
                if routes is not None:
                    found = [*(found or ()), *routes]
            if found or found is None or worker_future(frame) is UNKNOWN:
                return found
            if attempt < _MOST_ATTEMPTS - 1:
                # A job may fail before the thread that submitted it has come to wait for it.
                time.sleep(_PATIENCE)
        return []

    def _deliver(self, routes: Iterable[Route]) -> Verdict | None:
        """Follows each route; the exception is handled if somebody at the end of one handles it."""
        self.deliveries += 1
        if self.deliveries > _MOST_DELIVERIES:
            return None
        for route in routes:
            if route.reason:
                self.reasons.append(route.reason)
            if route.handled:
                return self._no(route.handled)
            kept = self.flight.kind, self.flight.leaves
            if route.group:
                self.flight.regroup((self.flight.kind,))
            verdict = self._along(route)
            if verdict is not None:
                return verdict
            self.flight.kind, self.flight.leaves = kept
        return None

    def _along(self, route: Route) -> Verdict | None:
        for number, frame in enumerate(route.frames):
            spot = spot_at(frame, frame.f_lasti)
            if spot is not None and not number and route.skipped:
                spot = spot.without(route.skipped)
            if number == len(route.frames) - 1 and route.outward:
                return self.outward(frame, spot)
            if spot is not None and spot.matters:
                verdict = self._meet(frame, spot)
                if verdict is not None:
                    return verdict
        if route.frames and not route.outward:
            routes = self._routes(route.frames[-1], None)
            if routes is not None:
                return self._deliver(routes)
        return None


def _called_by_name(inner: FrameType, outer: FrameType, spot: Spot) -> bool:
    """Whether the frame is called from the program, and not by the interpreter."""
    call = spot.site.call
    if call is None:
        return False
    function = evaluate(call.function, frame_scope(outer))
    return calls_directly(None if function is UNKNOWN else function, call.function, inner.f_code)


def _hook_on(frame: FrameType | None) -> str:
    """The name of a hook for errors, if the frame or one around it is one; the interpreter prints what it raises."""
    hooks = {"sys.excepthook": sys.excepthook, "sys.unraisablehook": sys.unraisablehook}
    hooks["threading.excepthook"] = threading.excepthook
    codes = {id(getattr(hook, "__code__", None)): name for name, hook in hooks.items()}
    while frame is not None:
        name = codes.get(id(frame.f_code))
        if name is not None:
            return name
        frame = frame.f_back
    return ""
