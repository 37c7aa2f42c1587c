"""Calls back at each line or instruction of vaccinated code in a thread, for as long as somebody waits for it; nothing stays behind.

From 3.12 by `sys.monitoring` (PEP 669). On 3.11 by tracing: the thread's trace function is set from outside as
`threading.settrace_all_threads` does it from 3.12 (`_PyEval_SetTrace` in Python/ceval.c).
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final, Protocol

from daifu_bc import pyversion
from daifu_bc.errors import Refusal
from daifu_bc.recovery.bodies import has_barriers

#: Called in the thread, with the frame that is about to run an instruction; it may raise into that frame.
Reached = Callable[[FrameType], None]
#: Told of errors of ours.
on_internal_error: Callable[[BaseException], None] | None = None
# Those that no kind of tool is meant to take (PEP 669).
_FREE_TOOLS: Final = (4, 3)


def free_tool() -> int:
    """A number that no other tool has at `sys.monitoring`; -1 if there is none."""
    get_tool: Any = sys.monitoring.get_tool  # type: ignore[attr-defined,unused-ignore]
    return next((number for number in _FREE_TOOLS if get_tool(number) is None), -1)


class Watch(Protocol):
    """Watches one thread."""

    def start(self) -> None:
        """Calls back from now on.

        Raises:
            Refusal: something else watches the program already.
        """

    def stop(self) -> None:
        """Calls back no more."""


def watch(thread: int, reached: Reached) -> Watch:
    """What watches a thread.

    Args:
        thread: its identifier.
        reached: called at each instruction, or at least at each line and each jump back, in code with barriers.
    """
    return _Monitoring(thread, reached) if pyversion.HAS_MONITORING else _Tracing(thread, reached)


class _Monitoring:
    def __init__(self, thread: int, reached: Reached) -> None:
        self._thread = thread
        self._reached = reached
        self._tool = -1

    def start(self) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        tool = free_tool()
        if tool < 0:
            raise Refusal("all that could watch the program is taken", remedy="Detach the other tools.")
        monitoring.use_tool_id(tool, "daifu_bc")
        self._tool = tool
        monitoring.register_callback(tool, monitoring.events.INSTRUCTION, self._instruction)
        monitoring.set_events(tool, monitoring.events.INSTRUCTION)
        monitoring.restart_events()

    def stop(self) -> None:
        if self._tool < 0:
            return
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        tool, self._tool = self._tool, -1
        monitoring.set_events(tool, 0)
        monitoring.register_callback(tool, monitoring.events.INSTRUCTION, None)
        monitoring.free_tool_id(tool)

    def _instruction(self, code: CodeType, _offset: int) -> object:
        # Not LINE: a loop in one line has no such event.
        if not has_barriers(code):
            return sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]
        if threading.get_ident() == self._thread and self._tool >= 0:
            self._reached(sys._getframe(1))
        return None


class _Tracing:
    def __init__(self, thread: int, reached: Reached) -> None:
        self._thread = thread
        self._reached = reached
        self._traced: list[FrameType] = []
        self._over = False

    def start(self) -> None:
        if sys.gettrace() is not None or threading.gettrace() is not None:
            raise Refusal("the program is being traced already", remedy="Detach the debugger.")
        if self._thread == threading.get_ident():
            self._trace(sys._getframe(1))
        elif not from_outside(self._thread, self._trace):
            raise Refusal("that thread runs no Python code", remedy="Choose another one.")

    def stop(self) -> None:
        # Behind the event of a line comes that of its first instruction, whatever is traced by then.
        self._over = True
        if threading.get_ident() == self._thread:
            sys.settrace(None)
        for frame in self._traced:
            frame.f_trace = None
            frame.f_trace_opcodes = False
        self._traced.clear()

    def _trace(self, frame: FrameType | None) -> None:
        sys.settrace(self._event)
        while frame is not None:
            frame.f_trace = self._event
            self._each_instruction(frame)
            self._traced.append(frame)
            frame = frame.f_back

    def _event(self, frame: FrameType, event: str, _argument: object) -> Any:
        if self._over:
            return None
        if event == "call":
            self._each_instruction(frame)
        elif event in ("line", "opcode") and has_barriers(frame.f_code):
            try:
                self._reached(frame)
            finally:
                # The interpreter now writes the snapshot of the locals back, and somebody may have emptied it.
                _ = frame.f_locals
        return self._event

    def _each_instruction(self, frame: FrameType) -> None:
        # A loop in one line may have no line event at the beginning of a statement.
        if has_barriers(frame.f_code):
            frame.f_trace_opcodes = True


_TRACE_FUNCTION: Final = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.py_object, ctypes.c_int, ctypes.c_void_p
)
#: What was given to the interpreter; it must live as long as it may be called.
_given: Final[list[Any]] = []


def from_outside(thread: int, begin: Callable[[FrameType], None]) -> bool:
    """Has a function called in another thread as soon as that runs Python code (3.11).

    Args:
        thread: its identifier.
        begin: called with the frame that runs; it sets a trace function, which takes the place of ours.

    Returns:
        Whether there is such a thread.
    """
    api = ctypes.pythonapi
    api.PyInterpreterState_Get.restype = ctypes.c_void_p
    api.PyInterpreterState_ThreadHead.restype = ctypes.c_void_p
    api.PyInterpreterState_ThreadHead.argtypes = [ctypes.c_void_p]
    api.PyThreadState_Next.restype = ctypes.c_void_p
    api.PyThreadState_Next.argtypes = [ctypes.c_void_p]
    api.PyThreadState_GetFrame.restype = ctypes.c_void_p
    api.PyThreadState_GetFrame.argtypes = [ctypes.c_void_p]
    api.Py_DecRef.argtypes = [ctypes.c_void_p]
    set_trace = api["_PyEval_SetTrace"]
    set_trace.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.py_object]

    def trace(_object: int, frame: FrameType, _event: int, _argument: int) -> int:
        sys.settrace(None)
        begin(frame)
        return 0

    wanted = sys._current_frames().get(thread)
    state = api.PyInterpreterState_ThreadHead(api.PyInterpreterState_Get())
    while state:
        found = api.PyThreadState_GetFrame(state)
        if found:
            api.Py_DecRef(found)
        if found and found == id(wanted):
            given = _TRACE_FUNCTION(trace)
            _given.append(given)
            set_trace(state, ctypes.cast(given, ctypes.c_void_p), given)
            return True
        state = api.PyThreadState_Next(state)
    return False
