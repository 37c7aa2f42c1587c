"""That our own code runs in this thread: exceptions in it are none of the program's."""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from daifu_bc.recovery.attributes import traceback_of


class _Working(threading.local):
    """Whether this thread is in our code."""

    busy = False


working = _Working()


@contextlib.contextmanager
def program_runs() -> Iterator[None]:
    """The program's own code runs within: an action, an expression."""
    busy, working.busy = working.busy, False
    try:
        yield
    finally:
        working.busy = busy


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
