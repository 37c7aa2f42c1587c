"""Programs that are run at a real pseudo-terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect

from tests.running import ROOT

Start = Callable[..., "pexpect.spawn[str]"]


@contextmanager
def starting(folder: Path, terminal: str) -> Iterator[Start]:
    """Give a function that runs a program's text there, after further options of `daifu run`.

    Args:
        folder: where it runs.
        terminal: ``comfortable`` or ``dumb``.
    """
    children: list[pexpect.spawn[str]] = []

    def spawn(program: str, *options: str) -> pexpect.spawn[str]:
        (folder / "program.py").write_text(program)
        child = pexpect.spawn(
            sys.executable,
            ["-X", "faulthandler", "-m", "daifu_bc", "run", *options, "program.py"],
            cwd=str(folder),
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "TERM": "xterm" if terminal == "comfortable" else "dumb",
                "DAIFU_JOURNAL": str(folder / "journal.jsonl"),
            },
            encoding="utf-8",
            timeout=20,
            dimensions=(40, 160),
        )
        child.delaybeforesend = None
        children.append(child)
        return child

    yield spawn
    for child in children:
        child.close(force=True)
