"""What the demonstration says, and what it needs; without torch."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

from daifu_bc import demo
from daifu_bc.demo import demonstration
from daifu_bc.demo.demonstration import Run, compare, holds
from daifu_bc.errors import UsageError
from daifu_bc.frontends.playbook import parse_playbook


def test_the_program_has_one_bug() -> None:
    text = demonstration.PROGRAM.read_text()
    assert text.count(demonstration.BUG) == 1
    ast.parse(text.replace(demonstration.BUG, demonstration.REPAIR))


def test_the_playbook_has_no_mistake() -> None:
    surgery = demonstration.surgery_of(demonstration.PROGRAM.read_text())
    book = parse_playbook(demonstration.PLAYBOOK.format(surgery=surgery))
    assert len(book.blocks) == 1
    assert demonstration.BUG not in surgery


def test_something_is_missing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find("ast"))
    assert demo.main([]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "torch cannot be found" in said.err
    assert "pip install 'daifu_bc[demo]'" in said.err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(["--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: daifu demo")


def test_an_option_that_is_not_known() -> None:
    with pytest.raises(UsageError):
        demo.main(["--fast"])


def test_weights_that_differ(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(Run(0, 1.0, [0.1], "ab"), Run(0, 1.0, [], "cd"), 3.0) == 1
    assert "NOT identical" in capsys.readouterr().out


def test_the_correct_program_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(Run(0, 1.0, [0.1], "ab"), Run(1, 1.0, [], ""), 3.0) == 1
    assert "NOT identical" in capsys.readouterr().out


def test_how_long_the_holds_lasted(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    assert holds(journal) == []
    journal.write_text(
        '{"event": "held", "hold": 1}\n'
        '{"event": "surgery", "hold": 1, "seconds": 0.5}\n'
        '{"event": "pass", "hold": 1, "seconds": 2.5}\n'
        '{"event": "held", "hold": 2}\n'
        '{"event": "skip", "hold": 2, "seconds": 1.0}\n'
    )
    assert holds(journal) == [2.5, 1.0]
