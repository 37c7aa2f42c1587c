"""Runs programs under `daifu run --attach`, with nobody at a terminal, and talks to them as clients do."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
#: Seconds after which a test has failed.
LIMIT = 120.0
INVITATION = re.compile(r"Held\. Type `daifu attach (\d+)` in another terminal")

CRASHES = """
def divide(state):
    result = 10 // len(state)
    print("result", result, flush=True)

divide([])
print("ends", flush=True)
"""


class Programs:
    """The processes of a test.

    Args:
        folder: where they run.
        runtime: the user's runtime directory.
    """

    def __init__(self, folder: Path, runtime: Path) -> None:
        self.folder = folder
        self.runtime = runtime
        self.directory = runtime / "daifu_bc"
        self.environment = {
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": str(runtime),
            "DAIFU_JOURNAL": str(folder / "journal.jsonl"),
        }
        self.started: list[subprocess.Popen[str]] = []
        self.timers: list[threading.Timer] = []
        self.clients: list[Client] = []

    def start(self, program: str = CRASHES, *options: str, **variables: str) -> Held:
        """Start a program under `daifu run --attach`."""
        (self.folder / "program.py").write_text(program)
        command = [sys.executable, "-X", "faulthandler", "-m", "daifu_bc", "run", *options, "program.py"]
        return Held(self.spawn(command, **variables))

    def spawn(self, command: list[str], **variables: str) -> subprocess.Popen[str]:
        """Start a process that is ended with the test, or when it takes too long; variables that are empty are not set."""
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env={
                name: value
                for name, value in ({"DAIFU_ATTACH": "1"} | self.environment | variables).items()
                if value
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        timer = threading.Timer(LIMIT, process.kill)
        timer.start()
        self.timers.append(timer)
        return process

    def command(self, *words: str) -> list[str]:
        """Return what the interpreter is given to run the command `daifu`; it does not see other runs on this machine."""
        program = (
            "import sys; from daifu_bc.recovery import meeting; meeting.COMMON = sys.argv.pop(1); "
            "from daifu_bc.cli import main; sys.exit(main())"
        )
        return ["-c", program, str(self.runtime), *words]

    def daifu(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the command `daifu` to its end."""
        process = self.spawn([sys.executable, *self.command(*words)], **variables)
        out, err = process.communicate()
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def sockets(self) -> list[str]:
        """Return the names of the sockets that are there."""
        return [name for name in self.left() if not name.endswith(".json")]

    def left(self) -> list[str]:
        """Return the names of all that is in the directory."""
        return sorted(os.listdir(self.directory)) if self.directory.is_dir() else []

    def listed(self) -> list[dict[str, Any]]:
        """Return what `daifu ps --json` prints."""
        done = self.daifu("ps", "--json")
        assert (done.returncode, done.stderr) == (0, "")
        return list(json.loads(done.stdout))

    def client(self, pid: int) -> Client:
        """Return a client of a process."""
        client = Client(self.directory / f"{pid}.sock")
        self.clients.append(client)
        return client

    def close(self) -> None:
        """End everything."""
        for timer in self.timers:
            timer.cancel()
        for client in self.clients:
            client.close()
        for process in self.started:
            # The whole session: a child that is held would live on, and keep what it prints to open.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


class Held:
    """A program that is going to be held."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.err = ""

    def wait_until(self, pattern: re.Pattern[str] = INVITATION) -> re.Match[str]:
        """Wait for a line on its standard error."""
        assert self.process.stderr is not None
        while True:
            line = self.process.stderr.readline()
            assert line, self.err
            self.err += line
            found = pattern.search(line)
            if found:
                return found

    def held(self) -> int:
        """Wait until it is held; the number of the process."""
        return int(self.wait_until()[1])

    def end(self) -> tuple[str, str, int]:
        """Wait for its end; what it printed, on both, and the exit code."""
        out, err = self.process.communicate()
        return out, self.err + err, self.process.returncode

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)


class Client:
    """Speaks the protocol by itself, so that not both ends can be wrong in the same way."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(LIMIT)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")
        self.number = 0

    def send(self, text: bytes) -> None:
        self.socket.sendall(text)

    def next(self) -> dict[str, Any]:
        """The next line; an empty object at the end."""
        line = self.file.readline()
        return json.loads(line) if line else {}

    def raw(self, text: bytes) -> dict[str, Any]:
        self.send(text)
        return self.next()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What a request is answered by; what is told meanwhile is passed over."""
        self.ask(method, **parameters)
        while True:
            content = self.next()
            if not content or content.get("id") == self.number:
                return content

    def ask(self, method: str, **parameters: Any) -> None:
        """Send a request."""
        self.number += 1
        content = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": parameters}
        self.send(json.dumps(content).encode() + b"\n")

    def close(self) -> None:
        self.file.close()
        self.socket.close()
