"""What a program must do, and what it did: the oracles that all tests of the engine share.

The programs run in a worker process that is started anew when a program kills it.
"""

from __future__ import annotations

import atexit
import dataclasses
import json
import os
import selectors
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from tests.programs import engine
from tests.programs.run import Job, Outcome
from tests.programs.world import Plan

__all__ = [
    "Job",
    "Outcome",
    "Plan",
    "differences",
    "run_anew",
    "run_held",
    "run_plain",
    "run_skipping",
]

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_SECONDS = float(os.environ.get("DAIFU_TEST_TIMEOUT", "30"))
STDERR_SHARE = 2500
JOBS_PER_PROCESS = 2000


class Worker:
    """A process that runs test programs, and is replaced when one of them kills it or does not end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._jobs = 0

    def run(self, job: Job) -> Outcome:
        """Run the job; an outcome with `death` set if its process did not survive."""
        if self._jobs >= JOBS_PER_PROCESS:
            self.stop()
        self._jobs += 1
        process = self._started()
        assert process.stdin is not None
        line = json.dumps(dataclasses.asdict(job)).encode() + b"\n"
        try:
            process.stdin.write(line)
            process.stdin.flush()
        except BrokenPipeError:
            return Outcome(death=self._buried("the process had ended before"))
        reply = self._read_line(process)
        if reply is None:
            return Outcome(death=self._buried(f"no end after {TIMEOUT_SECONDS} s"))
        if not reply.endswith(b"\n"):
            return Outcome(death=self._buried("the process died"))
        return Outcome(**json.loads(reply))

    def stop(self) -> None:
        """End the process."""
        process, self._process, self._jobs = self._process, None, 0
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.close()
            process.wait(timeout=5)
        except (subprocess.TimeoutExpired, OSError):
            process.kill()
            process.wait()
        process.stdout.close()
        if self._stderr is not None:
            self._stderr.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.stop()
            self._stderr = tempfile.TemporaryFile()
            self._process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", "-m", "tests.programs.worker"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env=os.environ | {"PYTHONHASHSEED": "0"},
            )
        return self._process

    def _read_line(self, process: subprocess.Popen[bytes]) -> bytes | None:
        """Read a line; one without an end if the process died, None if it took too long."""
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        parts: list[bytes] = []
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while not (parts and parts[-1].endswith(b"\n")):
                if not selector.select(TIMEOUT_SECONDS):
                    process.kill()
                    return None
                part = os.read(descriptor, 1 << 20)
                if not part:
                    break
                parts.append(part)
        return b"".join(parts)

    def _buried(self, what: str) -> str:
        assert self._process is not None and self._stderr is not None
        self._process.kill()
        status = self._process.wait()
        self._stderr.seek(0)
        said = self._stderr.read().decode(errors="replace")
        if len(said) > 2 * STDERR_SHARE:
            # The Python frames come first; from 3.14 a long stack of C functions follows them.
            said = f"{said[:STDERR_SHARE]}\n[...]\n{said[-STDERR_SHARE:]}"
        self.stop()
        return f"{what}, exit status {status}; stderr:\n{said}"


_worker = Worker()
atexit.register(_worker.stop)


@lru_cache(maxsize=5000)
def _run_described(description: str) -> Outcome:
    fields: dict[str, Any] = json.loads(description)
    fields["plan"] = Plan(**fields["plan"])
    return _worker.run(Job(**fields))


def _run_once(job: Job) -> Outcome:
    """Run a job that needs nothing of the engine; the same one is run once only."""
    return _run_described(json.dumps(dataclasses.asdict(job)))


def run_plain(source: str, plan: Plan | None = None, *, sourceless: bool = False) -> Outcome:
    """Run the program as it is."""
    return _run_once(Job(source, plan=plan or Plan(), sourceless=sourceless))


def run_anew(source: str) -> Outcome:
    """Run the program as it is, even if it was run before."""
    return _worker.run(Job(source))


def run_skipping(source: str, plan: Plan, *, sourceless: bool = False) -> Outcome:
    """Run the program, with ``pass`` in place of each execution of a statement that an injected crash ended."""
    return _run_once(Job(source, form="skipping", plan=plan, sourceless=sourceless))


def run_held(
    source: str,
    plan: Plan | None = None,
    *,
    answers: list[list[str]] | None = None,
    edited: str = "",
    sourceless: bool = False,
    moments: list[int] | None = None,
    paused: list[str] | None = None,
) -> Outcome:
    """Run the program vaccinated, and answer its holds."""
    job = Job(
        source,
        form="held",
        plan=plan or Plan(),
        answers=answers or [["raise"]],
        edited=edited,
        sourceless=sourceless,
        moments=moments or [],
        paused=paused or ["pass"],
    )
    return _worker.run(job)


def differences(expected: Outcome, seen: Outcome, *, places: bool = True, columns: bool = False) -> list[str]:
    """Say in which ways `seen` is not what was expected.

    Args:
        expected: what the independent run did.
        seen: what the run with the engine did.
        places: compare the lines of the traceback of the exception that came out.
        columns: compare the columns as well.
    """
    if seen.death:
        return [f"death: {seen.death}"]
    if expected.death:
        return [f"the expectation itself: {expected.death}"]
    found = [f"refused: {refusal}" for refusal in seen.refusals]
    names = ["events", "result", "error", "thread_errors", "stderr"]
    names += ["places", "thread_places"] * places + ["columns"] * columns
    for name in names:
        wanted, given = getattr(expected, name), getattr(seen, name)
        if wanted != given:
            found.append(f"{name}:\n  expected {wanted}\n  seen     {given}")
    return found


def needs_engine() -> bool:
    """Tell whether a test must be left out because there is no engine."""
    return not engine.is_there()
