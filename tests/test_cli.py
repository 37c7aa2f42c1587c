from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from daifu_bc import cli, run_options
from daifu_bc.errors import UsageError
from daifu_bc.install import launch, options
from daifu_bc.recovery import journal, policy


@pytest.fixture(autouse=True)
def fresh_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "_factories", {})
    monkeypatch.setattr(policy, "_playbook", None)
    monkeypatch.setattr(policy, "_playbook_file", None)
    monkeypatch.setattr(journal, "_chosen", None)
    # What the command puts into the environment is taken out again after the test.
    for name in ("DAIFU_PLAYBOOK", "DAIFU_JOURNAL"):
        monkeypatch.setenv(name, "")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []

    def run(target: str, arguments: Sequence[str], *, as_module: bool, scope: object) -> int:
        calls.append((target, list(arguments), as_module, scope))
        return 7

    monkeypatch.setattr(launch, "run", run)
    return calls


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (["train.py"], ("train.py", [], False, "project")),
        (
            ["train.py", "--scope", "all", "-m", "x"],
            ("train.py", ["--scope", "all", "-m", "x"], False, "project"),
        ),
        (["-m", "pkg.train", "--help"], ("pkg.train", ["--help"], True, "project")),
        (["-mpkg", "a"], ("pkg", ["a"], True, "project")),
        (["--", "-odd.py", "a"], ("-odd.py", ["a"], False, "project")),
        (["--scope=all", "x.pyc"], ("x.pyc", [], False, "all")),
        (["--scope", "a, b.c", "x.py"], ("x.py", [], False, ["a", "b.c"])),
        (["--scope", "project", "x.py"], ("x.py", [], False, "project")),
    ],
)
def test_run_hands_the_program_over(
    words: list[str], call: tuple[Any, ...], launched: list[tuple[Any, ...]]
) -> None:
    assert cli.main(["run", *words]) == 7
    assert launched == [call]
    assert policy._factories.keys() == {
        "rules",
        "playbook",
        "debugger",
        "terminal",
        "attach",
    }


def test_playbook_and_journal_reach_child_processes(
    launched: list[tuple[Any, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "book").write_text("pass\n")
    assert cli.main(["run", "--playbook", str(tmp_path / "book"), "--journal=j", "x.py"]) == 7
    assert os.environ["DAIFU_PLAYBOOK"] == str(tmp_path / "book")
    assert os.environ["DAIFU_JOURNAL"] == os.path.join(os.getcwd(), "j")
    assert journal.path() == os.path.join(os.getcwd(), "j")
    assert policy.somebody_answers()


def test_a_mistake_in_the_playbook_comes_before_the_program(
    launched: list[tuple[Any, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = tmp_path / "book"
    book.write_text("pass\n---\ngoto x\n")
    assert cli.main(["run", "--playbook", str(book), "x.py"]) == 2
    assert launched == []
    assert capsys.readouterr().err == f"daifu: {book}:3: `goto` needs the number of a line, not 'x'\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run"], "`daifu run` needs a program"),
        (["run", "-m"], "`daifu run` needs a module's name after -m"),
        (["run", "--playbok", "x", "y.py"], "`daifu run` has no option --playbok"),
        (["run", "--journal"], "--journal needs a value"),
        (["run", "--scope=", "x.py"], "--scope needs a value"),
        (["run", "--playbook", "/none/at/all", "x.py"], "cannot read the playbook /none/at/all"),
        (["walk"], "there is no command 'walk'."),
        ([__file__], f"To run a program, write `daifu run {__file__}`."),
        (["log", "a", "b"], "`daifu log` takes one FILE"),
        (["log", "/none/at/all"], "there is no journal /none/at/all"),
    ],
)
def test_what_cannot_be_done(
    words: list[str], message: str, launched: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    assert message in capsys.readouterr().err
    assert launched == []


def test_parse_run_stops_at_the_program() -> None:
    with pytest.raises(UsageError):
        run_options.parse(["--journal", "j"])
    assert run_options.parse(["--help", "x.py"]).help
    assert not run_options.parse(["x.py", "--help"]).help


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help_teaches(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 0
    text = capsys.readouterr().out
    for part in ("daifu demo", "daifu run train.py", "daifu log", "--playbook", "pass", "surgery"):
        assert part in text


def test_help_of_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--help"]) == 0
    assert "--scope" in capsys.readouterr().out
    assert cli.main(["log", "--help"]) == 0
    assert "DAIFU_JOURNAL" in capsys.readouterr().out


def test_log(capsys: pytest.CaptureFixture[str]) -> None:
    journal.record("note", reason="tried")
    assert cli.main(["log"]) == 0
    assert capsys.readouterr().out.endswith("note reason=tried\n")


def test_log_into_a_closed_pipe() -> None:
    for number in range(5000):
        journal.record("note", number=number, text="x" * 50)
    result = subprocess.run(
        f"{sys.executable} -m daifu_bc log | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.count("\n") == 1
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["--attach"], "1"),
        (["--no-attach"], "0"),
        (["--attach", "--no-attach"], "0"),
        (["--hold-timeout", "5"], None),
    ],
)
def test_switches_are_taken_back(words: list[str], value: str | None) -> None:
    assert run_options.parse([*words, "x.py"]).environment.get("DAIFU_ATTACH") == value


@pytest.mark.parametrize("word", ["--no-journal", "--no-scope", "--no-", "--attach=1", "--no-attach=1"])
def test_only_switches_are_taken_back(word: str) -> None:
    with pytest.raises(UsageError, match="has no option"):
        run_options.parse([word, "x.py"])


def test_the_help_knows_each_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--help"]) == 0
    text = capsys.readouterr().out
    for option in options.OPTIONS:
        assert f"\n  --{option.name}" in text
        assert option.variable == "DAIFU_" + option.name.upper().replace("-", "_")
    assert max(map(len, text.splitlines())) <= 120
