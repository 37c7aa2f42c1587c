"""Programs on which the engine once failed: each goes through its oracle again, in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz import mending, samples, shrinking
from fuzz.case import Case, Report
from fuzz.process import Examination
from fuzz.writing import OWN, own_cases
from tests import oracles

pytestmark = pytest.mark.skipif(oracles.needs_engine(), reason="there is no engine yet")

SAMPLES = sorted(samples.FOLDER.glob("*.py"))


@pytest.fixture(scope="module")
def examination() -> Iterator[Examination]:
    """The process that examines them."""
    with Examination() as running:
        yield running


@pytest.mark.parametrize("path", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_sample(path: Path, examination: Examination) -> None:
    report = examination.examine(samples.read(path))
    assert not report.found, "\n".join(report.found)


@pytest.mark.parametrize("oracle", OWN)
def test_a_few_programs(oracle: str, examination: Examination) -> None:
    cases = own_cases(1, (oracle,))
    usable = 0
    while usable < 3:
        report = examination.examine(next(cases))
        assert not report.found, "\n".join(report.found)
        usable += report.usable


def test_death_is_reported_with_what_was_said(examination: Examination) -> None:
    kill = "import faulthandler\nif __import__('sys').modules['daifu_bc.recovery.policy']._playbook:\n"
    report = examination.examine(Case("no-crash", kill + "    faulthandler._sigsegv()\n"))
    assert report.kinds == {"death"}
    assert "Segmentation fault" in report.found[0]
    # The process is there again.
    assert not examination.examine(Case("no-crash", "say(1)\n")).found


def test_program_that_dies_by_itself_is_no_finding(examination: Examination) -> None:
    report = examination.examine(Case("no-crash", "import os\nos._exit(3)\n"))
    assert not report.usable
    assert not report.found


def test_continuation_oracle_goes_on_at_each_restart_point(examination: Examination) -> None:
    source = (
        "def f(a):\n"
        "    total = 0\n"
        "    for i in (1, 2):\n"
        "        with Sound(i) as m:\n"
        "            try:\n"
        "                expected()\n"
        "            except Expected:\n"
        "                total += a\n"
        "                say_context(total)\n"
        "    return total\n"
        "def main():\n"
        "    return f(1)\n"
    )
    report = examination.examine(Case("continuation", source, {"times": 2, "own_code": 0}))
    assert not report.found
    assert report.holds > 25, report


def test_shrinking_keeps_what_fails() -> None:
    source = "a = 1\ndef f():\n    b = 2\n    if a:\n        crash(key=3)\n    return b\nprint(f(), 1)\n"
    small = shrinking.shrunk(Case("no-crash", source), lambda case: "crash(" in case.source)
    assert small.source == "def f():\n    crash(key=3)\n"


def test_samples_are_read_as_they_were_written(tmp_path: Path) -> None:
    case = Case("retry", "x = 1\n\ny = 2\n", {"plan": {"mode": "off"}})
    path = samples.write(case, Report(["events:\n  expected 1"]), tmp_path)
    assert path.name == f"retry-{case.digest}.py"
    assert samples.read(path) == case


def test_failing_calls_are_found_and_mended() -> None:
    source = (
        "x = crash((1, 2), key=3) + work(1, key=4)\nwith Guard(1, key=12) as m:\n    f'{unit(key=3)!r}'\n"
    )
    assert mending.keys_of(source) == (3, 12)
    assert mending.with_mended(source, 3) == source.replace("crash(", "work(").replace("unit(", "one(")


def test_code_that_the_compiler_drops_is_no_case_for_skip(examination: Examination) -> None:
    source = "def main():\n    if True:\n        return crash(key=1)\n    say(1)\n"
    plan = {"plan": {"mode": "keyed", "keys": {"1": [1]}}}
    assert not examination.examine(Case("skip", source, plan)).usable
    assert not mending.has_dropped_code(source.replace("True", "say()"))
