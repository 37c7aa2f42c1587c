"""What has ended real runs, as small programs: held, repaired, resumed, and every side effect has happened once.

Each program prints its events. The bug-free program is the same text with the mistake taken out; its events, which it
prints when it is run plainly, are what the repaired run has to have printed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import run
from tests.scenarios import data, memory, metrics, optimiser, saving, signals

SCENARIOS = (
    saving.SCENARIOS
    | metrics.SCENARIOS
    | optimiser.SCENARIOS
    | data.SCENARIOS
    | memory.SCENARIOS
    | signals.SCENARIOS
)


def bug_free(folder: Path, program: str) -> str:
    """Run the bug-free program plainly; what it has printed."""
    folder.mkdir()
    (folder / "program.py").write_text(program)
    ended = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, timeout=60, check=True
    )
    return ended.stdout


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_event_happens_once(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    fixed = scenario.fixed()
    expected = bug_free(tmp_path / "plain", fixed)
    folder = tmp_path / "held"
    folder.mkdir()
    (folder / "fixed.py").write_text(fixed)
    ended = run(folder, scenario.program, scenario.words, *scenario.options)
    assert ended.stdout == expected, ended.stderr
    assert ended.code == 0
    assert ended.stderr.count("-- daifu: hold ") == scenario.holds
    assert "has no block for this hold" not in ended.stderr
    for text in scenario.says:
        assert text in ended.stderr


@pytest.mark.parametrize("name", SCENARIOS)
def test_is_lost_without_repair(name: str, tmp_path: Path) -> None:
    """Otherwise nothing would have been repaired."""
    scenario = SCENARIOS[name]
    expected = bug_free(tmp_path / "plain", scenario.fixed())
    folder = tmp_path / "held"
    folder.mkdir()
    assert run(folder, scenario.program).stdout != expected
