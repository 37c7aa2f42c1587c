"""Crash and pass, again and again in one process: a short version of `python -m fuzz.soak`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests import oracles

pytestmark = pytest.mark.skipif(oracles.needs_engine(), reason="there is no engine yet")

ROUNDS = 2000


def run(*arguments: str) -> str:
    """Run the soak in a process of its own, and return what it says."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", "ignore", "-m", "fuzz.soak", *arguments],
        cwd=oracles.ROOT,
        env=os.environ | {"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


def test_rounds_of_crash_and_pass_leave_nothing_behind() -> None:
    run("--rounds", str(ROUNDS), "--times", "0")


def test_thousand_retries_at_one_place_neither_deepen_the_stack_nor_grow_memory() -> None:
    run("--rounds", "0", "--times", "1000")
