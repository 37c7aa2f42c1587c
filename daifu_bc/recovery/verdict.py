"""Is it a crash? Whether somebody is going to handle an exception that has arrived at a frame.

The walk goes outward: in each frame the handlers around its present instruction, inner to outer, then what the C code
between two frames makes of the exception. No code of the program runs meanwhile, and nothing of it is kept alive: what
is remembered between two calls are numbers and sentences. It cannot be exact; the reasons say what was found.
"""

from __future__ import annotations

import builtins
import sys
import time
from collections.abc import Callable, Iterable
from threading import get_ident
from types import FrameType, TracebackType
from typing import Final

from daifu_bc.analysis import filters
from daifu_bc.recovery import carriers
from daifu_bc.recovery.answers import (
    Memory,
    Route,
    leave_alone,
    memories,
    new_memory,
    recall,
    remember,
    was_let_go,
)
from daifu_bc.recovery.attributes import traceback_of
from daifu_bc.recovery.callers import EXPECTED, called_by_name, swallowed
from daifu_bc.recovery.flight import CONTROL_FLOW, Flight, leaves_of
from daifu_bc.recovery.lookups import UNKNOWN
from daifu_bc.recovery.managers import stops
from daifu_bc.recovery.spots import Spot, Verdict, Where, arrival, forget_spots, spot_at, tables
from daifu_bc.recovery.unraisable import printed_in
from daifu_bc.recovery.waiting import routes_of_worker, worker_future
from daifu_bc.recovery.working import came_from_outside

__all__ = ["Route", "Verdict", "Where", "deliveries", "judge", "leave_alone"]

#: Told of each internal error; by default the exception silently goes its way.
on_internal_error: Callable[[Exception], None] | None = None

#: Asked where a frame's exception goes that does not go to the caller: how a task or a worker's job ends. Each is given
#: the frame, and returns None if it knows nothing of it.
deliveries: list[Callable[[FrameType], list[Route] | None]] = [routes_of_worker]

# By module and name: exceptions that cancel, looked for only where their module is loaded.
_CANCELLING: Final = (("asyncio.exceptions", "CancelledError"), ("trio", "Cancelled"))
# The same for what only says to a person that something was typed wrongly.
_SAYING: Final = (("IPython.core.error", "UsageError"),)
_MOST_DELIVERIES: Final = 20
_MOST_ATTEMPTS: Final = 5
_PATIENCE: Final = 0.005


# Ids of classes that never die: those that are held like any other, and of these the ones that C code may not expect.
_ORDINARY: Final = frozenset(
    id(kind)
    for kind in vars(builtins).values()
    if isinstance(kind, type)
    and issubclass(kind, Exception)
    and not issubclass(kind, (*CONTROL_FLOW, BaseExceptionGroup))
)
_UNEXPECTED: Final = frozenset(
    id(kind) for kind in vars(builtins).values() if id(kind) in _ORDINARY and not issubclass(kind, EXPECTED)
)

_NO_ROOM_LEFT: Final = (RecursionError, MemoryError)
_generation = carriers.generation
_NOT_A_CRASH: Final = Verdict(False, ("It is for control flow, nothing has gone wrong.",))
_CANCELLED: Final = Verdict(False, ("It cancels a task, nothing has gone wrong.",))
_SAID: Final = Verdict(False, ("It only says that something was typed wrongly.",))
_INTERRUPTED: Final = Verdict(False, ("KeyboardInterrupt is only held when asked for.",))
_NO_ROOM: Final = Verdict(False, ("The stack is too full here to tell; a frame further out may hold it.",))
_FAILED: Final = Verdict(False, ("An internal error of daifu_bc; the exception goes its way.",))


