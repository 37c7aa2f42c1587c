"""Plays the memory of two graphics cards, each of which one process may have; the contention is real.

A process that takes a card has a lock on a file in the folder `cards` until it ends. As a program, `python -m cards 0`
takes card 0 and waits.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from pathlib import Path

CARDS = 2
FOLDER = Path("cards").resolve()

_taken: dict[int, int] = {}


def take(card: int) -> bool:
    """Take a card, unless another process has it; whether this process has it now."""
    if card in _taken:
        return True
    FOLDER.mkdir(exist_ok=True)
    descriptor = os.open(FOLDER / f"cuda{card}", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    os.ftruncate(descriptor, 0)
    os.write(descriptor, b"%d" % os.getpid())
    _taken[card] = descriptor
    return True


def owner(card: int) -> int:
    """The process that has, or had, a card; 0 if none ever did."""
    path = FOLDER / f"cuda{card}"
    return int(path.read_text() or 0) if path.exists() else 0


def main() -> None:
    """Have a card until somebody ends this process."""
    card = int(sys.argv[1])
    if not take(card):
        sys.exit(f"cuda:{card} is taken")
    print(f"has cuda:{card}", flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
