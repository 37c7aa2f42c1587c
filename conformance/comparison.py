"""What two runs of the same tests have in common, and which differences are known."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

#: A test that one of the runs does not have.
ABSENT: Final = "absent"

#: Why a test may go another way when it runs vaccinated. Anything else is a fault.
KINDS: Final = frozenset(
    {
        "bytecode",  # the test looks at instructions, constants, names, tables or positions of code objects
        "size",  # the test measures the size of code or how deep something of a given size nests
        "tracing",  # the test traces, monitors or steps through its own code, or lists the frames of the interpreter
    }
)


class Difference(NamedTuple):
    """A test that went one way in the plain run and another in the vaccinated one.

    Attributes:
        test: the test's name.
        plain: how it went in the plain run.
        vaccinated: how it went in the vaccinated run.
    """

    test: str
    plain: str
    vaccinated: str


@dataclass(frozen=True, slots=True)
class Known:
    """Differences that are expected, and why.

    Attributes:
        tests: the names of the tests, or patterns as in a shell.
        kind: one of `KINDS`.
        reason: what the tests do that makes the difference, in a sentence.
        versions: the Pythons on which it occurs; on all of them if empty.
    """

    tests: tuple[str, ...]
    kind: str
    reason: str
    versions: tuple[str, ...] = ()

    def explains(self, difference: Difference) -> bool:
        """Tell whether this is the known difference."""
        return any(fnmatchcase(difference.test, pattern) for pattern in self.tests)


def read_known(path: Path, version: str) -> list[Known]:
    """Return the known differences of one version of Python.

    Args:
        path: the file that lists them.
        version: as in ``3.11``.

    Raises:
        ValueError: an entry is not complete, or its kind is no reason to differ.
    """
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("difference", [])
    found = []
    for entry in entries:
        known = Known(tuple(entry["tests"]), entry["kind"], entry["reason"], tuple(entry.get("versions", ())))
        if known.kind not in KINDS or not known.reason:
            raise ValueError(f"{path}: there is no acceptable reason for {', '.join(known.tests)} to differ")
        if not known.versions or version in known.versions:
            found.append(known)
    return found


def compare(plain: Mapping[str, str], vaccinated: Mapping[str, str]) -> list[Difference]:
    """Return the tests that went another way, in the order of the plain run.

    Args:
        plain: outcomes of the plain run by the tests' names.
        vaccinated: those of the vaccinated run.
    """
    return [
        Difference(name, plain.get(name, ABSENT), vaccinated.get(name, ABSENT))
        for name in dict.fromkeys([*plain, *vaccinated])
        if plain.get(name, ABSENT) != vaccinated.get(name, ABSENT)
    ]


def unsteady(plain_runs: Iterable[Mapping[str, str]]) -> set[str]:
    """Return the tests that went different ways in plain runs already.

    Args:
        plain_runs: the outcomes of several plain runs.
    """
    runs = list(plain_runs)
    names = {name for run in runs for name in run}
    return {name for name in names if len({run.get(name, ABSENT) for run in runs}) > 1}


def explain(differences: Iterable[Difference], known: Iterable[Known]) -> dict[Difference, Known | None]:
    """Return for each difference what explains it, or None.

    Args:
        differences: what was found.
        known: what is expected.
    """
    listed = list(known)
    return {
        difference: next((entry for entry in listed if entry.explains(difference)), None)
        for difference in differences
    }
