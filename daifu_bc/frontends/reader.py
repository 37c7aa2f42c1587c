"""Lines typed at a plain terminal. Ctrl-C clears the line without a signal, whatever thread is held."""

from __future__ import annotations

import contextlib
import os
import sys
import termios
from collections.abc import Callable, Iterator
from typing import Protocol

CTRL_C = b"\x03"
DISABLED = b"\x00"
MOST_BYTES = 65536

LOCAL_FLAGS, CONTROL_CHARACTERS, INPUT_FLAGS = 3, 6, 0


class TerminalGoneError(Exception):
    """The terminal was closed; nobody will type any more."""


class BrokenOffError(Exception):
    """The prompt was broken off: something has happened elsewhere.

    Attributes:
        begun: the lines that had been typed of a text which is not complete.
    """

    begun = ""


#: Waits until a file descriptor can be read; it may raise BrokenOffError.
Wait = Callable[[int], None]


class Reader(Protocol):
    """Reads lines from a person."""

    def read(self, prompt: str) -> str:
        """Return a line.

        Raises:
            BrokenOffError: see there; what has been typed of the line comes back with the next prompt.
            KeyboardInterrupt: Ctrl-C; the line is to be forgotten.
            EOFError: Ctrl-D.
            TerminalGoneError: there is no terminal any more.
        """

    def close(self) -> None:
        """Let go of everything that belongs to the hold."""


class PlainReader:
    """Reads from the process's own stdin, with nothing but what the terminal's driver offers.

    Args:
        wait: waits for what is typed; if it is left out, nothing else is waited for.
    """

    def __init__(self, wait: Wait | None = None) -> None:
        if sys.__stdin__ is None or sys.__stderr__ is None:
            raise TerminalGoneError
        self._stdin = sys.__stdin__
        self._stderr = sys.__stderr__
        self._wait = wait

    def read(self, prompt: str) -> str:
        """Return a line; see `Reader`."""
        descriptor = self._stdin.fileno()
        try:
            self._stderr.write(prompt)
            self._stderr.flush()
            with line_mode(descriptor):
                if self._wait is not None:
                    self._wait(descriptor)
                line = os.read(descriptor, MOST_BYTES)
        except BrokenOffError:
            self._stderr.write("\n")
            raise
        except OSError as error:  # EIO: the other end of the terminal is closed
            raise TerminalGoneError from error
        if line.endswith(CTRL_C):
            self._stderr.write("\n")
            raise KeyboardInterrupt
        if not line:
            if not os.isatty(descriptor):
                raise TerminalGoneError
            self._stderr.write("\n")
            raise EOFError
        return line.decode(self._stdin.encoding, errors="surrogateescape").rstrip("\r\n")

    def close(self) -> None:
        """Let go of the hold, which what waits may know."""
        self._wait = None


@contextlib.contextmanager
def line_mode(descriptor: int) -> Iterator[None]:
    """Have the terminal give whole lines, and Ctrl-C as the end of one.

    As a signal it would reach the main thread, which may be another than the held one, and the program's own handler.
    """
    try:
        before = termios.tcgetattr(descriptor)
    except termios.error:  # no terminal; a line is a line all the same
        yield
        return
    now = termios.tcgetattr(descriptor)
    now[LOCAL_FLAGS] |= termios.ICANON | termios.ECHO | termios.ECHOE | termios.ISIG
    now[INPUT_FLAGS] |= termios.ICRNL
    now[CONTROL_CHARACTERS][termios.VINTR] = DISABLED
    now[CONTROL_CHARACTERS][termios.VEOL2] = CTRL_C
    termios.tcsetattr(descriptor, termios.TCSADRAIN, now)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal may be gone
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
