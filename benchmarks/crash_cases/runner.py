"""Runs a case's programs, each in an empty folder and a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.crash_cases.case import LIBRARIES, Case, Recovery

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


def run_fixed(case: Case) -> Run:
    """Run the fixed program as it is."""
    with tempfile.TemporaryDirectory(prefix="crash_case_") as name:
        folder = _copy(case, Path(name))
        for made in case.fixed_folders:
            (folder / made).mkdir(parents=True)
        environment = case.environment | case.fixed_environment
        return _run(folder, [case.fixed, *case.arguments], _environment(environment, ()))


def run_plain(case: Case) -> Run:
    """Run the program that crashes as it is."""
    with tempfile.TemporaryDirectory(prefix="crash_case_") as name:
        folder = _copy(case, Path(name))
        environment = _environment(case.environment, case.faults)
        return _run(folder, [case.program, *case.arguments], environment)


def run_recovery(case: Case, recovery: Recovery) -> Run:
    """Run the program that crashes under `daifu run`, its stops answered by the recovery's playbook."""
    with tempfile.TemporaryDirectory(prefix="crash_case_") as name:
        folder = _copy(case, Path(name))
        # Beside the project, which is the program's alone.
        journal = folder.parent / "journal.jsonl"
        words = ["--playbook", recovery.playbook, "--journal", str(journal)]
        command = ["-m", "daifu_bc", "run", *words, case.program, *case.arguments]
        run = _run(folder, command, _environment(case.environment, case.faults))
        entries = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
        run.journal.extend(json.loads(line) for line in entries)
        return run


def _copy(case: Case, folder: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__", "case.toml")
    return shutil.copytree(case.folder, folder / case.name, ignore=ignored)


def _environment(more: dict[str, str], faults: Sequence[str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DAIFU", "PYTHON"))}
    path = [*(str(LIBRARIES / name) for name in faults), str(LIBRARIES), str(ROOT)]
    own = {"PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    # More threads than one add in another order now and then.
    return kept | own | {"OMP_NUM_THREADS": "1"} | more


def _run(folder: Path, command: Sequence[str], environment: dict[str, str]) -> Run:
    errors = folder.parent / "stderr.txt"
    lines: list[str] = []
    times: list[float] = []
    with errors.open("wb") as file:
        began = time.time()
        process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", *command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=file,
        )
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
