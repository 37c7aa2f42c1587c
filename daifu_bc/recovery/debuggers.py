"""Whether a hold may be shown in a debugger, and where one listens; what knows debuggers and front ends say the rest."""

from __future__ import annotations

import importlib
import ipaddress
import os
from collections.abc import Callable
from typing import Final, cast

from daifu_bc.errors import UsageError
from daifu_bc.recovery.telling import tell

#: Where debugpy listens: `[HOST:]PORT`.
VARIABLE: Final = "DAIFU_DEBUGPY"
#: Whether that may be a host that others reach: 1 or 0.
REMOTE: Final = "DAIFU_DEBUGPY_ALLOW_REMOTE"
LOOPBACK: Final = "127.0.0.1"
_LARGEST_PORT: Final = 65535

_attached: Callable[[], bool] | None = None
_watcher = ""


def wanted() -> bool:
    """Tell whether a debugger is to be listened for."""
    return bool(os.environ.get(VARIABLE))


def checked(text: str) -> str:
    """An address as the user has written it.

    Raises:
        UsageError: it is none.
    """
    _split(text)
    return text.strip()


def _split(text: str) -> tuple[str, int]:
    host, _, port = text.strip().rpartition(":")
    if not port.isdecimal() or int(port) > _LARGEST_PORT:
        raise UsageError(
            f"{text!r} is no address for a debugger", remedy="Write a port, or HOST:PORT: 5678, 127.0.0.1:0."
        )
    return host.removeprefix("[").removesuffix("]") or LOOPBACK, int(port)


def address() -> tuple[str, int]:
    """Where a debugger is to be listened for: host and port, 0 for any port.

    Raises:
        UsageError: it is no address, or others reach it and that was not allowed.
    """
    host, port = _split(os.environ.get(VARIABLE) or "0")
    if not is_loopback(host) and os.environ.get(REMOTE) != "1":
        raise UsageError(
            f"a debugger that listens at {host} can be reached from other machines",
            remedy="Give --debugpy-allow-remote, too, if that is meant.",
        )
    return host, port


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def know(attached: Callable[[], bool]) -> None:
    """Ask this function from now on whether a debugger's client is there."""
    global _attached
    _attached = attached


def attached() -> bool:
    """Tell whether a client is there; asked at each exception that meets a barrier."""
    return _attached is not None and _attached()


def set_watcher(function: str) -> None:
    """Say what is called when a client has come or has left: `package.module:function`."""
    global _watcher
    _watcher = function


def changed(*, attached: bool) -> None:
    """Tell that a client has come, or has left; called in a thread of the debugger's.

    Args:
        attached: whether it has come.
    """
    if not _watcher:
        return
    home, _, name = _watcher.partition(":")
    try:
        cast("Callable[[bool], None]", getattr(importlib.import_module(home), name))(attached)
    except Exception as error:  # noqa: BLE001 - the debugger goes on without us
        tell(f"daifu_bc: the debugger could not be taken notice of ({type(error).__name__}: {error}).")
