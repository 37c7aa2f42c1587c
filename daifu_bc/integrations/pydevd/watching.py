"""When the debugger watches: not our own code, and nothing at all while no client is there."""

from __future__ import annotations

import functools
import gc
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

from daifu_bc import pyversion
from daifu_bc.integrations.pydevd import known
from daifu_bc.recovery import observers

#: Whether it watches what it is asked to, and how often that has changed.
_awake = True
_turns = 0
#: The threads in which it does not.
_paused: Final[set[int]] = set()
#: The threads that have been told to be watched no more, and seconds after which the others are told again.
_resting: Final[set[int]] = set()
_PAUSES: Final = (0.02, 0.05, 0.1, 0.1, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Watcher:
    """Keeps the debugger from watching our own code, and what a held thread does in it."""

    def pause(self) -> Callable[[], None]:
        """Keep it from watching this thread, and return what lets it watch again."""
        ident = threading.get_ident()
        if known.instance() is None or ident in _paused:
            return _nothing
        _paused.add(ident)
        if known.uses_monitoring():
            before: object = known.monitoring("suspend_current_thread_tracing")()
        else:
            before = sys.gettrace()
            if before is not None:
                known.set_trace(None)
        return functools.partial(_watch_again, before, _turns)

    def continuation(self, code: CodeType) -> None:
        """Nothing is kept for a continuation."""

    def replaced(self) -> None:
        """Functions with new code are looked at when they are called."""


watcher: Final = Watcher()


def keep_from_watching() -> None:
    """Keep it from watching this thread until it leaves our code; it may have come while the thread was held."""
    again = watcher.pause()
    if again is not _nothing:
        observers.when_left(again)
    elif not known.uses_monitoring() and sys.gettrace() is not None:
        known.set_trace(None)  # a second debugger has come since


def _nothing() -> None:
    """Let nothing watch again."""


def _watch_again(before: object, turns: int) -> None:
    _paused.discard(threading.get_ident())
    if known.uses_monitoring():
        if before:
            known.monitoring("resume_current_thread_tracing")()
    elif turns == _turns:  # it watches as it did
        if before is not None:
            known.set_trace(before)
    elif _awake:
        known.instance().enable_tracing()


def rest() -> None:
    """It watches nothing, in no thread, until a client comes."""
    global _awake, _turns
    _awake, _turns = False, _turns + 1
    threading.settrace(None)  # type: ignore[arg-type,unused-ignore]
    known.new_threads_watched(yes=False)
    if known.uses_monitoring():
        if not pyversion.FREED_TOOL_WATCHES_NOTHING:
            _watch_no_function()
        known.monitoring("stop_monitoring")(all_threads=True)
        return
    if not getattr(threading.current_thread(), "pydev_do_not_trace", False):
        known.set_trace(None)
    thread = threading.Thread(target=_let_threads_rest, args=(_turns,), daemon=True, name="daifu debugger")
    # As its own threads are marked.
    thread.pydev_do_not_trace = thread.is_pydev_daemon_thread = True  # type: ignore[attr-defined]
    thread.start()


def rest_in_child() -> None:
    """The same in a forked child, which has this thread alone."""
    global _awake, _turns
    _awake, _turns = False, _turns + 1
    _paused.clear()
    threading.settrace(None)  # type: ignore[arg-type,unused-ignore]
    known.new_threads_watched(yes=False)
    if known.uses_monitoring():
        known.monitoring("stop_monitoring")(all_threads=True)
    else:
        known.set_trace(None)
    known.forget()


def _watch_no_function() -> None:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    tool = monitoring.DEBUGGER_ID
    if monitoring.get_tool(tool) != known.TOOL:
        return
    codes = {one.__code__ for one in gc.get_objects() if type(one) is FunctionType}
    for innermost in sys._current_frames().values():
        frame: FrameType | None = innermost
        while frame is not None:
            codes.add(frame.f_code)
            frame = frame.f_back
    for code in codes:
        if monitoring.get_local_events(tool, code):
            monitoring.set_local_events(tool, code, 0)


def _let_threads_rest(turns: int) -> None:
    """Each thread can only do it for itself, as soon as it would be watched; not where it is being watched just then."""
    _resting.clear()
    for pause in _PAUSES:
        left = _watched_threads() - _resting
        if not left or turns != _turns:
            return
        for ident, innermost in sys._current_frames().items():
            frame: FrameType | None = innermost if ident in left else None
            while frame is not None:
                if frame.f_trace is not None:
                    frame.f_trace = _rest_here
                frame = frame.f_back
        known.set_trace_of(left, _rest_here)
        time.sleep(pause)


def _rest_here(_frame: FrameType, _event: str, _arg: object) -> None:
    known.set_trace(None)
    _resting.add(threading.get_ident())


def _watched_threads() -> set[int]:
    own = {one.ident for one in threading.enumerate() if getattr(one, "pydev_do_not_trace", False)}
    return set(sys._current_frames()) - own - _paused - {threading.get_ident()}


def wake() -> None:
    """It watches again what it is asked to."""
    global _awake, _turns
    if _awake:
        return
    _awake, _turns = True, _turns + 1
    known.new_threads_watched(yes=True)
    if known.uses_monitoring():
        known.monitoring("start_monitoring")(all_threads=True)
        return
    found = known.instance()
    threading.settrace(found.trace_dispatch)
    known.set_trace_of(_watched_threads(), found.trace_dispatch)
    found.set_tracing_for_untraced_contexts()
