"""Where a held run and those who attach to it meet: a socket in a directory that is the user's alone."""

from __future__ import annotations

import errno
import os
import socket
import struct
from typing import Final

from daifu_bc.recovery.meeting import AttachError
from daifu_bc.recovery.run_file import name_in, run_file

SOCKET_MODE: Final = 0o600
_BACKLOG: Final = 16
#: Process, user and group at the other end: `struct ucred` of Linux.
_CREDENTIALS: Final = struct.Struct("3i")
#: Version and user, at the beginning of `struct xucred` of macOS, and what it is asked by.
_OTHER_CREDENTIALS: Final = struct.Struct("2I")
_SOL_LOCAL: Final = 0
_LOCAL_PEERCRED: Final = 1
_XUCRED_BYTES: Final = 76


def listen() -> tuple[socket.socket, str]:
    """Return a socket of this process that listens, and its path.

    Raises:
        AttachError: there is no place for it that is the user's alone.
        OSError: it cannot be made.
    """
    path = f"{name_in(run_file.directory())}.sock"
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
        return _user_by_xucred(connection)
    _, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size))
    return int(user)


def _user_by_xucred(connection: socket.socket) -> int | None:
    if os.uname().sysname != "Darwin":
        return None
    try:
        told = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES)
        version, user = _OTHER_CREDENTIALS.unpack_from(told)
    except (OSError, struct.error):
        return None
    return int(user) if version == 0 else None
