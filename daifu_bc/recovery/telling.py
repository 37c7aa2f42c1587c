"""What is said on standard error: past whatever the program has made of `print`, and of its own stream."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from typing import Final, TextIO

#: For how many seconds a reader that does not read is waited for, where standard error does not block.
_PATIENCE: Final = 5.0


def tell(text: str) -> None:
    """Writes a line to the standard error that the process began with; where that is gone, nobody is told.

    Nothing of it stays in the stream: what cannot be written would fail again at the end of the process, and change
    its exit code.

    Args:
        text: the line, or several.
    """
    stream = sys.__stderr__
    if stream is None:
        return
    try:
        _write(stream, f"{text}\n")
    except (OSError, ValueError, RuntimeError):  # closed, full, or in the middle of its own work
        pass


def _write(stream: TextIO, text: str) -> None:
    # In the middle of its own work, as when a signal has come, what it is about to write comes later.
    with contextlib.suppress(RuntimeError):
        stream.flush()
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError, AttributeError):  # no file: an editor's window, say
        stream.write(text)
        stream.flush()
        return
    left = text.encode(stream.encoding or "utf-8", "backslashreplace")
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            if not select.select((), (descriptor,), (), _PATIENCE)[1]:
                return
