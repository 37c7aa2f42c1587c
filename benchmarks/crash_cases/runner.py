"""Runs a case's programs, each in an empty folder and a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from benchmarks.crash_cases.case import LIBRARIES, SHARED, Case, Recovery

ROOT = Path(__file__).resolve().parent.parent.parent
TIMEOUT_SECONDS = 120
#: How long processes that the program has left behind may hold its output open.
PATIENCE_SECONDS = 10


@dataclass(frozen=True)
class Run:
    """What a process did.

    Attributes:
        code: its exit code.
        lines: the lines of its output; they are the event list.
        times: when each line came, in seconds since the start.
        began: when it was started, as `time.time()` tells it.
        seconds: how long it ran.
        errors: what it wrote to stderr.
        journal: the entries of daifu's journal.
    """

    code: int
    lines: list[str]
    times: list[float]
    began: float
    seconds: float
    errors: str
    journal: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ended_with(self) -> str:
        """The name of the exception that ended it; empty if none did."""
        if not self.code:
            return ""
        last = next((line for line in reversed(self.errors.splitlines()) if line and line[0] != " "), "")
        return last.partition(":")[0].rpartition(".")[2]


class Process(Protocol):
    """A program that runs: what is used of `subprocess.Popen`."""

    @property
    def stdout(self) -> IO[bytes] | None:
        """Where its output can be read."""

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, when it has ended."""

    def kill(self) -> None:
        """End it."""


class Start(Protocol):
    """Starts an interpreter: what follows `python` on its command line, where, and where its stderr goes."""

    def __call__(
        self, command: Sequence[str], folder: Path, environment: dict[str, str], errors: IO[bytes]
    ) -> Process:
        """Start it."""


def cold(command: Sequence[str], folder: Path, environment: dict[str, str], errors: IO[bytes]) -> Process:
    """Start a new process."""
    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
    )


def run_fixed(case: Case, start: Start = cold) -> Run:
    """Run the fixed program as it is."""
    with tempfile.TemporaryDirectory(prefix="crash_case_") as name:
        folder = _copy(case, Path(name))
        for made in case.fixed_folders:
            (folder / made).mkdir(parents=True)
        environment = _environment(case.environment | case.fixed_environment, ())
        with _neighbour(case, folder, environment):
            return _run(start, folder, [case.fixed, *case.arguments], environment)


def run_plain(case: Case, start: Start = cold) -> Run:
    """Run the program that crashes as it is."""
    with tempfile.TemporaryDirectory(prefix="crash_case_") as name:
        folder = _copy(case, Path(name))
        environment = _environment(case.environment, case.faults)
        with _neighbour(case, folder, environment):
            return _run(start, folder, [case.program, *case.arguments], environment)


def run_recovery(case: Case, recovery: Recovery, start: Start = cold) -> Run:
    """Run the program that crashes under `daifu run`, its stops answered by the recovery's playbook."""
    with tempfile.TemporaryDirectory(prefix="crash_case_") as name:
        folder = _copy(case, Path(name))
        # Beside the project, which is the program's alone.
        journal = folder.parent / "journal.jsonl"
        options = ["--playbook", recovery.playbook, "--journal", str(journal), *recovery.options]
        command = ["-m", "daifu_bc", "run", *options, case.program, *case.arguments]
        environment = _environment(case.environment | recovery.environment, case.faults)
        with _neighbour(case, folder, environment):
            run = _run(start, folder, command, environment)
        entries = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
        run.journal.extend(json.loads(line) for line in entries)
        return run


def _copy(case: Case, folder: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__", "case.toml")
    project = shutil.copytree(case.folder, folder / case.name, ignore=ignored)
    for name in case.shared:
        shutil.copytree(SHARED / name, project, ignore=ignored, dirs_exist_ok=True)
    return project


def _environment(more: dict[str, str], faults: Sequence[str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DAIFU", "PYTHON"))}
    path = [*(str(LIBRARIES / name) for name in faults), str(LIBRARIES), str(ROOT)]
    own = {"PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    # More threads than one add in another order now and then.
    return kept | own | {"OMP_NUM_THREADS": "1", "DAIFU_ATTACH": "0"} | more


@contextlib.contextmanager
def _neighbour(case: Case, folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """The case's other process, from when it has said that it is ready."""
    if not case.neighbour:
        yield
        return
    command = [sys.executable, *case.neighbour]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise RuntimeError(f"{case.name}: {' '.join(case.neighbour)} has ended with {process.wait()}")
            yield
        finally:
            process.kill()


def _run(start: Start, folder: Path, command: Sequence[str], environment: dict[str, str]) -> Run:
    errors = folder.parent / "stderr.txt"
    lines: list[str] = []
    times: list[float] = []
    with errors.open("wb") as file:
        began = time.time()
        process = start(command, folder, environment, file)
        assert process.stdout is not None
        output = process.stdout

        def read() -> None:
            for line in output:
                times.append(time.time() - began)
                lines.append(line.decode(errors="backslashreplace").rstrip("\n"))

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            code = process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        seconds = time.time() - began
        reader.join(PATIENCE_SECONDS)
        if not reader.is_alive():
            output.close()
    return Run(code, lines, times, began, seconds, errors.read_text(errors="backslashreplace"))
