"""Where a held run and those who attach to it meet: a socket in a directory that is the user's alone."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import stat
import struct
from collections.abc import Iterator
from typing import Final

from daifu_bc.errors import DaifuError

DIRECTORY_MODE: Final = 0o700
SOCKET_MODE: Final = 0o600
_OTHERS: Final = 0o077
#: Where the fallback is; not what TMPDIR says, which may be another one for each job.
COMMON: Final = "/tmp"
_NAME: Final = re.compile(r"([1-9]\d*)\.sock")
_BACKLOG: Final = 16
#: Process, user and group at the other end: `struct ucred`.
_CREDENTIALS: Final = struct.Struct("3i")


class AttachError(DaifuError):
    """A held run cannot be reached. The text says what stands in the way."""

    slug = "attach"


def directories() -> list[str]:
    """Return the directories where sockets may be, the best one first."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    best = [os.path.join(base, "daifu_bc")] if os.path.isabs(base) and _is_own(base) else []
    return [*best, os.path.join(COMMON, f"daifu_bc-{os.getuid()}")]


def _is_own(path: str) -> bool:
    try:
        return os.stat(path).st_uid == os.getuid()
    except OSError:  # it ends with the user's last session, for one
        return False


def check(path: str) -> None:
    """See that a directory is the user's alone.

    Raises:
        AttachError: it is not.
        OSError: it is not there.
    """
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        reason = "it is a symbolic link"
    elif not stat.S_ISDIR(found.st_mode):
        reason = "it is no directory"
    elif found.st_uid != os.getuid():
        reason = f"it belongs to another user ({found.st_uid})"
    elif found.st_mode & _OTHERS:
        reason = f"others may enter it (its mode is {stat.S_IMODE(found.st_mode):04o}, not 0700)"
    else:
        return
    raise AttachError(f"{path} is not used", why=reason, remedy="Remove it, or set XDG_RUNTIME_DIR.")


def listen() -> tuple[socket.socket, str]:
    """Return a socket of this process that listens, and its path.

    Raises:
        AttachError: there is no place for it that is the user's alone.
        OSError: it cannot be made.
    """
    if os.getuid() != os.geteuid():
        raise AttachError("nobody may attach", why="the program runs with another user's rights")
    directory = directories()[0]
    with contextlib.suppress(FileExistsError):
        os.mkdir(directory, DIRECTORY_MODE)
    check(directory)
    path = os.path.join(directory, f"{os.getpid()}.sock")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _bind(listener, path)
        # Nobody else can enter the directory, so that the moment before does not matter.
        os.chmod(path, SOCKET_MODE)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener, path


def _bind(listener: socket.socket, path: str) -> None:
    try:
        listener.bind(path)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise AttachError(f"no socket can be made at {path}", why=str(error)) from None
        if not is_dead(path):
            raise AttachError(f"{path} is taken", why="another process answers there") from None
        os.unlink(path)  # of a process that had this one's number before
        listener.bind(path)


def is_dead(path: str) -> bool:
    """Tell whether nobody listens at a socket any more."""
    try:
        connect(path, 1.0).close()
    except (ConnectionRefusedError, FileNotFoundError):
        return True
    except OSError:  # it is there, and busy
        return False
    return False


def connect(path: str, seconds: float) -> socket.socket:
    """Return a connection to the process that listens at a path.

    Args:
        path: the socket's.
        seconds: how long to wait.

    Raises:
        OSError: nobody answers there.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


def user_of(connection: socket.socket) -> int | None:
    """Return the number of the user at the other end; None if the system does not tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    _, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size))
    return int(user)


def found() -> Iterator[tuple[int, str]]:
    """Yield the number of each process that has a socket, and its path.

    Raises:
        AttachError: a directory is not the user's alone. It comes last.
    """
    problems = []
    for directory in directories():
        try:
            check(directory)
            names = os.listdir(directory)
        except AttachError as error:
            problems.append(error)
            continue
        except OSError:
            continue
        for name in sorted(names):
            match = _NAME.fullmatch(name)
            if match:
                yield int(match[1]), os.path.join(directory, name)
    for problem in problems:
        raise problem