def judge(exception: BaseException, frame: FrameType) -> Verdict:
    """Whether an exception that has just arrived at `frame` is to be held there.

    Args:
        exception: it.
        frame: where it is, with a traceback entry of this frame in front if it has one.
    """
    # The stack and memory may be exhausted: a way that is often taken needs no other function and hardly an object.
    try:
        memory = memories.get(get_ident())
        if memory is None:
            memory = new_memory(get_ident())
        traceback = traceback_of(exception)
        if memory.exception == id(exception) and traceback is not None:
            past = traceback.tb_next
            if (
                past is not None
                and memory.entry == id(past)
                and memory.holder != id(frame)
                and memory.lasti == past.tb_lasti
            ):
                there = past.tb_frame
                if memory.frame == id(there) and memory.code == id(there.f_code):
                    memory.entry = id(traceback)
                    memory.lasti = traceback.tb_lasti
                    memory.frame = id(frame)
                    memory.code = id(frame.f_code)
                    return memory.verdict
        return _judge(exception, frame, traceback, memory)
    except _NO_ROOM_LEFT:
        return _NO_ROOM
    except Exception as error:
        if came_from_outside(error):  # a signal handler's, which nobody may swallow
            raise
        # Whatever goes wrong here must not change what the program does.
        _report(error)
        return _FAILED


def _judge(
    exception: BaseException, frame: FrameType, traceback: TracebackType | None, memory: Memory
) -> Verdict:
    spot: Spot | None = None
    if memory.exception == id(exception):
        if traceback is not None and memory.entry == id(traceback):
            if (
                traceback.tb_frame is frame
                and memory.lasti == traceback.tb_lasti
                and memory.frame == id(frame)
                and memory.code == id(frame.f_code)
            ):
                spot = arrival(frame, traceback.tb_lasti)
                if spot.again and (memory.holder != id(frame) or memory.target in spot.targets):
                    return memory.verdict  # another barrier of the same frame, behind a clean-up
        else:
            known = recall(memory, frame, traceback)
            if known is not None:
                return known
        memory.exception = 0
    kind = type(exception)
    leaves = None
    if id(kind) not in _ORDINARY:
        if issubclass(kind, CONTROL_FLOW):
            return _NOT_A_CRASH
        if not issubclass(kind, Exception):
            if issubclass(kind, KeyboardInterrupt) and not filters.wants_keyboard_interrupt():
                return _INTERRUPTED
            if cancels(kind):
                return _CANCELLED
        elif _is_one_of(kind, _SAYING):
            return _SAID
        leaves = leaves_of(exception)
    if memory.let_go:
        known = was_let_go(memory, exception, frame, traceback)
        if known is not None:
            return known
    if _generation != carriers.generation:
        _forget()
    walk = _Walk(kind, leaves)
    verdict = walk.run(frame, traceback, spot)
    remember(memory, exception, frame, traceback, walk.holder, walk.target, verdict)
    return verdict


def _report(error: Exception) -> None:
    try:
        if on_internal_error is not None:
            on_internal_error(error)
    except Exception:  # noqa: BLE001 - nobody is left to be told
        return


def cancels(kind: type[BaseException]) -> bool:
    """Whether it is how asyncio or trio cancels."""
    return _is_one_of(kind, _CANCELLING)


def _is_one_of(kind: type[BaseException], names: tuple[tuple[str, str], ...]) -> bool:
    for module, name in names:
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


