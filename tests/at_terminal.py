"""Programs that are run at a real pseudo-terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pexpect

from tests.running import ROOT

Start = Callable[..., "pexpect.spawn[str]"]


@contextmanager
def spawning() -> Iterator[Start]:
    """Give a function that starts Python at a pseudo-terminal; what has been started is ended afterwards.

    It takes Python's arguments, the folder, the variables, and maybe how long a text is waited for and how many columns
    the terminal has.
    """
    children: list[pexpect.spawn[str]] = []

    def spawn(
        arguments: Sequence[str],
        folder: Path,
        variables: Mapping[str, str],
        *,
        timeout: int = 20,
        columns: int = 160,
    ) -> pexpect.spawn[str]:
        child = pexpect.spawn(
            sys.executable,
            list(arguments),
            cwd=str(folder),
            env=dict(variables),
            encoding="utf-8",
            timeout=timeout,
            dimensions=(40, columns),
        )
        child.delaybeforesend = None
        children.append(child)
        return child

    yield spawn
    for child in children:
        child.close(force=True)


@contextmanager
def starting(folder: Path, terminal: str) -> Iterator[Start]:
    """Give a function that runs a program's text there, after further options of `daifu run`.

    Args:
        folder: where it runs.
        terminal: ``comfortable`` or ``dumb``.
    """
    variables = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TERM": "xterm" if terminal == "comfortable" else "dumb",
        "DAIFU_JOURNAL": str(folder / "journal.jsonl"),
    }
    with spawning() as spawn:

        def start(program: str, *options: str) -> pexpect.spawn[str]:
            (folder / "program.py").write_text(program)
            words = ["-X", "faulthandler", "-m", "daifu_bc", "run", *options, "program.py"]
            return spawn(words, folder, variables)

        yield start
