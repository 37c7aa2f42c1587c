"""At the limit of the stack the program's RecursionError stays its own: no frame and no error of ours shows in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "playbook").write_text("pass\n")
    options = ["--playbook", "playbook"] if answers else []
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "daifu_bc", "run", *options, "program.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parent.parent), "PATH": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stdout == "['<module>', 'None', 'at', 'deep']\n", ended.stderr
