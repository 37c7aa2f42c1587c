"""The comparison of two runs of a foreign test suite: outcomes are read, compared and explained."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.comparison import ABSENT, KINDS, Difference, Known, compare, explain, read_known, unsteady
from conformance.cpython import read_outcomes
from conformance.runner import KNOWN, PROCESS, Mode, Result, Runner, environment, run_process
from conformance.third_party import read_report

REPORT = """
<testsuites><testsuite>
  <testcase name="test.test_x.A.test_fine" status="run" result="completed" />
  <testcase name="test.test_x.A.test_fails"><failure type="AssertionError">..</failure></testcase>
  <testcase name="test.test_x.A.test_breaks"><error type="KeyError">..</error></testcase>
  <testcase name="test.test_x.A.test_left_out"><skipped>no network</skipped></testcase>
  <testcase name="test.test_x.A.test_known_bug"><output type="ValueError">..</output></testcase>
  <testcase name="test.test_x.A.test_mended"><outcome>UNEXPECTED_SUCCESS</outcome></testcase>
  <testcase />
</testsuite></testsuites>
"""

LOG = """
test_parts (test.test_x.A.test_parts) ...
ERROR: setUpClass (test.test_x.B)
FAIL: test_parts (test.test_x.A.test_parts) (part=3)
FAIL: test_old_form (test.test_x.A)
"""


def test_outcomes_come_from_the_report_and_from_what_was_printed() -> None:
    assert read_outcomes(REPORT, LOG) == {
        "test.test_x.A.test_fine": "success",
        "test.test_x.A.test_fails": "failure",
        "test.test_x.A.test_breaks": "error",
        "test.test_x.A.test_left_out": "skipped",
        "test.test_x.A.test_known_bug": "expected failure",
        "test.test_x.A.test_mended": "unexpected success",
        "test.test_x.A.test_parts": "failure",
        "test.test_x.A.test_old_form": "failure",
        "test.test_x.B.setUpClass": "error",
    }


def test_a_process_that_died_has_no_report() -> None:
    assert read_outcomes("", "Fatal Python error: Segmentation fault") == {}


def test_a_report_of_pytest() -> None:
    report = """<testsuites><testsuite>
      <testcase classname="tests.test_a" name="test_b[1]" />
      <testcase classname="tests.test_a" name="test_c"><skipped /></testcase>
      <testcase classname="tests.test_a" name="test_d" /><testcase classname="tests.test_a" name="test_d"><error /></testcase>
    </testsuite></testsuites>"""
    assert read_report(report) == {
        "tests.test_a.test_b[1]": "success",
        "tests.test_a.test_c": "skipped",
        "tests.test_a.test_d": "error",
    }


def test_differences_are_told_in_order_and_absence_is_one() -> None:
    plain = {"a": "success", "b": "success", "c": "failure"}
    vaccinated = {"a": "success", "c": "success", "d": "error"}
    assert compare(plain, vaccinated) == [
        Difference("b", "success", ABSENT),
        Difference("c", "failure", "success"),
        Difference("d", ABSENT, "error"),
    ]
    assert compare(plain, plain) == []


def test_unsteady_tests_differ_between_plain_runs() -> None:
    assert unsteady([{"a": "success", "b": "success"}, {"a": "failure", "b": "success"}]) == {"a"}


def test_a_known_difference_is_named_or_matches_a_pattern() -> None:
    known = [
        Known(("test_dis.DisTests.*",), "bytecode", "It disassembles."),
        Known(("x",), "size", "It measures."),
    ]
    found = [Difference(name, "success", "failure") for name in ("test_dis.DisTests.test_a", "x", "y")]
    assert list(explain(found, known).values()) == [known[0], known[1], None]


def test_known_differences_belong_to_versions_and_have_a_reason(tmp_path: Path) -> None:
    listed = tmp_path / "differences.toml"
    entry = '[[difference]]\ntests = ["a", "b.*"]\nkind = "size"\nreason = "It measures frames."\n'
    listed.write_text(entry + 'versions = ["3.11"]\n' + entry)
    assert [known.versions for known in read_known(listed, "3.11")] == [("3.11",), ()]
    assert [known.versions for known in read_known(listed, "3.12")] == [()]
    listed.write_text(entry.replace("size", "too difficult"))
    with pytest.raises(ValueError, match="no acceptable reason"):
        read_known(listed, "3.11")


def test_the_list_of_known_differences_is_in_order() -> None:
    for version in ("3.11", "3.12", "3.13", "3.14", "3.15"):
        for known in read_known(KNOWN, version):
            assert known.kind in KINDS
            assert not any(pattern == PROCESS or pattern.startswith("*") for pattern in known.tests)


class Scripted:
    """A suite whose runs were written beforehand."""

    def __init__(self, *runs: tuple[Mode, dict[str, str]]) -> None:
        self.runs = list(runs)

    def names(self) -> list[str]:
        return ["part"]

    def run(self, name: str, mode: Mode) -> Result:
        planned, outcomes = self.runs.pop(0)
        assert planned == mode
        return Result(outcomes, 0.0, "")


def test_a_difference_that_comes_again_fails_the_run(tmp_path: Path) -> None:
    good, bad = {"a": "success", PROCESS: "done"}, {"a": "failure", PROCESS: "done"}
    suite = Scripted(("plain", good), ("vaccinated", bad), ("vaccinated", bad), ("plain", good))
    runner = Runner(suite, [], tmp_path, reuse_plain=False)
    assert runner.run(["part"], 1) == 1
    assert [difference.test for _, difference in runner.unexplained] == ["a"]


@pytest.mark.parametrize("known", [True, False])
def test_a_difference_that_is_known_or_does_not_come_again_does_not(tmp_path: Path, known: bool) -> None:
    good, bad = {"a": "success", PROCESS: "done"}, {"a": "failure", PROCESS: "done"}
    suite = Scripted(("plain", good), ("vaccinated", bad), ("vaccinated", good), ("plain", good))
    expected = [Known(("a",), "size", "It measures.")] if known else []
    assert Runner(suite, expected, tmp_path, reuse_plain=False).run(["part"], 1) == 0
    again = Scripted(("vaccinated", good))
    assert Runner(again, [], tmp_path, reuse_plain=True).run(["part"], 1) == 0


def test_a_process_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    child = "import time; time.sleep(60)"
    program = f"import subprocess, sys; print('begun', flush=True); subprocess.run([sys.executable, '-c', {child!r}])"
    ended = run_process([sys.executable, "-c", program], environment(tmp_path, "plain"), str(tmp_path), 3)
    assert (ended.code, ended.log) == ("timeout", "begun\n")
    assert ended.seconds < 30


def test_only_the_switch_tells_the_two_environments_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAIFU_PLAYBOOK", "somewhere")
    plain, vaccinated = environment(tmp_path, "plain"), environment(tmp_path, "vaccinated")
    assert {name for name in vaccinated if plain[name] != vaccinated[name]} == {"DAIFU"}
    assert "DAIFU_PLAYBOOK" not in vaccinated
