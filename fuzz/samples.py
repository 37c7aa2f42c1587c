"""Samples: programs on which an oracle once failed, one file each, named by oracle and by what is in it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fuzz.case import Case, Report
from fuzz.process import ROOT

FOLDER = ROOT / "tests" / "samples"
_MOST_LINES = 12
# Programs under test are odd on purpose; `ruff.toml` in the folder says the same to the linter.
_FIRST = ("# fmt: off", "# mypy: ignore-errors")


def write(case: Case, report: Report, folder: Path = FOLDER) -> Path:
    """Write a sample and return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    version = ".".join(map(str, sys.version_info[:3]))
    said = [line for text in report.found for line in text.splitlines()][:_MOST_LINES]
    head = [
        *_FIRST,
        f"# oracle: {case.oracle}",
        f"# parameters: {json.dumps(case.parameters, sort_keys=True)}",
        f"# What went wrong on CPython {version}:",
        *(f"#   {line[:200]}" for line in said),
        "",
    ]
    path = folder / f"{case.oracle}-{case.digest}.py"
    path.write_text("\n".join(head) + "\n" + case.source)
    return path


def read(path: Path) -> Case:
    """The case of a sample."""
    parameters = {}
    oracle = ""
    text = path.read_text()
    head, _, source = text.partition("\n\n")
    for line in head.splitlines():
        key, _, value = line.removeprefix("# ").partition(": ")
        if key == "oracle":
            oracle = value
        elif key == "parameters":
            parameters = json.loads(value)
    return Case(oracle, source, parameters)
