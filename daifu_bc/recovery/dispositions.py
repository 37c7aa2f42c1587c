"""What the system does at a signal, with its flags, which `signal.signal` would reset."""

from __future__ import annotations

import ctypes
from typing import Any, Final

#: More than any system's `struct sigaction` takes; its first member is the handler.
_SIZE: Final = 512
_HANDLER: Final = ctypes.sizeof(ctypes.c_void_p)
_Buffer: Final = ctypes.c_char * _SIZE
_sigaction: Final[Any] = getattr(ctypes.CDLL(None), "sigaction", None)


def disposition(number: int) -> bytes:
    """Return what the system has for a signal, as it gives it; empty if that cannot be had.

    Args:
        number: the signal's.
    """
    if _sigaction is None:
        return b""
    buffer = _Buffer()
    return bytes(buffer.raw) if _sigaction(number, None, buffer) == 0 else b""


def handler_of(found: bytes) -> bytes:
    """Return the part of a disposition that says what is called.

    Args:
        found: it.
    """
    return found[:_HANDLER]


def dispose(number: int, before: bytes) -> None:
    """Bring a disposition back.

    Args:
        number: the signal's.
        before: what `disposition` has returned.
    """
    # Not `create_string_buffer`: torch may be watching which Python functions run.
    if before and _sigaction is not None:
        _sigaction(number, _Buffer.from_buffer_copy(before), None)
