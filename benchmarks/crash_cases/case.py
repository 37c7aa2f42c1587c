"""A crash case: what `case.toml` says of it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
CASES = FOLDER / "cases"
LIBRARIES = FOLDER / "libraries"
SHARED = FOLDER / "shared"

CATEGORIES = (
    "API misuse",
    "tensor mismatch",
    "resource bug",
    "GPU contention",
    "path problem",
    "exceptional data",
    "non-deterministic",
    "control",
)
RECOVERED = "recovered"
ENDS_WITH = "ends with "
EQUAL = "equal"


@dataclass(frozen=True)
class Recovery:
    """One way to repair the run.

    Attributes:
        name: what distinguishes it from the others.
        playbook: the file of words.
        expect: `recovered`, or `ends with EXCEPTION` where it cannot work.
        compare: `equal`, or why the output differs from the fixed program's.
        exceptions: of each stop, in order.
        held: `function, file` of each stop.
        options: of `daifu run`.
        environment: beside the case's.
    """

    name: str
    playbook: str
    expect: str
    compare: str
    exceptions: tuple[str, ...]
    held: tuple[str, ...]
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def ends_with(self) -> str:
        """The exception that the run ends with in spite of the recovery; empty if it does not."""
        return self.expect.removeprefix(ENDS_WITH) if self.expect.startswith(ENDS_WITH) else ""


@dataclass(frozen=True)
class Case:
    """A program that crashes, the fixed one, and the ways to repair it.

    Attributes:
        folder: where its files lie.
        name: as in the list of cases.
        category: one of CATEGORIES.
        about: one line.
        program: the file that crashes.
        fixed: the file that does not; it may be the same one.
        arguments: of both programs.
        environment: of both programs.
        shared: folders of `shared` whose modules belong to the program too.
        neighbour: arguments of Python for another process, which runs as long as each of the programs does.
        faults: folders of `libraries` that come before all others on the path, for the crashing program alone.
        fixed_environment: of the fixed program alone.
        fixed_folders: made before the fixed program runs.
        recoveries: the ways to repair it, that of the record first.
    """

    folder: Path
    name: str
    category: str
    about: str
    program: str
    fixed: str
    recoveries: tuple[Recovery, ...]
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    shared: tuple[str, ...] = ()
    neighbour: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    fixed_environment: dict[str, str] = field(default_factory=dict)
    fixed_folders: tuple[str, ...] = ()

    @property
    def exceptions(self) -> tuple[str, ...]:
        """The exceptions of the recovery of the record."""
        return self.recoveries[0].exceptions


def load(folder: Path) -> Case:
    """Read a case.

    Raises:
        ValueError: `case.toml` says something that is not known, or leaves something out.
    """
    facts = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))
    try:
        case = Case(
            folder=folder,
            name=facts.pop("name"),
            category=facts.pop("category"),
            about=facts.pop("about"),
            program=facts.pop("program", "program.py"),
            fixed=facts.pop("fixed", "fixed.py"),
            recoveries=_recoveries(facts),
            arguments=tuple(facts.pop("arguments", ())),
            environment=facts.pop("environment", {}),
            shared=tuple(facts.pop("shared", ())),
            neighbour=tuple(facts.pop("neighbour", ())),
            faults=tuple(facts.pop("faults", ())),
            fixed_environment=facts.pop("fixed_environment", {}),
            fixed_folders=tuple(facts.pop("fixed_folders", ())),
        )
    except KeyError as missing:
        raise ValueError(f"{folder.name}/case.toml: {missing} is missing") from None
    if facts:
        raise ValueError(f"{folder.name}/case.toml: unknown: {', '.join(facts)}")
    if case.category not in CATEGORIES:
        raise ValueError(f"{folder.name}/case.toml: no such category: {case.category}")
    files = (case.program, case.fixed, *(recovery.playbook for recovery in case.recoveries))
    missing_files = [name for name in files if not (folder / name).exists()]
    if missing_files:
        raise ValueError(f"{folder.name}: no file {', '.join(missing_files)}")
    return case


def _recoveries(facts: dict[str, Any]) -> tuple[Recovery, ...]:
    exceptions, held = facts.pop("exceptions"), facts.pop("held")
    found = []
    for entry in facts.pop("recovery"):
        recovery = Recovery(
            name=entry.pop("name"),
            playbook=entry.pop("playbook"),
            expect=entry.pop("expect", RECOVERED),
            compare=entry.pop("compare", EQUAL),
            exceptions=tuple(entry.pop("exceptions", exceptions)),
            held=tuple(entry.pop("held", held)),
            options=tuple(entry.pop("options", ())),
            environment=entry.pop("environment", {}),
        )
        if entry:
            raise ValueError(f"case.toml: unknown in a recovery: {', '.join(entry)}")
        if recovery.expect != RECOVERED and not recovery.ends_with:
            raise ValueError(f"case.toml: what is to be expected of {recovery.name}? {recovery.expect!r}")
        found.append(recovery)
    return tuple(found)


def all_cases() -> list[Case]:
    """Every case, by name."""
    return [load(path.parent) for path in sorted(CASES.glob("*/case.toml"))]
