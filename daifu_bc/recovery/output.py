"""What one thread prints while an action runs in it; the other threads print where they always do."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, TextIO

_lock: Final = threading.Lock()
Target = TextIO | io.TextIOBase
#: Characters that are kept until a line is whole.
_MOST: Final = 8192


class _Router(io.TextIOBase):
    """Stands for `sys.stdout` or `sys.stderr` while actions run; afterwards it passes on what is still written to it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._missing = not hasattr(sys, name)
        self._stream: Any = getattr(sys, name, None)
        self._targets: dict[int, list[Target]] = {}

    def take(self, target: Target) -> None:
        """Sends what this thread writes to `target`."""
        self._targets.setdefault(threading.get_ident(), []).append(target)

    def give_back(self) -> bool:
        """Ends the last `take` of this thread; whether no thread is left."""
        ident = threading.get_ident()
        targets = self._targets[ident]
        targets.pop()
        if not targets:
            del self._targets[ident]
        return not self._targets

    def leave(self) -> None:
        """Puts back what was there before, unless the program has put something else there."""
        if getattr(sys, self._name, None) is not self:
            return
        if self._missing:
            delattr(sys, self._name)
        else:
            setattr(sys, self._name, self._stream)

    def write(self, text: str) -> int:
        targets = self._targets.get(threading.get_ident())
        if targets:
            return targets[-1].write(text)
        return 0 if self._stream is None else int(self._stream.write(text))

    def flush(self) -> None:
        targets = self._targets.get(threading.get_ident())
        if targets:
            targets[-1].flush()
        elif self._stream is not None:
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


#: By thread: who is given what its actions print, while they do.
_listeners: Final[dict[int, Stream]] = {}


class Stream(io.TextIOBase):
    """What an action prints, given to somebody line by line.

    Args:
        send: is given the parts.
    """

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self._parts: list[str] = []
        self._size = 0

    def write(self, text: str) -> int:
        """Take a part, and give what is whole."""
        self._parts.append(text)
        self._size += len(text)
        # As a terminal has it: whole lines, and what a progress bar writes.
        if self._size > _MOST or "\n" in text or "\r" in text:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Give all that has come."""
        text, self._parts, self._size = "".join(self._parts), [], 0
        if text:
            self._send(text)


@contextlib.contextmanager
def told_while_it_runs(send: Callable[[str], None] | None) -> Iterator[None]:
    """What this thread's actions print within is given to somebody while they run, and is no part of what they answer.

    Args:
        send: is given it, in parts; None if nobody is.
    """
    ident = threading.get_ident()
    before = _listeners.pop(ident, None)
    if send is not None:
        _listeners[ident] = Stream(send)
    try:
        yield
    finally:
        _listeners.pop(ident, None)
        if before is not None:
            _listeners[ident] = before


@contextlib.contextmanager
def captured_output(target: Target) -> Iterator[None]:
    """What this thread prints within goes to `target`, or to whoever is told of it while it runs."""
    stream = _listeners.get(threading.get_ident())
    target = target if stream is None else stream
    with _lock:
        routers = [_router("stdout"), _router("stderr")]
        for router in routers:
            router.take(target)
    try:
        yield
    finally:
        with _lock:
            for router in routers:
                if router.give_back():
                    router.leave()
        if stream is not None:
            stream.flush()


def _router(name: str) -> _Router:
    present = getattr(sys, name, None)
    if isinstance(present, _Router):
        return present
    router = _Router(name)
    setattr(sys, name, router)
    return router
