"""The user's runs: those that have left a file or a socket in their directory, and are still there."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from daifu_bc.frontends import told
from daifu_bc.frontends.connection import AnsweredNoError, GoneError, connect
from daifu_bc.frontends.protocol import Object
from daifu_bc.recovery import meeting, processes
from daifu_bc.recovery.meeting import AttachError

_NAME: Final = re.compile(r"(([1-9]\d*)(?:-\d+)?)\.(json|sock)")
#: A file that its process has not put into its place.
_NEW: Final = re.compile(r"[1-9]\d*(?:-\d+)?\.json\.([1-9]\d*)\.new")
#: Seconds in which a run without a file says how it is.
_PATIENCE: Final = 2.0
_MOST_BYTES: Final = 1 << 20


class Run(NamedTuple):
    """A run.

    Attributes:
        pid: its number.
        path: its file, or its socket if it has none.
        facts: what it tells of itself, as in its file.
        socket: its socket; None if it has none now.
    """

    pid: int
    path: str
    facts: Object
    socket: str | None

    @property
    def held(self) -> bool:
        """Whether it is held."""
        return bool(self.facts.get("state") == "held")


def runs() -> tuple[list[Run], list[AttachError]]:
    """Return the user's runs, and why some directories are not looked into; what dead processes have left is removed."""
    found: list[Run] = []
    problems: list[AttachError] = []
    for directory in meeting.directories():
        try:
            meeting.check(directory)
            found += _in(directory)
        except AttachError as error:
            problems.append(error)
        except OSError:
            continue
    return found, problems


def _in(directory: str) -> Iterator[Run]:
    endings: dict[str, tuple[int, set[str]]] = {}
    for name in os.listdir(directory):
        match, new = _NAME.fullmatch(name), _NEW.fullmatch(name)
        if match:
            endings.setdefault(match[1], (int(match[2]), set()))[1].add(match[3])
        elif new and not processes.identity(int(new[1])):
            _unlink(os.path.join(directory, name))
    for stem, (pid, there) in sorted(endings.items(), key=lambda item: item[1][0]):
        path = os.path.join(directory, stem)
        run = _with_file(pid, path, "sock" in there) if "json" in there else _without_file(pid, path)
        if run is not None:
            yield run


def read(path: str) -> Object | None:
    """Return what stands in a run's file; None if it cannot be read, or is no run's."""
    try:
        with open(path, "rb") as file:
            content = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return content if told.is_run(content) else None


def is_there(facts: Object) -> bool:
    """Tell whether the process is still there that has written a file, and not another one with its number."""
    there = processes.identity(facts["pid"])
    return bool(there) and there == facts.get("identity")


def _with_file(pid: int, path: str, has_socket: bool) -> Run | None:
    file, socket = f"{path}.json", f"{path}.sock"
    facts = read(file)
    if facts is None or facts.get("pid") != pid:
        # It may have gone meanwhile; what is no run's file is left alone.
        return _without_file(pid, path) if has_socket else None
    if facts.get("namespace") == processes.namespace():
        if is_there(facts):
            return Run(pid, file, facts, socket if has_socket else None)
        if facts.get("host") == os.uname().nodename:
            _unlink(file, socket)
        return None
    # In another container; whether it is there can be seen by its socket alone.
    return Run(pid, file, facts, socket) if has_socket and _answers(socket) else None


def _answers(socket: str) -> bool:
    with contextlib.suppress(AttachError):
        connection = connect(socket)
        if connection is not None:
            connection.close()
            return True
    return False


def _without_file(pid: int, path: str) -> Run | None:
    socket = f"{path}.sock"
    facts: dict[str, Any] = {"pid": pid, "state": "held", "hold": None, "command": []}
    try:
        connection = connect(socket)
        if connection is None:
            return None
        with contextlib.closing(connection):
            status = connection.ask("status", _PATIENCE)
        facts["command"] = status["command"]
        facts["hold"] = next((hold for hold in status["holds"] if hold["number"] == status["hold"]), None)
    except (TimeoutError, AnsweredNoError):  # it is busy
        pass
    except (KeyError, TypeError):  # of another version
        return None
    except (AttachError, GoneError):  # not ours, or it has just gone on
        return None
    return Run(pid, socket, facts, socket) if told.is_run(facts) else None


def _unlink(*paths: str) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)
