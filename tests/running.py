"""Runs a program with `daifu run` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Ended(NamedTuple):
    """What a program left behind."""

    code: int
    stdout: str
    stderr: str


def run(
    folder: Path,
    program: str,
    playbook: str = "",
    *options: str,
    script: str = "program.py",
    **environment: str,
) -> Ended:
    """Run a program as `program.py` in a folder.

    Args:
        folder: an empty folder; the files are left in it.
        program: its text.
        playbook: the playbook's text; none without.
        options: further ones of `daifu run`.
        script: what to run, if not that.
        environment: variables.
    """
    (folder / "program.py").write_text(program)
    if playbook:
        (folder / "playbook").write_text(playbook)
        options = ("--playbook", "playbook", *options)
    result = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "daifu_bc", "run", *options, script],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DAIFU_JOURNAL": str(folder / "journal.jsonl"),
            **environment,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Ended(result.returncode, result.stdout, result.stderr)
