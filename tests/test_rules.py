"""Rules answer holds when nobody is there: what they match, what they do, and when they stop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.running import run

#: Fails a number of times for each batch, then loads it.
LOADS = """
import sys
failures = {'a': 2, 'b': 0, 'c': 2}
tried = []
def load(name):
    tried.append(name)
    if failures[name]:
        failures[name] -= 1
        raise ConnectionResetError(f'connection to {name} lost')
    return name.upper()
def train():
    try:
        for name in 'abc':
            batch = load(name)
            print(batch)
    finally:
        print('left', len(tried))
train()
"""
RETRY = """
[[tool.daifu.on]]
raises = "OSError"
where = "train"
message = "connection .* lost"
do = "retry"
times = 2
wait = 0.01
factor = 2
"""


def journal(folder: Path, **wanted: object) -> list[dict[str, Any]]:
    """The journal's lines that have these values."""
    lines = (folder / "journal.jsonl").read_text().splitlines()
    entries: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [entry for entry in entries if wanted.items() <= entry.items()]


def test_what_fails_for_a_while_is_tried_again(tmp_path: Path) -> None:
    """In a row: the third batch fails as often as the first one, and is tried as often."""
    (tmp_path / "pyproject.toml").write_text(RETRY)
    ended = run(tmp_path, LOADS)
    assert ended.stdout == "A\nB\nC\nleft 7\n", ended.stderr
    assert ended.code == 0
    decided = journal(tmp_path, event="pass", outcome="done")
    assert [entry["rule"] for entry in decided] == ["pyproject.toml#1"] * 4
    assert ended.stderr.count("waits 0.01 s, time 1 of 2 in a row") == 2
    assert ended.stderr.count("waits 0.02 s, time 2 of 2 in a row") == 2


def made(text: str) -> str:
    return f"import daifu_bc\n{text}\n{LOADS}"


@pytest.mark.parametrize(
    ("rule", "stdout"),
    [
        ("daifu_bc.on(OSError, where='train', do='retry', times=2)", "A\nB\nC\nleft 7\n"),
        ("@daifu_bc.on(OSError, where='train')\ndef again(hold): return 'retry'", "A\nB\nC\nleft 7\n"),
        ("@daifu_bc.on('OSError', where=['train'])\ndef again(hold): hold.retry()", "A\nB\nC\nleft 7\n"),
        (
            "@daifu_bc.on()\ndef instead(hold): hold.do(f'return {hold.evaluate(\"name\")!r} * 2')",
            "aa\nB\ncc\nleft 3\n",
        ),
    ],
    ids=["words", "a function that answers", "a verb", "a word that is run"],
)
def test_made_by_the_program(tmp_path: Path, rule: str, stdout: str) -> None:
    ended = run(tmp_path, made(rule))
    assert (ended.code, ended.stdout) == (0, stdout), ended.stderr
    assert len({entry["rule"] for entry in journal(tmp_path) if "rule" in entry}) == 1
