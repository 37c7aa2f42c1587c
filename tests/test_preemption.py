"""A run that is taken its machine away goes on elsewhere, and no step is done twice or left out."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attaching import Programs
from tests.scenarios import preemption


def plain(folder: Path, program: str) -> list[str]:
    (folder / "plain.py").write_text(program)
    command = [sys.executable, "plain.py"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=True
    ).stdout.splitlines()


def steps(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("step ")]


@pytest.mark.parametrize("handles", [False, True], ids=["default", "framework's handler"])
@pytest.mark.parametrize("event", [preemption.PREEMPTED, preemption.CRASHES], ids=["running", "held"])
def test_it_resumes_where_it_was_saved(programs: Programs, event: str, handles: bool) -> None:
    folder = programs.folder
    (folder / "framework.py").write_text(preemption.FRAMEWORK.replace("{handles}", str(handles)))
    (folder / "will").write_text(preemption.LAST_WILL)
    expected = plain(folder, preemption.PROGRAM)
    run = programs.start(preemption.PROGRAM.replace("None", event), "--last-will", "will", "--attach")
    if event == preemption.CRASHES:
        run.held()
        run.signal(signal.SIGTERM)
    out, err, code = run.end()
    before = out.splitlines()
    ends = ["stops", "tidies up"] if handles else []
    assert before == ["step 1", "step 2", "step 3", *ends], err
    assert code == (85 if handles else -signal.SIGTERM)
    after = plain(folder, preemption.PROGRAM)
    assert after[0] == "resumes at 3"
    assert steps(before) + steps(after) == steps(expected)
    assert after[-2:] == expected[-2:] == ["tidies up", "[0, 1, 4, 9, 16, 25]"]


def test_without_a_last_will_it_is_lost(programs: Programs) -> None:
    """Otherwise nothing would have been saved by it."""
    (programs.folder / "framework.py").write_text(preemption.FRAMEWORK.replace("{handles}", "True"))
    run = programs.start(preemption.PROGRAM.replace("None", preemption.PREEMPTED))
    assert run.end()[2] == 85
    assert steps(plain(programs.folder, preemption.PROGRAM))[0] == "step 1"
