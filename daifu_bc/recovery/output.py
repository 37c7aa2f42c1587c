"""What one thread prints while an action runs in it; the other threads print where they always do."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
from collections.abc import Iterator
from typing import Any, Final, TextIO

_lock: Final = threading.Lock()


class _Router(io.TextIOBase):
    """Stands for `sys.stdout` or `sys.stderr` while actions run; afterwards it passes on what is still written to it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._missing = not hasattr(sys, name)
        self._stream: Any = getattr(sys, name, None)
        self._targets: dict[int, list[TextIO]] = {}

    def take(self, target: TextIO) -> None:
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
        if self._stream is not None:
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def captured_output(target: TextIO) -> Iterator[None]:
    """What this thread prints within goes to `target`."""
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


def _router(name: str) -> _Router:
    present = getattr(sys, name, None)
    if isinstance(present, _Router):
        return present
    router = _Router(name)
    setattr(sys, name, router)
    return router
