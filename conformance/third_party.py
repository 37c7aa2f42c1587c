"""Test suites of well-known packages, vaccinated against plain: ``python -m conformance.third_party [names]``.

Each package is installed into a virtual environment and its tests come from its source distribution. They run with
pytest in plain assertions, because tests that pytest rewrites are its own affair and would not be vaccinated.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from conformance.comparison import read_known
from conformance.runner import KNOWN, PROCESS, Mode, Result, Runner, environment, link_startup, run_process

_TIMEOUT: Final = 1200
_PYTEST: Final = "pytest==9.2.0"
#: What pytest returns if a test failed.
_TESTS_FAILED: Final = "1"


@dataclass(frozen=True, slots=True)
class Project:
    """A package whose tests are run.

    Attributes:
        requirement: name and version.
        tests: the files or folders of tests in its source distribution.
        needs: what else its tests import.
    """

    requirement: str
    tests: tuple[str, ...] = ("tests",)
    needs: tuple[str, ...] = ()


PROJECTS: Final = {
    "attrs": Project("attrs==26.1.0", needs=("hypothesis", "cloudpickle")),
    "click": Project("click==8.5.1"),
    "jinja2": Project("jinja2==3.1.6", needs=("trio",)),
    "more-itertools": Project("more-itertools==11.2.1"),
    "toolz": Project("toolz==1.2.0", tests=("toolz", "tlz")),
    # Without watchdog, whose tests (plain, too) do not end where every folder of the environment reports events.
    "werkzeug": Project(
        "werkzeug==3.1.9", needs=("pytest-timeout", "cryptography", "ephemeral-port-reserve")
    ),
}


class Suites:
    """The packages' tests.

    Args:
        folder: where they and what they need are kept.
        startup: the folder that goes into PYTHONPATH.
    """

    def __init__(self, folder: Path, startup: Path) -> None:
        self.folder = folder
        self.startup = startup

    def names(self) -> list[str]:
        """Return the names of the packages."""
        return list(PROJECTS)

    def run(self, name: str, mode: Mode) -> Result:
        """Run the tests of a package.

        Args:
            name: the package.
            mode: whether they run vaccinated.
        """
        project = PROJECTS[name]
        python = self._installed(name, project)
        source = self._source(name, project, python)
        report = self.folder / name / f"{mode}.xml"
        report.unlink(missing_ok=True)
        command = [str(python), "-X", "frozen_modules=off", "-m", "pytest", "--assert=plain", "-q"]
        command += ["-p", "no:cacheprovider", "-p", "no:randomly", "-o", "junit_family=xunit1"]
        command += [f"--junit-xml={report}", *project.tests]
        ended = run_process(command, environment(self.startup, mode), str(source), _TIMEOUT)
        outcomes = read_report(report.read_text(encoding="utf-8") if report.exists() else "")
        if not outcomes and mode == "plain":
            raise RuntimeError(f"no test of {name} has run:\n{ended.log[-2000:]}")
        told = any(outcome in ("error", "failure") for outcome in outcomes.values())
        done = ended.code == "0" or (ended.code == _TESTS_FAILED and told)
        outcomes[PROCESS] = "done" if done else f"exit {ended.code}"
        return Result(outcomes, ended.seconds, ended.log)

    def _installed(self, name: str, project: Project) -> Path:
        """Return the interpreter of the package's environment, which is made if it is not there."""
        home = self.folder / name / "environment"
        python = home / "bin" / "python"
        if not (home / "complete").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
            install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            subprocess.run([*install, project.requirement, _PYTEST, *project.needs], check=True)
            (home / "complete").touch()
        return python

    def _source(self, name: str, project: Project, python: Path) -> Path:
        """Return the folder of the unpacked source distribution."""
        place = self.folder / name / "source"
        if not place.exists():
            download = [
                str(python),
                "-m",
                "pip",
                "download",
                "-q",
                "--disable-pip-version-check",
                "--no-deps",
            ]
            archives = self.folder / name / "archive"
            subprocess.run(
                [*download, "--no-binary", ":all:", "-d", str(archives), project.requirement], check=True
            )
            (archive,) = archives.glob("*.tar.gz")
            with tarfile.open(archive) as file:
                file.extractall(place, filter="data")
        (source,) = place.iterdir()
        return source


def read_report(xml: str) -> dict[str, str]:
    """Return how each test went.

    Args:
        xml: pytest's report; empty if there is none.
    """
    outcomes: dict[str, str] = {}
    for case in ET.fromstring(xml).iter("testcase") if xml else ():
        name = f"{case.get('classname')}.{case.get('name')}"
        kinds = [kind for kind in ("error", "failure", "skipped") if case.find(kind) is not None]
        outcomes[name] = kinds[0] if kinds else outcomes.get(name, "success")
    return outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suites as the command line says, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m conformance.third_party", description=(__doc__ or "").split("\n\n")[1]
    )
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PROJECTS)}; default: all")
    parser.add_argument("--folder", type=Path, help="keep environments, sources, results and logs there")
    parser.add_argument("--jobs", type=int, default=1, help="packages that run at the same time")
    parser.add_argument(
        "--reuse-plain", action="store_true", help="take plain results that lie there already"
    )
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="conformance-") as temporary:
        folder = (chosen.folder or Path(temporary)).resolve()
        suites = Suites(folder, link_startup(Path(temporary)))
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        runner = Runner(suites, read_known(KNOWN, version), folder / "results", chosen.reuse_plain)
        return runner.run(chosen.names or suites.names(), chosen.jobs)


if __name__ == "__main__":
    sys.exit(main())
