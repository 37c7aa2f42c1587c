"""The keyboard while a thread is held: what Ctrl-C means, and how the terminal is left.

As a signal, Ctrl-C reaches the main thread. Where another one is held, the terminal does not make a signal of it, and
somebody has to look whether it has been typed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import sys
import termios
import threading
from collections.abc import Iterator
from typing import Any

from daifu_bc.frontends.reader import CTRL_C, MOST_BYTES, Reader, line_mode
from daifu_bc.frontends.switching import ended_while
from daifu_bc.recovery import signals
from daifu_bc.recovery.last_will import at_death
from daifu_bc.recovery.telling import tell
from daifu_bc.recovery.turns import turns

#: Lines that were typed while something ran. There is one keyboard: they are for whoever is asked next.
_typed_ahead: list[str] = []
#: Seconds that what is typed is left to the program, which may be reading itself.
GRACE = 0.05


class TypedAhead:
    """Reads the lines first that were typed while something ran.

    Args:
        reader: reads the others.

    Attributes:
        waits: whether anybody is at the prompt: what is typed is for that one.
    """

    waits = False

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.lines = _typed_ahead

    def read(self, prompt: str) -> str:
        """Return a line; see `daifu_bc.frontends.reader.Reader`."""
        if self.lines:
            return self.lines.pop(0)
        TypedAhead.waits = True
        try:
            return self.reader.read(prompt)
        finally:
            TypedAhead.waits = False

    def close(self) -> None:
        """Let go of everything that belongs to the hold."""
        self.reader.close()


@contextlib.contextmanager
def ctrl_c_is_a_key() -> Iterator[None]:
    """Within, Ctrl-C is no signal, which would hit the main thread, if another one is held."""
    with contextlib.ExitStack() as stack:
        if threading.get_ident() != threading.main_thread().ident and sys.__stdin__ is not None:
            with contextlib.suppress(OSError, ValueError):
                stack.enter_context(line_mode(sys.__stdin__.fileno()))
        yield


@contextlib.contextmanager
def ctrl_c_interrupts(reader: TypedAhead) -> Iterator[None]:
    """Ctrl-C interrupts what this thread runs within.

    In the main thread it does so by itself.

    Args:
        reader: is given the lines that are typed meanwhile.
    """
    ident = threading.get_ident()
    if ident == threading.main_thread().ident or sys.__stdin__ is None:
        yield
        return
    try:
        descriptor = sys.__stdin__.fileno()
        ended, end = os.pipe()
    except (OSError, ValueError):
        yield
        return
    encoding = sys.__stdin__.encoding

    def watch() -> None:
        asked = False
        with contextlib.suppress(OSError):  # the terminal is gone
            while True:
                ready, _, _ = select.select([descriptor, ended], [], [])
                if ended not in ready:
                    ready, _, _ = select.select([ended], [], [], GRACE)
                if ended in ready:
                    return
                if TypedAhead.waits or not select.select([descriptor], [], [], 0)[0]:
                    continue
                line = os.read(descriptor, MOST_BYTES)
                if line.endswith(CTRL_C):
                    # A hold in an action of this thread's may have passed its turn on to another one.
                    busy = turns.asking(ident)
                    if asked and busy == ident and turns.move_on():
                        continue  # it waits in C, maybe for a thread that is held
                    asked = asked or busy == ident
                    signals.interrupt(busy)
                elif line:
                    reader.lines += line.decode(encoding, errors="surrogateescape").splitlines()
                elif not os.isatty(descriptor):
                    return

    watcher = threading.Thread(target=watch, name="daifu keyboard", daemon=True)
    try:
        with line_mode(descriptor):
            with contextlib.suppress(
                RuntimeError
            ):  # there is no memory for a thread: Ctrl-C is not watched for
                watcher.start()
            try:
                yield
            finally:
                os.write(end, b"x")
                if watcher.ident is not None:
                    watcher.join(timeout=5)
    finally:
        os.close(end)
        os.close(ended)


def _settings() -> tuple[int, list[Any] | None]:
    """Return the terminal's descriptor and how it is set now; None if there is no terminal."""
    try:
        descriptor = -1 if sys.__stdin__ is None else sys.__stdin__.fileno()
        return descriptor, termios.tcgetattr(descriptor)
    except (OSError, ValueError, termios.error):
        return -1, None


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Afterwards the terminal is as it was, wherever a signal's handler has raised something within."""
    descriptor, before = _settings()
    if before is None:
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError, termios.error):
            if termios.tcgetattr(descriptor) != before:
                termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextlib.contextmanager
def left_in_order(place: str, *, capable: bool) -> Iterator[None]:
    """If the program ends while a thread is held within, the terminal is as it was, and that is told.

    Args:
        place: which thread is held, and where.
        capable: whether the terminal understands commands.
    """
    process = os.getpid()
    descriptor, before = _settings()
    if before is None:
        yield
        return

    def put_in_order(text: str = "") -> None:
        if os.getpid() != process:
            return
        with contextlib.suppress(OSError, ValueError, termios.error):
            termios.tcsetattr(descriptor, termios.TCSANOW, before)
            # Pasting is no command any more, the cursor is seen, nothing is coloured.
            commands = "\x1b[?2004l\x1b[?25h\x1b[0m" if capable else ""
            tell(f"{commands}\n{text}" if text else commands)

    def at_exit() -> None:
        others = sum(other.asks for other in turns.places()) - 1
        more = f", and {others} more" if others > 0 else ""
        put_in_order(ended_while(f"{place} was still held{more}"))

    atexit.register(at_exit)
    at_death.append(put_in_order)
    try:
        yield
    finally:
        at_death.remove(put_in_order)
        atexit.unregister(at_exit)
