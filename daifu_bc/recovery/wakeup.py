"""Where the interpreter writes which signals have come: an event loop reads it there, and calls what was put in for each."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Final

#: Bytes that are kept; each is a signal.
_MOST: Final = 1 << 16


@contextlib.contextmanager
def silent(number: int) -> Iterator[None]:
    """Within, a signal is not told there; the others are at the end. For the main thread.

    Args:
        number: the signal's.
    """
    place = signal.set_wakeup_fd(-1)
    try:
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK) if place >= 0 else (-1, -1)
    except OSError:  # no file descriptors are left
        reading = writing = -1
    if writing < 0:
        _tell_at(place)
        yield
        return
    try:
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        yield
    finally:
        _tell_at(place)
        with contextlib.suppress(OSError):  # nothing has come, or nobody reads there any more
            others = os.read(reading, _MOST).replace(bytes((number,)), b"")
            os.write(place, others)
        os.close(reading)
        os.close(writing)


def _tell_at(place: int) -> None:
    with contextlib.suppress(OSError, ValueError):  # it has been closed meanwhile
        signal.set_wakeup_fd(place)
