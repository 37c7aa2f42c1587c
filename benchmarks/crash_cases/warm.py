"""Starts programs in forks of a process that has imported PyTorch already, which takes most of a case's time.

What a program does is the same; the time until its first line is not, so figures are taken from cold starts.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

SOCKET = 3
MODULES = ("torch", "torch._dynamo", "torch.utils.data", "numpy")
LONGEST = 1 << 20


class Fork:
    """A program that runs in a fork; what is used of `subprocess.Popen`.

    Args:
        connection: to the process that has forked.
        pid: of the fork.
        stdout: where its output can be read.
    """

    def __init__(self, connection: socket.socket, pid: int, stdout: IO[bytes]) -> None:
        self._connection = connection
        self.pid = pid
        self.stdout = stdout

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, when it has ended.

        Raises:
            subprocess.TimeoutExpired: it has not.
        """
        self._connection.settimeout(timeout)
        try:
            return int(json.loads(self._connection.recv(LONGEST)))
        except TimeoutError:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0) from None
        finally:
            self._connection.settimeout(None)

    def kill(self) -> None:
        """End it."""
        os.kill(self.pid, 9)


class Warm:
    """The process that is ready; it lives as long as its connection.

    Args:
        connection: to it.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def start(
        self, command: Sequence[str], folder: Path, environment: dict[str, str], errors: IO[bytes]
    ) -> Fork:
        """Run a script, or a module behind `-m`, as `python` would."""
        reading, writing = os.pipe()
        request = {"command": list(command), "folder": str(folder), "environment": environment}
        socket.send_fds(self._connection, [json.dumps(request).encode()], [writing, errors.fileno()])
        os.close(writing)
        return Fork(self._connection, int(self._connection.recv(LONGEST)), os.fdopen(reading, "rb"))


@contextlib.contextmanager
def warm(root: Path) -> Iterator[Warm]:
    """Have a process ready.

    Args:
        root: of the repository.
    """
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1", "PATH": os.environ.get("PATH", "")}
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-m", __spec__.name, str(its.fileno())],
        env=environment,
        stdin=subprocess.DEVNULL,
        pass_fds=[its.fileno()],
    )
    its.close()
    try:
        yield Warm(ours)
    finally:
        ours.close()
        process.wait(10)


def serve(connection: socket.socket) -> dict[str, Any] | None:
    """Fork for each request; what is asked for in the fork, None at the end."""
    while True:
        text, descriptors, _, _ = socket.recv_fds(connection, LONGEST, 2)
        if not text:
            return None
        pid = os.fork()
        if not pid:
            connection.close()
            for target, descriptor in enumerate(descriptors, start=1):
                os.dup2(descriptor, target)
                os.close(descriptor)
            request: dict[str, Any] = json.loads(text)
            return request
        for descriptor in descriptors:
            os.close(descriptor)
        connection.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def become(request: dict[str, Any]) -> None:
    """Be what `python` would be with this command line."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [*path, *(entry for entry in sys.path if entry not in path)]
    sys.dont_write_bytecode = True
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.modules.pop("sitecustomize", None)
    with contextlib.suppress(ImportError):
        importlib.import_module("sitecustomize")
    command = request["command"]
    if command[0] == "-m":
        sys.argv = command[1:]
        sys.path.insert(0, request["folder"])
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = command
        sys.path.insert(0, os.path.dirname(os.path.abspath(command[0])))
        runpy.run_path(command[0], run_name="__main__")


def end(request: dict[str, Any]) -> int:
    """Do what is asked for, and what an interpreter does at its end but for taking down PyTorch, which takes a second."""
    code = 0
    try:
        become(request)
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    for module in MODULES:
        importlib.import_module(module)
    gc.freeze()
    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    if asked is not None:
        os._exit(end(asked))
