"""Exceptions that signal handlers raise, also while our own code runs: none is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import signal, time
class Alarm(Exception): pass
def handler(number, frame): raise Alarm
def look(): return {}["missing"]
def spin():
    end = time.monotonic() + 2
    while time.monotonic() < end:
        try:
            look()
        except KeyError:
            pass
    return "no alarm"
signal.signal(signal.SIGALRM, handler)
lost = 0
for turn in range(30):
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    try:
        spin()
        lost += 1
    except Alarm:
        pass
print("lost", lost)
"""


def test_no_alarm_is_lost(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "playbook").write_text("raise\n")  # so that exceptions are judged
    command = [sys.executable, "-m", "daifu_bc", "run", "--playbook", "playbook", "program.py"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (result.stdout, result.stderr) == ("lost 0\n", "")
