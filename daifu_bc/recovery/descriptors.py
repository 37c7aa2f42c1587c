"""File descriptors are the program's, too: it may close ours (`os.closerange`), and have other files in their place."""

from __future__ import annotations

import os
import socket


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
