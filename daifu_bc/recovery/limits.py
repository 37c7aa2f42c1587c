"""Limits of the program's that are raised while it is held because of them: a hold needs room, too."""

from __future__ import annotations

import contextlib
import errno
import resource
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final

#: Frames that a hold may use on top of a stack that is full.
_FRAMES: Final = 3000
#: Files that a hold may open: a socket, those who come to it, what is imported.
_FILES: Final = 64


class _Limit:
    """A limit that is raised as long as something is held because of it.

    Args:
        read: returns it.
        write: sets it.
        room: by how much it is raised.
    """

    def __init__(self, read: Callable[[], int], write: Callable[[int], None], room: int) -> None:
        self._read = read
        self._write = write
        self._room = room
        self._lock = threading.Lock()
        self._holds = self._before = self._raised = 0

    @contextlib.contextmanager
    def raised(self) -> Iterator[None]:
        """Raises it; where that is not allowed, it stays."""
        with self._lock:
            with contextlib.suppress(OSError, ValueError):
                present = self._read()
                if not self._holds or present != self._raised:
                    self._write(present + self._room)
                    self._before, self._raised = present, self._read()
            self._holds += 1
        try:
            yield
        finally:
            with self._lock:
                self._holds -= 1
                # An action may have set another limit, which is the program's from then on. Our own frames may still be
                # too deep for the old one; those who come next are not.
                with contextlib.suppress(OSError, ValueError, RecursionError):
                    if not self._holds and self._read() == self._raised:
                        self._write(self._before)


def _files() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _set_files(number: int) -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (number if most == resource.RLIM_INFINITY else min(number, most), most)
    )


_stack: Final = _Limit(sys.getrecursionlimit, sys.setrecursionlimit, _FRAMES)
_open_files: Final = _Limit(_files, _set_files, _FILES)


def room_to_work(exception: BaseException) -> contextlib.AbstractContextManager[None]:
    """Makes room for a hold, within, where the program has no stack, or no file descriptors, left.

    Args:
        exception: what it is held for.
    """
    # No generator of its own: on a full stack each frame counts.
    if isinstance(exception, RecursionError):
        return _stack.raised()
    if isinstance(exception, OSError) and exception.errno == errno.EMFILE:
        return _open_files.raised()
    return contextlib.nullcontext()
