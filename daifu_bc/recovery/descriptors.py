"""Room for a hold where the program has no file descriptors left: its own limit is raised, if that is allowed."""

from __future__ import annotations

import contextlib
import errno
import resource
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
