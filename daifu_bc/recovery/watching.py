"""Calls back while certain frames run, instruction by instruction, and costs nothing elsewhere.

From 3.12 by local events of `sys.monitoring` (PEP 669): they belong to the code objects of the frames. On 3.11 the
threads in which the frames are on the stack are traced until those frames have moved or ended.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any, Protocol

from daifu_bc import pyversion
from daifu_bc.recovery import boundaries
from daifu_bc.recovery.working import came_from_outside

#: Called in a frame that is about to run an instruction; it may raise into it, and says whether to ask again there.
Reached = Callable[[FrameType], bool]


class CodeWatch(Protocol):
    """Watches frames."""

    def add(self, frames: Iterable[FrameType]) -> int:
        """Watches these frames, too; how many of them it can watch."""

    def add_code(self, code: CodeType) -> bool:
        """Watches the frames of this code, too, if it can."""

    def moved(self, frame: FrameType) -> None:
        """Watches this frame no more; called in its thread."""


def code_watch(reached: Reached) -> CodeWatch:
    """What watches frames.

    Args:
        reached: called in them.
    """
    return _Monitoring(reached) if pyversion.HAS_MONITORING else _Tracing(reached)


def _safely(reached: Reached, frame: FrameType) -> bool:
    try:
        return reached(frame)
    except Exception as error:
        if came_from_outside(error):
            raise
        if boundaries.on_internal_error is not None:
            boundaries.on_internal_error(error)
        return False


class _Monitoring:
    def __init__(self, reached: Reached) -> None:
        self._reached = reached
        self._tool = -1

    def add(self, frames: Iterable[FrameType]) -> int:
        watched = [frame for frame in frames if self.add_code(frame.f_code)]
        return len(watched)

    def add_code(self, code: CodeType) -> bool:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        event = monitoring.events.INSTRUCTION
        if self._tool < 0:
            self._tool = boundaries.free_tool()
            if self._tool < 0:
                return False
            monitoring.use_tool_id(self._tool, "daifu_bc surgery")
            monitoring.register_callback(self._tool, event, self._instruction)
        monitoring.set_local_events(self._tool, code, event)
        return True

    def moved(self, frame: FrameType) -> None:
        """Nothing to do: what is left of the events is in code that nobody else will run."""

    def _instruction(self, _code: CodeType, _offset: int) -> object:
        if _safely(self._reached, sys._getframe(1)):
            return None
        return sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]


class _Tracing:
    def __init__(self, reached: Reached) -> None:
        self._reached = reached
        #: By thread the ids of the frames that are watched in it.
        self._frames: dict[int, set[int]] = {}
        #: The same of code that this thread is about to run: it is traced from its call on.
        self._codes: dict[int, CodeType] = {}

    def add_code(self, code: CodeType) -> bool:
        if sys.gettrace() not in (None, self._called):
            return False
        self._codes[threading.get_ident()] = code
        sys.settrace(self._called)
        return True

    def add(self, frames: Iterable[FrameType]) -> int:
        count = 0
        wanted = {id(frame) for frame in frames}
        # Not by items: this function's own frame is among them, and would refer to itself.
        for thread in list(sys._current_frames()):
            here: set[int] = set()
            frame: FrameType | None = sys._current_frames().get(thread)
            while frame is not None:
                if id(frame) in wanted:
                    here.add(id(frame))
                frame = frame.f_back
            if not here:
                continue
            self._frames.setdefault(thread, set()).update(here)
            count += len(here)
            if thread == threading.get_ident():
                self._begin(sys._getframe(1))
            else:
                boundaries.from_outside(thread, self._begin)
        return count

    def moved(self, frame: FrameType) -> None:
        self._forget(frame)
        if self._frames.get(threading.get_ident()):
            sys.settrace(self._called)  # what was raised out of the trace function has ended the tracing

    def _begin(self, frame: FrameType | None) -> None:
        """In the thread."""
        wanted = self._frames.get(threading.get_ident(), set())
        while frame is not None:
            if id(frame) in wanted:
                frame.f_trace = self._event
            frame = frame.f_back
        if sys.gettrace() is None:
            sys.settrace(self._called)

    def _called(self, frame: FrameType, _event: str, _argument: object) -> Any:
        """New frames are not traced, but those of the code that was announced."""
        thread = threading.get_ident()
        if self._codes.get(thread) is not frame.f_code:
            return None
        del self._codes[thread]
        self._frames.setdefault(thread, set()).add(id(frame))
        return self._event

    def _event(self, frame: FrameType, event: str, _argument: object) -> Any:
        if event == "return":
            self._forget(frame)
            return None
        if event == "line":
            try:
                _safely(self._reached, frame)
            finally:
                # The interpreter now writes the snapshot of the locals back, and somebody may have emptied it.
                _ = frame.f_locals
        return self._event

    def _forget(self, frame: FrameType) -> None:
        here = self._frames.get(threading.get_ident(), set())
        here.discard(id(frame))
        if not here and sys.gettrace() == self._called:
            sys.settrace(None)
