"""A held thread waits for a while, and may be told to stop waiting."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from typing import Final

from daifu_bc.recovery import policy, signals
from daifu_bc.recovery.interrupts import close_to, open_sections
from daifu_bc.recovery.telling import tell

#: Why a wait has ended before its time.
INTERRUPTED: Final = "interrupted"
#: Seconds that are waited for at a time: no system takes any number of milliseconds.
_MOST: Final = 3600.0

#: By the threads' numbers: where to write, so that they stop waiting.
_waiting: Final[dict[int, int]] = {}


def wait(seconds: float) -> str:
    """Wait, with the program's signals running; return why it has ended early, or an empty text.

    Args:
        seconds: for how long.
    """
    ident = threading.get_ident()
    try:
        reading, writing = os.pipe()
    except OSError:  # no file descriptors are left, which may be what is being waited for
        return _wait(-1, seconds)
    os.set_blocking(writing, False)
    _waiting[ident] = writing
    try:
        return _wait(reading, seconds)
    finally:
        del _waiting[ident]
        os.close(reading)
        os.close(writing)


def _wait(reading: int, seconds: float) -> str:
    until = time.monotonic() + seconds
    sections = open_sections()
    poll = select.poll()
    if reading >= 0:
        poll.register(reading, select.POLLIN)
    while not signals.request_to_end():
        left = until - time.monotonic()
        if left <= 0:
            return ""
        told = False
        try:
            with signals.person_is_waited_for():
                if poll.poll(min(left, _MOST) * 1000):
                    return INTERRUPTED
        except KeyboardInterrupt:
            close_to(sections)
            for text in signals.news(person=False):
                told = True
                tell(text)
            if not told:  # a person's: it says nothing else
                return INTERRUPTED
    return INTERRUPTED


def asked() -> contextlib.AbstractContextManager[None]:
    """Within, Ctrl-C is for us if a person is there, who is asked then; else it ends the program, as ever."""
    return signals.person_is_asked() if policy.at_terminal() else contextlib.nullcontext()


def end(ident: int | None = None) -> bool:
    """Have a thread stop waiting; tell whether one has waited.

    Args:
        ident: its number; all that wait, if it is left out.
    """
    found = False
    for number, writing in list(_waiting.items()):
        if ident in (None, number):
            found = True
            with contextlib.suppress(OSError):
                os.write(writing, b".")
    return found