class _Walk(Flight):
    """The way outward of one exception."""

    __slots__ = ("deliveries", "holder", "reasons", "target")

    def __init__(self, kind: type[BaseException], leaves: tuple[type[BaseException], ...] | None) -> None:
        self.kind = kind
        self.leaves = leaves
        self.reasons: list[str] = []
        self.holder = 0
        self.target = -1
        self.deliveries = 0

    def run(self, frame: FrameType, traceback: TracebackType | None, spot: Spot | None) -> Verdict:
        """Judges from `frame` outward; `spot` is what it meets first, if that is known."""
        if spot is None:
            offset = frame.f_lasti
            if traceback is not None and traceback.tb_frame is frame:
                offset = traceback.tb_lasti
            spot = arrival(frame, offset)
        if spot.thrown_in:
            return self._no(
                "It was thrown into a generator at a `yield`; where it came from it has been judged."
            )
        verdict = self.outward(frame, spot)
        if verdict is not None:
            return verdict
        printed = printed_in(frame)
        if printed:
            return self._no(f"An error in {printed} is only printed.")
        return Verdict(True, (*self.reasons, "Nobody handles it."))

    def outward(self, frame: FrameType, spot: Spot) -> Verdict | None:
        """Goes outward from a frame; None if nobody handles the exception."""
        while True:
            if spot.matters:
                verdict = self._meet(frame, spot)
                if verdict is not None:
                    return verdict
                if spot.policy == carriers.OUTERMOST:
                    return None
            outer = frame.f_back
            special = spot.ends_specially
            if special or outer is None:
                routes = self._routes(frame, outer) if special else None
                if routes is not None:
                    return self._deliver(routes)
                if outer is None:
                    return None
            try:
                next_spot = tables[id(outer.f_code)][outer.f_lasti]
            except KeyError:
                next_spot = spot_at(outer, outer.f_lasti)
            if next_spot.site.is_silent:
                return self._no(
                    "The interpreter called this when an object died; its errors are only printed.", outer
                )
            if (id(self.kind) not in _UNEXPECTED and issubclass(self.kind, EXPECTED)) and (
                spot.asks or issubclass(self.kind, AttributeError)
            ):
                how = swallowed(frame, outer, next_spot.site, self.kind)
                if how:
                    return self._no(f"In {next_spot.where}, {how}.", outer)
            if special and spot.is_del and not called_by_name(frame, outer, next_spot.site):
                return self._no("Errors in `__del__` are only printed.", outer)
            frame, spot = outer, next_spot

    def _no(
        self, reason: str, holder: FrameType | None = None, where: Where | None = None, target: int = -1
    ) -> Verdict:
        if holder is not None:
            self.holder = id(holder)
            self.target = target
        return Verdict(False, (*self.reasons, reason), where)

    def _meet(self, frame: FrameType, spot: Spot) -> Verdict | None:
        """Lets the exception meet the handlers around the present instruction of a frame."""
        if spot.policy is not None:
            if spot.policy == carriers.HANDLES:
                return self._no(f"{spot.where} handles it: a carrier.", frame, spot.where)
            if spot.policy == carriers.PASSES:
                self.reasons.append(f"{spot.where} only carries other code; what it catches is lost.")
            if spot.policy in (carriers.PASSES, carriers.OUTERMOST):
                return None
        for step in spot.steps:
            if step.is_with:
                stopped, how = stops(step.handler, frame, self.kind)
                if stopped:
                    return self._no(f"In {step.where}, {how}.", frame, step.where, step.handler.target)
                self.reasons.append(step.passes)
            elif step.meetings:
                meetings = step.meetings
                if spot.policy == carriers.HELD_THROUGH:
                    meetings = step.narrow
                    if meetings != step.meetings:
                        self.reasons.append(
                            f"What {step.where} catches broadly does not count: hold-through."
                        )
                clause, how = self.meet(meetings, frame)
                if clause is not None:
                    if how:
                        self.holder = id(frame)
                        self.target = step.handler.target
                        return step.verdict(clause, how, tuple(self.reasons))
                    self.reasons += step.verdict(clause, how).reasons
            else:
                self.reasons.append(step.passes)
        return None

    def _routes(self, frame: FrameType, outer: FrameType | None) -> list[Route] | None:
        """Where the exception goes if this frame's end is a task's, not a call's."""
        if outer is not None:
            spot = spot_at(outer, outer.f_lasti)
            if spot.site.delegates:
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
            kept = self.kind, self.leaves
            if route.group:
                self.regroup((self.kind,))
            verdict = self._along(route)
            if verdict is not None:
                return verdict
            self.kind, self.leaves = kept
        return None

    def _along(self, route: Route) -> Verdict | None:
        for number, frame in enumerate(route.frames):
            spot = spot_at(frame, frame.f_lasti)
            if not number and route.skipped:
                spot = spot.without(route.skipped)
            if number == len(route.frames) - 1 and route.outward:
                return self.outward(frame, spot)
            if spot.matters:
                verdict = self._meet(frame, spot)
                if verdict is not None or spot.policy == carriers.OUTERMOST:
                    return verdict
        if route.frames and not route.outward:
            routes = self._routes(route.frames[-1], None)
            if routes is not None:
                return self._deliver(routes)
        return None
