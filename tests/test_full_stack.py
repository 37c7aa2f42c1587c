"""At the limit of the stack the program's RecursionError stays its own: no frame and no error of ours shows in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.playing import play

PROGRAM = """
import traceback
def deep():
    deep()
def at(n):
    return at(n - 1) if n else deep()
found = set()
for extra in range(60):
    try:
        at(extra)
    except RecursionError as error:
        found.add(repr(error.__context__))
        for frame in traceback.extract_tb(error.__traceback__):
            found.add(frame.name)
print(sorted(found))
"""


@pytest.mark.parametrize("answers", [True, False])
def test_a_full_stack(answers: bool, tmp_path: Path) -> None:
    ended = play(tmp_path, PROGRAM, "pass" if answers else None)
    assert ended.stdout == "['<module>', 'None', 'at', 'deep']\n", ended.stderr
