"""File descriptors are the program's: it may have none left, and it may close ours (`os.closerange`).

Where none are left its own limit is raised for a hold, if that is allowed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import socket
import threading
from collections.abc import Iterator
from typing import Final

#: Files that a hold may open: a socket, those who come to it, what is imported.
_ROOM: Final = 64
_lock: Final = threading.Lock()


class _Room:
    """How the limit has been raised.

    Attributes:
        holds: for how many holds.
        before: the program's limit.
        raised: ours.
    """

    holds = before = raised = 0


_room = _Room()


@contextlib.contextmanager
def room_for_files(exception: BaseException) -> Iterator[None]:
    """Raises the limit of open files while a hold for want of them lasts."""
    if not isinstance(exception, OSError) or exception.errno != errno.EMFILE:
        yield
        return
    with _lock, contextlib.suppress(OSError, ValueError):
        present, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        if not _room.holds or present != _room.raised:
            wanted = present + _ROOM if most == resource.RLIM_INFINITY else min(present + _ROOM, most)
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
            _room.before, _room.raised = present, wanted
    _room.holds += 1
    try:
        yield
    finally:
        _room.holds -= 1
        with _lock, contextlib.suppress(OSError, ValueError):
            present, most = resource.getrlimit(resource.RLIMIT_NOFILE)
            # An action may have set another limit, which is the program's from then on.
            if not _room.holds and present == _room.raised:
                resource.setrlimit(resource.RLIMIT_NOFILE, (_room.before, most))


def identity(number: int) -> tuple[int, int] | None:
    """Return what tells the open file of a descriptor from others that get the same number; None if there is none.

    Args:
        number: the descriptor.
    """
    try:
        found = os.fstat(number)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def close_socket(own: socket.socket, before: tuple[int, int] | None) -> None:
    """Close a socket, if its descriptor is not another file's by now.

    Args:
        own: the socket.
        before: the identity that it had.
    """
    if own.fileno() >= 0 and identity(own.fileno()) != before:
        own.detach()
    own.close()
