"""That our own code runs in this thread: exceptions in it are none of the program's, and it needs room on the stack."""

from __future__ import annotations

import contextlib
import functools
import signal
import sys
import threading
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any, Final

from daifu_bc.recovery.attributes import traceback_of

#: Frames that a hold may use on top of a stack that is full.
_ROOM: Final = 3000


class _Working(threading.local):
    """Whether this thread is in our code."""

    busy = False


working = _Working()
_lock = threading.Lock()


class _Room:
    """How the recursion limit has been raised.

    Attributes:
        holds: for how many holds.
        before: the program's limit.
        raised: ours.
    """

    holds = before = raised = 0


_room = _Room()


@contextlib.contextmanager
def program_runs() -> Iterator[None]:
    """The program's own code runs within: an action, an expression."""
    busy, working.busy = working.busy, False
    try:
        yield
    finally:
        working.busy = busy


@contextlib.contextmanager
def room_to_work(exception: BaseException) -> Iterator[None]:
    """Raises the recursion limit while a hold for a full stack lasts."""
    if not isinstance(exception, RecursionError):
        yield
        return
    with _lock:
        present = sys.getrecursionlimit()
        if not _room.holds or present != _room.raised:
            _room.before, _room.raised = present, present + _ROOM
            sys.setrecursionlimit(_room.raised)
        _room.holds += 1
    try:
        yield
    finally:
        with _lock:
            _room.holds -= 1
            # An action may have set another limit, which is the program's from then on.
            if not _room.holds and sys.getrecursionlimit() == _room.raised:
                # Our own frames may still be too deep for the old limit; those who come next are not.
                with contextlib.suppress(RecursionError):
                    sys.setrecursionlimit(_room.before)


def came_from_outside(error: BaseException) -> bool:
    """Whether a signal handler of the program's, or Ctrl-C, raised an error while our code ran."""
    if not isinstance(error, Exception):
        return True
    handlers = {code_of(signal.getsignal(number)) for number in signal.valid_signals()}
    traceback = traceback_of(error)
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return True
        traceback = traceback.tb_next
    return False


def code_of(handler: Any) -> CodeType | None:
    """The code that a signal's handler runs, if it is written in Python.

    Args:
        handler: what `signal.getsignal` gives.
    """
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not isinstance(handler, FunctionType | MethodType):
        handler = vars(type(handler)).get("__call__")
    code = getattr(handler, "__code__", None)
    return code if isinstance(code, CodeType) else None
