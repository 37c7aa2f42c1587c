"""What a run tells of itself beside its socket: who it is, and whether it is held; `daifu ps` reads it."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
from typing import Any, Final

from daifu_bc.recovery import announcements, attaching, meeting, pause_signal, processes
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.last_will import at_death
from daifu_bc.recovery.private import FILE_MODE
from daifu_bc.recovery.ranks import ranks
from daifu_bc.recovery.turns import facts


class RunFile:
    """The file of this process. Whatever goes wrong with it, the program does not feel it."""

    def __init__(self) -> None:
        # A signal's handler may come to a hold of its own while this thread is in here.
        self._lock = threading.RLock()
        self._path = ""
        #: Where it was at first: whoever looks for the run does so there, whatever the program does to its environment.
        self._directory = ""
        self._known: dict[str, Any] = {}
        self._holds: dict[int, dict[str, Any]] = {}
        self._debugger: dict[str, Any] | None = None
        #: Whether it is there only as long as something is held: a forked child does not clean up at its end, and
        #: of workers there are many.
        self._for_holds_only = True

    def listen(self) -> None:
        """Write it when something is held from now on, if the run may be reached at all."""
        announcements.listen(self._heard)

    def install(self) -> None:
        """Write it now, and keep it up to date."""
        self._for_holds_only = False
        self.listen()
        self.update()

    def update(self) -> None:
        """Do as the environment says now."""
        with self._lock, contextlib.suppress(OSError, meeting.AttachError):
            if not attaching.allowed():
                self._remove()
            elif self._holds or not self._for_holds_only:
                self._write()

    def set_debugger(self, host: str | None, port: int = 0) -> None:
        """Tell where a debugger listens.

        Args:
            host: the address; None if it does not any more.
            port: the port.
        """
        self._debugger = None if host is None else {"host": host, "port": port}
        self.update()

    def _heard(self, kind: announcements.Kind, hold: HoldLike, _reason: str) -> None:
        with self._lock:
            if kind == "held":
                self._holds[hold.number] = facts(hold)
            elif kind == "resumed":
                self._holds.pop(hold.number, None)
            else:
                return
            if self._for_holds_only and not self._holds:
                self._remove()
            else:
                self.update()

    def _content(self) -> dict[str, Any]:
        if not self._known:
            self._known = {
                "pid": os.getpid(),
                "identity": processes.identity(os.getpid()),
                "host": os.uname().nodename,
                "namespace": processes.namespace(),
                "command": sys.orig_argv,
                "folder": _folder(),
                "python": sys.version.split()[0],
                "started": time.time(),
                "ranks": None if (found := ranks()) is None else found._asdict(),
            }
        return {
            **self._known,
            "state": "held" if self._holds else "running",
            "pause_signal": pause_signal.installed(),
            "hold": next(iter(self._holds.values()), None),
            "debugger": self._debugger,
        }

    def _write(self) -> None:
        # Imported with the engine at the latest; children import this module at their start.
        import json

        content = self._content()
        text = json.dumps(content, default=str).encode("ascii", "backslashreplace") + b"\n"
        with contextlib.suppress(meeting.AttachError, OSError):
            self.directory()  # it may have been tidied away
        path = self._path or self._own_path()
        new = f"{path}.{os.getpid()}.new"
        descriptor = os.open(
            new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE
        )
        try:
            try:
                os.fchmod(descriptor, FILE_MODE)  # the program's umask may have taken of it
                while text:
                    text = text[os.write(descriptor, text) :]
            finally:
                os.close(descriptor)
            os.rename(new, path)
        except OSError:  # the disk is full, say; what stands there is the truth no more
            for left in (new, path):
                with contextlib.suppress(OSError):
                    os.unlink(left)
            raise
        if not self._path:
            self._path = path
            if not self._for_holds_only:
                self._directory = os.path.dirname(path)
            atexit.register(self._remove)

    def _own_path(self) -> str:
        return f"{name_in(self.directory())}.json"

    def directory(self) -> str:
        """Return where the process can be found, which is made if it is not there.

        Raises:
            AttachError: there is no such directory that is the user's alone.
            OSError: it cannot be made.
        """
        if self._directory:
            with contextlib.suppress(meeting.AttachError, OSError):
                return meeting.place(self._directory)
        return meeting.place()

    def _remove(self) -> None:
        path, self._path = self._path, ""
        if path:
            atexit.unregister(self._remove)
            with contextlib.suppress(OSError):
                os.unlink(path)

    def in_child(self) -> None:
        """A forked child has none, until it is held."""
        self._lock = threading.RLock()
        atexit.unregister(self._remove)
        self._path, self._known, self._holds, self._debugger = "", {}, {}, None
        self._for_holds_only = True


def name_in(directory: str) -> str:
    """Return the path for what this process puts into the directory, without an ending.

    It is the process's number. In another container that shares the directory a process may have the same one.

    Args:
        directory: it.
    """
    plain = os.path.join(directory, str(os.getpid()))
    try:
        with open(f"{plain}.json", "rb") as file:
            import json

            there = json.loads(file.read()).get("namespace", "")
    except (OSError, ValueError, AttributeError):
        return plain
    own = processes.namespace()
    # Of the same numbering: it is this process's, or that of one that had the number before.
    return plain if there == own else f"{plain}-{''.join(filter(str.isdigit, own))}"


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it has been removed
        return ""


#: Of this process.
run_file: Final = RunFile()
at_death.append(run_file._remove)

os.register_at_fork(after_in_child=run_file.in_child)
