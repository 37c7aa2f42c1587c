"""The example programs are repaired by their playbooks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.training import environment

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

#: name -> the last line that the program prints.
LAST_LINES = {
    "bad_sample": "trained on 40 samples",
    "last_metric": "  false alarms 0.0%",
    "out_of_memory": "trained on a batch of length 64",
    "saving": "epoch 2: loss ",
}


def test_all_are_tested_and_told() -> None:
    programs = {path.stem for path in EXAMPLES.glob("*.py")}
    assert programs == set(LAST_LINES)
    assert programs == {path.stem for path in EXAMPLES.glob("*.txt")}
    readme = (EXAMPLES / "README.md").read_text()
    assert all(f"[{name}.py]({name}.py)" in readme for name in programs)


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("name", LAST_LINES)
def test_is_repaired(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "daifu_bc", "run", "--playbook", f"{EXAMPLES / name}.txt"]
    run = subprocess.run(
        [*command, f"{EXAMPLES / name}.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(tmp_path),
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("-- daifu: hold ") == 1
    assert run.stdout.splitlines()[-1].startswith(LAST_LINES[name])
