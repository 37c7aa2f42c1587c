"""Runs programs under `daifu run --debugpy`, and attaches to them as an editor does."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.dap_client import DapClient

ROOT = Path(__file__).resolve().parent.parent
#: Seconds after which a test has failed.
LIMIT = 40.0
ADDRESS = re.compile(r"Debugger listens at 127\.0\.0\.1:(\d+)\.$")


#: What `python -m debugpy --listen` does, which also tells where it listens, as soon as a client may come.
_TELLS = """
import debugpy, sys
from debugpy.server import cli
listen = debugpy.listen
def tells(*arguments, **keywords):
    host, port = listen(*arguments, **keywords)
    print(f"Debugger listens at {host}:{port}.", file=sys.stderr, flush=True)
debugpy.listen = tells
sys.argv[0] = "debugpy"
cli.main()
"""


def under_debugpy(*command: str) -> list[str]:
    """Return the command line of a program that is started under debugpy, and waits for a client.

    Args:
        command: what follows `python`.
    """
    return [sys.executable, "-c", _TELLS, "--listen", "127.0.0.1:0", "--wait-for-client", *command]


@dataclass
class Debugged:
    """A program that is going to be held.

    Attributes:
        folder: where it runs.
        process: it.
        port: where the debugger listens.
    """

    folder: Path
    process: subprocess.Popen[str]
    port: int = 0
    err: str = ""
    clients: list[DapClient] = field(default_factory=list)

    @property
    def path(self) -> str:
        """The program's file."""
        return str(self.folder / "program.py")

    def find_port(self) -> int:
        """Wait until it has told where the debugger listens."""
        assert self.process.stderr is not None
        while not self.port:
            line = self.process.stderr.readline()
            self.err += line
            assert line, self.err
            found = ADDRESS.search(line.rstrip("\n"))
            self.port = int(found[1]) if found else 0
        return self.port

    def attach(
        self, breakpoints: tuple[int, ...] = (), filters: tuple[str, ...] = (), **arguments: object
    ) -> DapClient:
        """Attach as an editor does, with breakpoints in the program."""
        client = DapClient(self.find_port())
        self.clients.append(client)
        client.attach({self.path: list(breakpoints)}, filters, **({"justMyCode": False} | arguments))
        return client

    def end(self) -> tuple[str, str, int]:
        """Wait for its end: what it printed on both, and the exit code."""
        # The process waits at its end until the client has gone.
        for client in self.clients:
            client.close()
        out, err = self.process.communicate(timeout=LIMIT)
        return out, self.err + err, self.process.returncode


@contextmanager
def debugged(folder: Path, program: str, *options: str, **variables: str) -> Iterator[Debugged]:
    """Start a program with nobody at a terminal.

    Args:
        folder: where it runs.
        program: its text.
        options: of `daifu run`; a debugger listens at any free port.
        variables: of its environment.
    """
    (folder / "program.py").write_text(program)
    command = [sys.executable, "-X", "faulthandler", "-m", "daifu_bc", "run", "--debugpy", "0", *options]
    with started(folder, [*command, "program.py"], **variables) as found:
        yield found


@contextmanager
def started(folder: Path, command: list[str], **variables: str) -> Iterator[Debugged]:
    """Start a process that ends with the block, or when it takes too long."""
    runtime = folder / "runtime"
    runtime.mkdir(0o700, exist_ok=True)
    environment = {
        "XDG_RUNTIME_DIR": str(runtime),
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "PATH": "",
        "DAIFU_JOURNAL": str(folder / "journal.jsonl"),
    }
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    timer = threading.Timer(LIMIT, process.kill)
    timer.start()
    found = Debugged(folder, process)
    try:
        yield found
    finally:
        timer.cancel()
        for client in found.clients:
            client.close()
        process.kill()
        process.communicate()
