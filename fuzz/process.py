"""The process that examines cases, seen from outside: it is started anew when a program kills it."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from fuzz.case import Case, Report

ROOT = Path(__file__).resolve().parent.parent
CASES_PER_PROCESS = 1000
STDERR_SHARE = 2500


class Examination:
    """Examines cases in another process.

    Args:
        timeout: seconds without a word after which a program does not end.
    """

    def __init__(self, timeout: float = 60.0) -> None:
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._unread = b""
        self._cases = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def examine(self, case: Case) -> Report:
        """The report on a case; that it killed the process is a finding, unless the plain program did."""
        if self._cases >= CASES_PER_PROCESS:
            self.stop()
        self._cases += 1
        process = self._started()
        assert process.stdin is not None
        stage = "before"
        try:
            process.stdin.write(json.dumps(asdict(case)).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            return Report([f"death: {self._buried('it had ended before')}"])
        while True:
            line = self._read_line(process)
            if line is None or not line.endswith(b"\n"):
                what = f"no end after {self._timeout} s" if line is None else "the process died"
                text = self._buried(f"{what} ({stage})")
                return Report(usable=False) if stage == "expected" else Report([f"death: {text}"])
            kind, value = json.loads(line)
            if kind == "report":
                return Report(**value)
            stage = value

    def stop(self) -> None:
        """End the process."""
        process, self._process, self._cases, self._unread = self._process, None, 0, b""
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
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
            self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the process
            self._process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", "-W", "ignore", "-m", "fuzz.worker"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env=os.environ
                | {
                    "PYTHONHASHSEED": "0",
                    "DAIFU_JOURNAL": os.devnull,
                    "PYTHONPATH": str(ROOT),
                    "DAIFU": "",
                    "DAIFU_ATTACH": "0",
                },
            )
        return self._process

    def _read_line(self, process: subprocess.Popen[bytes]) -> bytes | None:
        """A line; one without an end if the process died, None if it took too long."""
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(self._timeout):
                    return None
                part = os.read(descriptor, 1 << 20)
                if not part:
                    break
                self._unread += part
        line, end, self._unread = self._unread.partition(b"\n")
        return line + end

    def _buried(self, what: str) -> str:
        assert self._process is not None
        assert self._stderr is not None
        self._process.kill()
        status = self._process.wait()
        self._stderr.seek(0)
        said = self._stderr.read().decode(errors="replace")
        if len(said) > 2 * STDERR_SHARE:
            # The Python frames come first; from 3.14 a long stack of C functions follows them.
            said = f"{said[:STDERR_SHARE]}\n[...]\n{said[-STDERR_SHARE:]}"
        self.stop()
        return f"{what}, exit status {status}; stderr:\n{said}"
