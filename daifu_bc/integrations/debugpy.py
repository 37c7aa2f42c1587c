"""debugpy is started when a debugger is asked for, and not before: it is an extra."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

from daifu_bc.errors import DaifuError
from daifu_bc.integrations import adapter
from daifu_bc.integrations.pydevd import hooks, known, stops, watching
from daifu_bc.recovery import debuggers
from daifu_bc.recovery.run_file import run_file

_NO_WARNING: Final = "PYDEVD_DISABLE_FILE_VALIDATION"
_PATIENCE, _PAUSE = 5.0, 0.02


class DebuggerError(DaifuError):
    """No debugger can be listened for. Do what the text says."""

    slug = "debugger"


class Listener(NamedTuple):
    """Where debugpy listens.

    Attributes:
        host: the address.
        port: the port.
        token: what a client has to send in `attach` as `daifuToken`; empty if nothing.
    """

    host: str
    port: int
    token: str

    def __str__(self) -> str:
        """Return the address as it is written."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


_listener: Listener | None = None
_process = 0


def listener() -> Listener | None:
    """Return where it listens that we have started in this process; None if there is none."""
    return _listener if _process == os.getpid() else None


def listen() -> Listener:
    """Start debugpy where the user wants it, at a free port if that one is taken; once in a process.

    Raises:
        DebuggerError: it cannot be.
        UsageError: it is not installed, or not known, or the address is none.
    """
    global _listener, _process
    found = listener()
    if found is not None and hooks.debugger() is not None:
        return found
    host, port = debuggers.address()
    with _quiet():
        try:
            import debugpy
            import debugpy._vendored.force_pydevd  # what it brings along is what `pydevd` knows
        except ImportError:
            debugpy = None
        if debugpy is not None:
            _check()
            if found is not None:  # its adapter has died, and it is still about to end
                deadline = time.monotonic() + _PATIENCE
                while known.instance() is not None and time.monotonic() < deadline:
                    time.sleep(_PAUSE)
                sys.modules["debugpy.server.api"].listen.called = False
            # Its own way of following child processes changes how processes are started, for good.
            debugpy.configure(subProcess=False)
        # Where the client's user cannot be looked up, a token is needed on the same machine, too.
        guarded = debuggers.is_loopback(host) and sys.platform == "linux"
        token = "" if guarded else secrets.token_urlsafe()
        try:
            address = adapter.listen(host, port, token)
        except RuntimeError as error:
            if not port:
                raise DebuggerError("no debugger can be listened for", why=str(error)) from None
            try:
                address = adapter.listen(host, 0, token)  # another process of the run has that port
            except RuntimeError as second:
                raise DebuggerError("no debugger can be listened for", why=str(second)) from None
    if not _process:
        os.register_at_fork(after_in_child=_in_child)
    _listener, _process = Listener(*address, token), os.getpid()
    run_file.set_debugger(*address)
    watching.rest()
    return _listener


def _in_child() -> None:
    """A forked child has a debugger that does not work; if it is held, it gets one of its own."""
    global _listener
    if _listener is not None and hooks.installed():
        _listener = None
        stops.stops.clear()
        watching.rest_in_child()
        sys.modules["debugpy.server.api"].listen.called = False


def _check() -> None:
    """See that a hold can be shown there.

    Raises:
        DebuggerError: it cannot.
    """
    hooks.install()
    if not hooks.installed():
        raise DebuggerError("a hold cannot be shown in this version of debugpy", why=known.unknown())
    if hooks.debugger() is not None:
        raise DebuggerError(
            "a debugger is there already, which the program has started",
            remedy="Attach at the address that was given to it.",
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep pydevd from warning of frozen modules, in which nobody sets breakpoints."""
    before = os.environ.get(_NO_WARNING)
    os.environ[_NO_WARNING] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_NO_WARNING, None)
        else:
            os.environ[_NO_WARNING] = before
