"""Ctrl-C that is held: a handler in Python, which can return, in the place of the interpreter's, which cannot.

So the run goes on behind the very instruction that it was interrupted at.
"""

from __future__ import annotations

import functools
import signal
import threading
from types import FunctionType
from typing import Final

from daifu_bc.analysis import filters, sources
from daifu_bc.install.vaccine import vaccinated
from daifu_bc.recovery import policy, signals

_FILE: Final = "<Ctrl-C>"
_TEXT: Final = """def interrupted(number, frame):
    raise KeyboardInterrupt
"""


def take_over() -> None:
    """Put the handler in, if Ctrl-C is to be held, somebody would answer, and the program has none of its own."""
    if not filters.wants_keyboard_interrupt() or not policy.somebody_answers():
        return
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    signal.signal(signal.SIGINT, _handler())


@functools.cache
def _handler() -> FunctionType:
    names: dict[str, object] = {"__name__": _FILE}
    exec(compile(_TEXT, _FILE, "exec"), names)
    handler = names["interrupted"]
    assert isinstance(handler, FunctionType)
    handler.__code__ = vaccinated(handler.__code__)
    sources.remember(_FILE, _TEXT.encode())
    signals.only_interrupts.append(handler)
    return handler
