"""Runs each part of a suite plain and vaccinated, and tells of the differences."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple, Protocol

import bytecode

from conformance.comparison import Difference, Known, compare, explain, unsteady

_HERE: Final = Path(__file__).resolve().parent

#: The file of differences that are expected.
KNOWN: Final = _HERE / "differences.toml"

#: What stands for the process that runs a part, beside the tests in it.
PROCESS: Final = "process"

Mode = Literal["plain", "vaccinated"]
_MODES: Final[tuple[Mode, ...]] = ("plain", "vaccinated")


@dataclass(slots=True)
class Result:
    """How the tests of one part went.

    Attributes:
        outcomes: by the tests' names, and that of the process as `PROCESS`.
        seconds: how long it took.
        log: what the process has printed.
    """

    outcomes: dict[str, str]
    seconds: float
    log: str


class Suite(Protocol):
    """What can be run in parts."""

    def names(self) -> list[str]:
        """Return the names of all parts."""

    def run(self, name: str, mode: Mode) -> Result:
        """Run a part in a process of its own."""


class Ended(NamedTuple):
    """How a process ended.

    Attributes:
        code: its exit code, negative for a signal, or ``timeout``.
        log: what it has printed.
        seconds: how long it took.
    """

    code: str
    log: str
    seconds: float


def environment(startup: Path, mode: Mode) -> dict[str, str]:
    """Return the environment of a process.

    Args:
        startup: the folder that `link_startup` has made.
        mode: whether it runs vaccinated.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DAIFU", "PYTHON"))}
    switch = "1" if mode == "vaccinated" else "0"
    chosen = {"PYTHONPATH": str(startup), "DAIFU": switch, "DAIFU_SCOPE": "all", "DAIFU_JOURNAL": os.devnull}
    # What nobody handles is to go on at once.
    return {**kept, **chosen, "DAIFU_ATTACH": "0"}


def run_process(command: Sequence[str], variables: Mapping[str, str], folder: str, timeout: float) -> Ended:
    """Run a command to its end, or to the end of its time; nothing that it started is left behind.

    Args:
        command: it.
        variables: its environment.
        folder: where it runs.
        timeout: how many seconds it has.
    """
    start = time.monotonic()
    process = subprocess.Popen(
        command,
        env=dict(variables),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="backslashreplace",
        start_new_session=True,
    )
    try:
        log, _ = process.communicate(timeout=timeout)
        code = str(process.returncode)
    except subprocess.TimeoutExpired:
        _end_group(process.pid)
        log, _ = process.communicate()
        code = "timeout"
    finally:
        _end_group(process.pid)
    return Ended(code, log, time.monotonic() - start)


def _end_group(number: int) -> None:
    try:
        os.killpg(number, signal.SIGKILL)
    except ProcessLookupError:  # it has left nothing behind
        pass


def link_startup(folder: Path) -> Path:
    """Make the folder for PYTHONPATH: our start-up file, daifu_bc and `bytecode`, and nothing else.

    Args:
        folder: where it is made.
    """
    startup = folder / "startup"
    startup.mkdir(parents=True, exist_ok=True)
    targets = (
        _HERE / "startup" / "sitecustomize.py",
        _HERE.parent / "daifu_bc",
        Path(bytecode.__file__).parent,
    )
    for target in targets:
        link = startup / target.name
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    return startup


class Runner:
    """Runs parts of a suite, keeps what came of them, and tells of differences.

    Args:
        suite: what is run.
        known: the known differences.
        folder: where results are kept.
        reuse_plain: take the results of plain runs that are there already.
    """

    def __init__(self, suite: Suite, known: list[Known], folder: Path, reuse_plain: bool) -> None:
        self.suite = suite
        self.known = known
        self.folder = folder
        self.reuse_plain = reuse_plain
        self.counts = dict.fromkeys(_MODES, 0)
        self.explained: dict[Difference, Known] = {}
        self.unexplained: list[tuple[str, Difference]] = []
        self.unsteady: list[str] = []
        self._printing = threading.Lock()
        for mode in _MODES:
            (folder / mode).mkdir(parents=True, exist_ok=True)

    def run(self, names: Sequence[str], jobs: int) -> int:
        """Check parts and return the exit code: 0 if nothing differs without a reason.

        Args:
            names: the parts.
            jobs: how many run at the same time.
        """
        # A job that the shell has put into the background ignores Ctrl-C, and so would all its children.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(self.check, names))
        return self.conclude()

    def check(self, name: str) -> None:
        """Run one part twice, more often if the runs differ, and print a line about it.

        Args:
            name: the part.
        """
        plain = self._result(name, "plain")
        vaccinated = self._result(name, "vaccinated")
        found = explain(compare(plain.outcomes, vaccinated.outcomes), self.known)
        shaky: set[str] = set()
        if any(reason is None for reason in found.values()):
            again = self.suite.run(name, "vaccinated")
            plain_again = self.suite.run(name, "plain")
            shaky = unsteady([plain.outcomes, plain_again.outcomes])
            still = set(compare(plain.outcomes, again.outcomes))
            shaky |= {difference.test for difference in found if difference not in still}
        self._tell(name, plain, vaccinated, found, shaky)

    def _result(self, name: str, mode: Mode) -> Result:
        kept = self.folder / mode / f"{name}.json"
        if mode == "plain" and self.reuse_plain and kept.exists():
            earlier = Result(**json.loads(kept.read_text(encoding="utf-8")))
            if earlier.outcomes[PROCESS] == "done":
                return earlier
        result = self.suite.run(name, mode)
        kept.write_text(json.dumps(asdict(result), indent=1), encoding="utf-8")
        kept.with_suffix(".log").write_text(result.log, encoding="utf-8")
        return result

    def _tell(
        self,
        name: str,
        plain: Result,
        vaccinated: Result,
        found: dict[Difference, Known | None],
        shaky: set[str],
    ) -> None:
        with self._printing:
            self.counts["plain"] += len(plain.outcomes) - 1
            self.counts["vaccinated"] += len(vaccinated.outcomes) - 1
            times = f"{plain.seconds:.1f} s, {vaccinated.seconds:.1f} s"
            print(f"{name}: {len(plain.outcomes) - 1} tests, {times}, {len(found)} differ", flush=True)
            if plain.outcomes[PROCESS] != "done":
                print(f"  the plain run: {plain.outcomes[PROCESS]}", flush=True)
            for difference, reason in found.items():
                line = f"  {difference.test}: {difference.plain} -> {difference.vaccinated}"
                if reason is not None:
                    self.explained[difference] = reason
                    line += f" (known: {reason.kind})"
                elif difference.test in shaky:
                    self.unsteady.append(f"{name}: {difference.test}")
                    line += " (not each time)"
                else:
                    self.unexplained.append((name, difference))
                print(line, flush=True)

    def conclude(self) -> int:
        """Print what came of it all, and return the exit code."""
        print(f"\n{self.counts['plain']} tests plain, {self.counts['vaccinated']} vaccinated")
        print(f"{len(self.explained)} differences with a known reason")
        print(f"{len(self.unsteady)} differences that do not occur each time")
        for line in self.unsteady:
            print(f"  {line}")
        print(f"{len(self.unexplained)} differences without a reason")
        for name, difference in self.unexplained:
            print(f"  {name}: {difference.test}: {difference.plain} -> {difference.vaccinated}")
        return 1 if self.unexplained else 0
