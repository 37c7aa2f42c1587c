"""The crash cases: each program crashes where it should, is repaired, and ends as the fixed one does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.crash_cases import case as cases
from benchmarks.crash_cases import table
from benchmarks.crash_cases.case import Case, Recovery
from benchmarks.crash_cases.result import problems_of_programs, result, results_of
from benchmarks.crash_cases.runner import ROOT, Run, Start, run_fixed, run_recovery
from benchmarks.crash_cases.warm import warm
from benchmarks.report import RESULTS

CASES = cases.all_cases()


@pytest.fixture(scope="module")
def start() -> Iterator[Start]:
    """How programs are started: PyTorch is imported once for all of them."""
    with warm(ROOT) as ready:
        yield ready.start


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_is_recovered(case: Case, start: Start) -> None:
    found = results_of(case, start)
    assert not [problem for one in found for problem in one.problems]
    assert len(found) == len(case.recoveries)
    assert case.category == "control" or any(one.outcome == "recovered" and one.equal for one in found)


@pytest.mark.torch
@pytest.mark.slow
def test_what_cannot_be_recovered_ends_in_a_clear_statement(start: Start) -> None:
    control = next(case for case in CASES if case.category == "control")
    again = run_recovery(control, control.recoveries[0], start)
    assert "3 retries in a row have changed nothing, so the block of line 2 is not repeated." in again.errors
    corrected = run_recovery(control, control.recoveries[1], start)
    assert "has no block for this hold (1 in all).\nRuntimeError goes on" in corrected.errors
    for run in (again, corrected):
        assert run.errors.splitlines()[-1].startswith(
            "RuntimeError: Error: cannot set number of interop threads"
        )


@pytest.mark.torch
@pytest.mark.slow
def test_a_retry_in_a_graph_leaves_nothing_but_a_name(start: Start) -> None:
    """The ways A and B of case 043: the failed try has used up one name, and all else is as in the fixed program."""
    case = next(case for case in CASES if case.name == "043")
    fixed = run_fixed(case, start).lines
    for recovery in case.recoveries[1:3]:
        recovered = run_recovery(case, recovery, start).lines
        assert [pair for pair in zip(fixed, recovered, strict=True) if pair[0] != pair[1]] == [
            (
                "in the checkpoint: conv1/weights/ExponentialMovingAverage",
                "in the checkpoint: conv1/weights/ExponentialMovingAverage_1",
            )
        ]


@pytest.mark.torch
@pytest.mark.slow
def test_a_loader_without_workers_goes_on_too(start: Start) -> None:
    case = next(case for case in CASES if case.name == "ggnn")
    assert "2" in case.arguments
    found = results_of(replace(case, arguments=("--workers", "0"), recoveries=case.recoveries[:1]), start)
    assert [(one.outcome, one.equal, one.problems) for one in found] == [("recovered", True, [])]


def test_names_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


BOOK = Recovery("by action", "book.txt", "recovered", "equal", ("KeyError",), ("main, program.py",))
FIXED = Run(0, ["a", "b"], [0.1, 0.2], 0.0, 0.3, "")
PLAIN = Run(1, ["a"], [0.1], 0.0, 0.2, "Traceback\n  File\nKeyError: 'x'\n")
HELD = {
    "event": "held",
    "what": "KeyError",
    "function": "main",
    "file": "/p/program.py",
    "time": "1970-01-01T00:00:00.150+00:00",
}
AGAIN = {"event": "running again", "seconds": 0.002, "held": 0.005}


@pytest.fixture
def small(tmp_path: Path) -> Case:
    (tmp_path / "book.txt").write_text("where\nx = 1\npass\n")
    return Case(tmp_path, "small", "path problem", "", "program.py", "fixed.py", (BOOK,))


def test_a_good_run_has_no_problems(small: Case) -> None:
    run = Run(0, ["a", "b"], [0.1, 0.2], 0.0, 0.3, "", [HELD, AGAIN])
    found = result(small, BOOK, FIXED, run, problems_of_programs(small, FIXED, PLAIN))
    assert found.problems == []
    assert (found.stops, found.words) == (["KeyError at main, program.py"], ["action, pass"])
    assert (found.running_again, found.repair) == ([2.0], [5.0])


@pytest.mark.parametrize(
    ("run", "problem"),
    [
        (Run(0, ["a"], [0.1], 0.0, 0.3, "", [HELD, AGAIN]), "output compared"),
        (Run(1, ["a", "b"], [0.1, 0.2], 0.0, 0.3, "KeyError", [HELD]), "expected: recovered"),
        (Run(0, ["a", "b"], [0.1, 0.2], 0.0, 0.3, "", [HELD | {"what": "p.OSError"}]), "stops expected"),
        (Run(0, ["a", "b"], [0.1, 0.2], 0.0, 0.3, "", [HELD | {"function": "f"}]), "held expected"),
        (Run(0, ["a", "b"], [0.1, 0.2], 0.0, 0.3, "", [HELD, {"event": "internal error"}]), "internal error"),
    ],
)
def test_what_is_not_as_expected_is_told(small: Case, run: Run, problem: str) -> None:
    (told,) = result(small, BOOK, FIXED, run, []).problems
    assert problem in told


@pytest.mark.parametrize(
    ("fixed", "plain", "problem"),
    [
        (FIXED, Run(0, ["a"], [0.1], 0.0, 0.2, ""), "should have ended with KeyError"),
        (FIXED, Run(1, ["a"], [0.1], 0.0, 0.2, "OSError: x"), "should have ended with KeyError"),
        (FIXED, Run(1, ["b"], [0.1], 0.0, 0.2, "KeyError: x"), "not how the fixed one begins"),
        (Run(1, ["a", "b"], [0.1, 0.2], 0.0, 0.2, "KeyError: x"), PLAIN, "exit code 1"),
    ],
)
def test_programs_that_are_no_case(small: Case, fixed: Run, plain: Run, problem: str) -> None:
    (told,) = problems_of_programs(small, fixed, plain)
    assert problem in told


def test_what_beginning_again_would_lose(small: Case) -> None:
    """Stops at 0.15 s and 0.65 s; a checkpoint between them."""
    lines = ["progress 1", "checkpoint", "progress 2", "progress 3", "end"]
    later = HELD | {"time": "1970-01-01T00:00:00.650+00:00"}
    run = Run(0, lines, [0.1, 0.3, 0.4, 0.5, 0.7], 0.0, 0.8, "", [HELD, AGAIN, later, AGAIN])
    found = result(small, BOOK, FIXED, run, [])
    assert (found.restart.seconds, found.restart.steps) == (0.8, 4)
    assert found.checkpoint is not None
    # Nothing to begin from at the first stop; at the second 0.35 s since the checkpoint, and 0.1 s until the first step.
    assert (found.checkpoint.seconds, found.checkpoint.steps) == (0.6, 3)


def test_the_table_and_what_is_counted(small: Case) -> None:
    run = Run(0, ["a", "b"], [0.1, 0.2], 0.0, 0.3, "", [HELD, AGAIN])
    good = result(small, BOOK, FIXED, run, [])
    assert table.kinds_of_stops(
        [good, replace(good, words=["surgery, action, pass", "frame, skip", "pass"])]
    ) == {
        "action": 1,
        "action and surgery": 1,
        "another word alone": 1,
        "pass alone": 1,
    }
    assert "| small | path problem | KeyError at &lt;module>, p.py |" in table.markdown(
        [replace(good, stops=["KeyError at <module>, p.py"])]
    )
    bad = replace(good, case="other", outcome="ends with KeyError", equal=False)
    control = replace(good, case="control", category="control")
    assert table.first_of_each([bad, good, replace(good, recovery="second"), control]) == [good]
    assert table.summary([bad, good, control]).startswith("1 of 2 cases")
    page = table.document(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n", [bad, good, control])
    assert page.startswith("before\n") and page.endswith("\nafter\n") and "old" not in page
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert len(rows) == 3
    assert rows[2][4:9] == ["action, pass", "yes", "yes", "2.0", "5"]
    assert rows[2][0] == "| small"


def test_results_are_read_as_they_were_written(small: Case, tmp_path: Path) -> None:
    run = Run(0, ["progress", "checkpoint"], [0.01, 0.1], 0.0, 0.3, "", [HELD, AGAIN])
    found = [result(small, BOOK, FIXED, run, []), result(small, BOOK, FIXED, Run(0, [], [], 0.0, 1, ""), [])]
    assert found[0].checkpoint is not None
    table.save(tmp_path, {"python": "3"}, found)
    assert table.load(tmp_path) == found
    assert (tmp_path / "crash_cases.md").read_text().count("| small |") == 2


def test_the_documentation_shows_the_results() -> None:
    """What `python -m benchmarks.crashes` has written into the page is what is in the file of results."""
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert page == table.document(page, table.load(RESULTS))


def test_figures_are_the_same_for_the_same_results(small: Case, tmp_path: Path) -> None:
    drawing = pytest.importorskip(
        "benchmarks.crash_cases.drawing", reason="needs matplotlib", exc_type=ImportError
    )
    run = Run(0, ["progress", "checkpoint"], [0.01, 0.1], 0.0, 0.3, "", [HELD, AGAIN])
    found = [replace(result(small, BOOK, FIXED, run, []), equal=True)]
    for folder in ("first", "second"):
        drawing.draw(found, tmp_path / folder)
    for name in (drawing.LOST, drawing.WORDS):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_a_case_is_checked_when_it_is_read(tmp_path: Path) -> None:
    text = 'name = "x"\ncategory = "path problem"\nabout = "x"\nexceptions = ["KeyError"]\nheld = ["f, program.py"]\n'
    book = '[[recovery]]\nname = "r"\nplaybook = "book.txt"\n'
    for name in ("program.py", "fixed.py", "book.txt"):
        (tmp_path / name).touch()
    for wrong, told in (
        (text.replace("about", "abuot") + book, "'about' is missing"),
        (text + "other = 1\n" + book, "unknown: other"),
        (text.replace("path problem", "paths") + book, "no such category"),
        (text + book.replace("book.txt", "none.txt"), "no file none.txt"),
        (text + book + 'expect = "luck"\n', "'luck'"),
        (text + book + 'expct = "recovered"\n', "unknown in a recovery: expct"),
    ):
        (tmp_path / "case.toml").write_text(wrong)
        with pytest.raises(ValueError, match=told):
            cases.load(tmp_path)
    (tmp_path / "case.toml").write_text(text + book)
    assert cases.load(tmp_path).exceptions == ("KeyError",)
