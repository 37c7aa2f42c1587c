"""CPython's own test suite, vaccinated against plain: ``python -m conformance.cpython [options] [tests]``.

Each file of the suite runs twice in processes of its own, once plain and once with the test's modules and the
standard library vaccinated. The outcomes of its tests are compared one by one. Known differences stand in
`differences.toml` with their reasons; any other one makes the run fail. Files that differ run again, because some
tests go one way or the other in plain runs, too.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from conformance.comparison import read_known
from conformance.runner import KNOWN, PROCESS, Mode, Result, Runner, environment, link_startup, run_process

_FAILED_LINE: Final = re.compile(r"^(ERROR|FAIL): (\w+) \((\S+)\)", re.MULTILINE)
#: What ``python -m test`` returns if a test failed.
_TESTS_FAILED: Final = "2"
#: A file of tests has so many times the time of one test.
_TESTS_IN_FILE: Final = 5


@dataclass(frozen=True, slots=True)
class RegressionTests:
    """Where and how the suite runs.

    Attributes:
        python: the interpreter.
        startup: the folder that goes into PYTHONPATH.
        timeout: seconds for one test.
        extra: more arguments of ``python -m test``.
    """

    python: str
    startup: Path
    timeout: int
    extra: tuple[str, ...] = ()

    def _command(self, *arguments: str) -> list[str]:
        # Frozen modules have no file that they could be vaccinated from.
        return [self.python, "-X", "frozen_modules=off", "-m", "test", *arguments]

    def names(self) -> list[str]:
        """Return the names of all files of the suite."""
        variables = environment(self.startup, "plain")
        answer = subprocess.check_output(self._command("--list-tests"), env=variables, text=True)
        return [line for line in answer.split() if line.startswith("test")]

    def run(self, name: str, mode: Mode) -> Result:
        """Run a file of tests in a process of its own.

        Args:
            name: the file, as `names` gives it.
            mode: whether it runs vaccinated.
        """
        with tempfile.TemporaryDirectory(prefix="conformance-", ignore_cleanup_errors=True) as folder:
            xml = Path(folder, "result.xml")
            command = self._command(
                "-v", "--timeout", str(self.timeout), "--junit-xml", str(xml), *self.extra, name
            )
            variables = environment(self.startup, mode)
            ended = run_process(command, variables, folder, _TESTS_IN_FILE * self.timeout)
            outcomes = read_outcomes(xml.read_text(encoding="utf-8") if xml.exists() else "", ended.log)
            outcomes[PROCESS] = _end(ended.code, outcomes)
            return Result(outcomes, ended.seconds, ended.log)


def _end(code: str, outcomes: dict[str, str]) -> str:
    """Return how the process ended; that a test of it failed is no news."""
    told = any(outcome in ("error", "failure", "unexpected success") for outcome in outcomes.values())
    return "done" if code == "0" or (code == _TESTS_FAILED and told) else f"exit {code}"


def read_outcomes(xml: str, log: str) -> dict[str, str]:
    """Return how each test went.

    Args:
        xml: the report of the suite's runner; empty if the process has not come so far.
        log: what was printed; it tells of tests that failed in a part of theirs, which the report does not.
    """
    outcomes: dict[str, str] = {}
    for case in ET.fromstring(xml).iter("testcase") if xml else ():
        name = case.get("name")
        if name is not None:
            outcomes[name] = _outcome(case)
    for kind, method, place in _FAILED_LINE.findall(log):
        name = place if place.endswith(f".{method}") else f"{place}.{method}"
        outcomes[name] = "error" if kind == "ERROR" else "failure"
    return outcomes


def _outcome(case: ET.Element) -> str:
    for kind in ("error", "failure", "skipped"):
        if case.find(kind) is not None:
            return kind
    if case.find("output") is not None:
        return "expected failure"
    return "unexpected success" if case.find("outcome") is not None else "success"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite as the command line says, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m conformance.cpython", description=(__doc__ or "").split("\n\n")[1]
    )
    parser.add_argument("tests", nargs="*", help="files of the suite, such as test_generators; default: all")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the suite")
    parser.add_argument("--jobs", type=int, default=1, help="files that run at the same time")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one test")
    parser.add_argument("--results", type=Path, help="folder to keep results and logs in")
    parser.add_argument(
        "--reuse-plain", action="store_true", help="take plain results that lie there already"
    )
    parser.add_argument("--exclude", action="append", default=[], help="leave this file out")
    parser.add_argument(
        "--ignore", action="append", default=[], help="leave out tests of this name or pattern"
    )
    parser.add_argument("--match", action="append", default=[], help="only tests of this name or pattern")
    parser.add_argument("--hold", action="store_true", help="hold each crash before it is let go")
    chosen = parser.parse_args(arguments)
    os.environ["CONFORMANCE_HOLD"] = "1" if chosen.hold else "0"
    with tempfile.TemporaryDirectory(prefix="conformance-") as temporary:
        startup = link_startup(Path(temporary))
        extra = tuple(word for pattern in chosen.match for word in ("-m", pattern))
        extra += tuple(word for pattern in chosen.ignore for word in ("-i", pattern))
        suite = RegressionTests(chosen.python, startup, chosen.timeout, extra)
        ask = "import sys; print('%d.%d' % sys.version_info[:2])"
        version = subprocess.check_output([chosen.python, "-c", ask], text=True).strip()
        folder = (chosen.results or Path(temporary)) / version
        # Results of some tests of a file are not those of the file.
        reuse_plain = chosen.reuse_plain and not extra
        runner = Runner(suite, read_known(KNOWN, version), folder, reuse_plain)
        names = [name for name in chosen.tests or suite.names() if name not in chosen.exclude]
        return runner.run(names, chosen.jobs)


if __name__ == "__main__":
    sys.exit(main())
