"""Runs a program under `daifu run` in a process of its own, its holds answered by words."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_SECONDS = 60


def play(
    folder: Path, program: str, words: str | None, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Write the program and its playbook to a folder, and run it there.

    Args:
        folder: where it runs.
        program: its text; line ends are kept.
        words: the playbook's text; None for none, so that nobody answers.
        arguments: the program's own.
        variables: the environment beside PYTHONPATH, which leads here; nobody attaches if it is not said.
    """
    (folder / "program.py").write_bytes(program.encode())
    options: list[str] = []
    if words is not None:
        (folder / "playbook").write_text(words if words.endswith("\n") else f"{words}\n")
        options = ["--playbook", "playbook"]
    command = ["-X", "faulthandler", "-m", "daifu_bc", "run", *options, "program.py", *arguments]
    return python(folder, command, **variables)


def python(folder: Path, arguments: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Start an interpreter in a folder, with nobody at a terminal, and wait for its end.

    Args:
        folder: where it runs.
        arguments: its command line.
        variables: the environment beside PYTHONPATH, which leads here; nobody attaches if it is not said.
    """
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "DAIFU_ATTACH": "0"} | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
