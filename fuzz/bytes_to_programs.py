"""An atheris harness: bytes choose a program and an oracle, and the engine's own branches guide what comes next.

`python -m fuzz.bytes_to_programs fuzz/corpus -max_total_time=600` runs it (arguments are libFuzzer's);
`python -m fuzz.bytes_to_programs --show FILE` prints the case of an input that libFuzzer has kept. Everything runs in
this process: a segmentation fault ends it, and libFuzzer keeps the input.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzz.case import Case, Report

ORACLES = ("no-crash", "raise", "retry", "skip", "surgery", "statements", "continuation", "build")


class Bytes:
    """Numbers from bytes; when they are used up, each is 0, which is the simplest choice."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def __call__(self, most: int) -> int:
        """A number from 0 to `most`."""
        value, size = 0, 1
        while size <= most:
            byte = self._data[self._position] if self._position < len(self._data) else 0
            self._position += 1
            value, size = value << 8 | byte, size << 8
        return value % (most + 1)


def case_from(data: bytes) -> Case | None:
    """The case that the bytes stand for; None if they stand for none."""
    writing: Any = importlib.import_module("fuzz.writing")
    choose = Bytes(data)
    oracle = ORACLES[choose(len(ORACLES) - 1)]
    case = writing.own_case(choose, oracle)
    assert case is None or isinstance(case, Case)
    return case


def make_test(folder: Path) -> Callable[[bytes], None]:
    """What libFuzzer calls with each input; programs are written to `folder`."""
    oracles: Any = importlib.import_module("fuzz.oracles")
    examiner = oracles.Examiner(folder, lambda stage: None)

    def test(data: bytes) -> None:
        case = case_from(data)
        if case is None:
            return
        report: Report = examiner.examine(case)
        if report.found:
            raise AssertionError("\n".join([case.oracle, str(case.parameters), case.source, *report.found]))

    return test


def main() -> int:
    """Run the command."""
    if sys.argv[1:2] == ["--show"]:
        case = case_from(Path(sys.argv[2]).read_bytes())
        print("no case" if case is None else f"# {case.oracle} {case.parameters}\n{case.source}")
        return 0
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed: pip install atheris (it has no build for the newest CPython)")
        return 2
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["daifu_bc"]):
        importlib.import_module("daifu_bc")
        importlib.import_module("fuzz.oracles")
    with tempfile.TemporaryDirectory() as folder:
        atheris.Setup(sys.argv, make_test(Path(folder)))
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
