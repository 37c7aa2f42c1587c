"""Sections of a held thread that may be interrupted: an action, an expression, the report, the prompt.

Everything else that a hold does (a surgery, a line of the journal) runs to its end.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from threading import get_ident
from types import FrameType
from typing import Final

_lock: Final = threading.RLock()
#: By the threads' numbers: how many sections they are in.
_depth: Final[dict[int, int]] = {}
#: Threads that have been interrupted in the outermost section that they are, or were last, in.
_interrupted: Final[set[int]] = set()
#: Those of them that were interrupted by the interpreter, and not by a signal.
_asked: Final[set[int]] = set()
#: Jumps back after which an exception that was asked for has come for certain.
_JUMPS: Final = 1000


class _DroppedError(BaseException):
    """Takes the place of an interrupt that comes too late."""


class Interruptible:
    """The section within may be interrupted by a KeyboardInterrupt.

    One that comes while it is left may leave it open: `close_to` is for what has caught it.
    """

    def __enter__(self) -> None:
        ident = get_ident()
        depth = _depth.get(ident, 0)
        if not depth:
            _interrupted.discard(ident)
            _asked.discard(ident)
        _depth[ident] = depth + 1

    def __exit__(self, *_: object) -> None:
        ident = get_ident()
        with _lock:
            depth = _depth.pop(ident, 1) - 1
            if depth:
                _depth[ident] = depth
            elif ident in _asked:
                # What has been asked for and has not come yet is not to come outside.
                _asked.discard(ident)
                _drop(ident)


def _drop(ident: int) -> None:
    """Lets nothing come of what has been asked for in this thread.

    To take it back would leave a flag set for good (up to 3.12): all threads would look at each call for what is not there,
    and one that is traced would get no further (3.11). So another exception takes its place, and comes here.
    """
    try:
        _raise_in(ident, _DroppedError)
        for _ in range(_JUMPS):
            pass
    except _DroppedError:
        pass


def _raise_in(ident: int, kind: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(kind))


#: Code that opens or closes a section; raised there, an exception would leave it half done.
_BOUNDS: Final = frozenset(
    function.__code__ for function in (Interruptible.__enter__, Interruptible.__exit__)
)


def may_be_interrupted(ident: int, frame: FrameType | None = None) -> bool:
    """Tell whether a thread is in such a section.

    Args:
        ident: the thread's number.
        frame: where it is, if that is known.
    """
    return ident in _depth and (frame is None or frame.f_code not in _BOUNDS)


def open_sections() -> int:
    """Return how many sections this thread is in."""
    return _depth.get(get_ident(), 0)


def close_to(count: int) -> None:
    """Close what an interruption has left open.

    Args:
        count: how many sections this thread is in.
    """
    if count:
        _depth[get_ident()] = count
    else:
        _depth.pop(get_ident(), None)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Within, this thread cannot be interrupted, whatever sections it is in."""
    sections = open_sections()
    close_to(0)
    try:
        yield
    finally:
        close_to(sections)


def note_interrupt(ident: int) -> None:
    """Take note that a thread is being interrupted."""
    _interrupted.add(ident)


def was_interrupted() -> bool:
    """Tell whether a KeyboardInterrupt that arrives in this thread comes from a person, and not from the program."""
    return get_ident() in _interrupted


def interrupt(ident: int) -> bool:
    """Raise KeyboardInterrupt in a thread at its next instruction, if it is in a section that may be interrupted.

    Args:
        ident: the thread's number.
    """
    with _lock:
        if ident not in _depth:
            return False
        _interrupted.add(ident)
        _asked.add(ident)
        _raise_in(ident, KeyboardInterrupt)
        return True


def forget() -> None:
    """Forget the sections of all threads but this one: they are not there in a forked child."""
    for ident in [ident for ident in _depth if ident != get_ident()]:
        _depth.pop(ident, None)
    _interrupted.clear()
    _asked.clear()
