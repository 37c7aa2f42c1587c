"""Who listens is told of holds, in order; who fails while listening changes nothing."""

from __future__ import annotations

from pathlib import Path

from tests.running import run

LISTENS = """
import threading
from daifu_bc.recovery import announcements

def listener(kind, hold, reason):
    print(kind, hold.number, type(hold.exception).__name__, reason, hold.decision is None)

def fails(kind, hold, reason):
    raise LookupError(kind)

announcements.listen(listener)
announcements.listen(listener)
announcements.listen(fails)
for numbers in [1, 2], [3]:
    print(numbers[5])
"""


def test_each_hold_is_told_of(tmp_path: Path) -> None:
    ended = run(tmp_path, LISTENS, "skip\n---\nraise\n")
    assert ended.stdout == (
        "held 1 IndexError  True\nresumed 1 IndexError skip False\nheld 2 IndexError  True\nresumed 2 IndexError raise False\n"
    )
    assert ended.stderr.count("who is told of holds has failed (LookupError: ") == 4
    assert ended.code == 1
