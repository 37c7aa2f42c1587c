"""`daifu demo`, by itself and with a person at the terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from daifu_bc.demo import demonstration

pytestmark = [pytest.mark.torch, pytest.mark.slow]

DEMO = ["-m", "daifu_bc", "demo"]
IDENTICAL = "demo: the final weights of the two runs are identical, bit for bit"


def test_plays_by_itself() -> None:
    run = subprocess.run(
        [sys.executable, *DEMO], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[-1].startswith(IDENTICAL)
    (weights,) = [line.split()[-2:] for line in lines if line.startswith("SHA-256")]
    assert weights[0] == weights[1]
    assert re.fullmatch("[0-9a-f]{16}", weights[0])
    assert run.stdout.count("epoch 3 of 3") == 2
    assert "KeyError: 'acuracy'" in run.stderr
    assert "in describe" in run.stderr


def test_the_program_without_daifu(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(demonstration.PROGRAM), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 1
    assert run.stderr.endswith("KeyError: 'acuracy'\n")
    assert "epoch 2 of 3" in run.stdout
    assert "epoch 3 of 3" not in run.stdout


@pytest.fixture
def demo() -> Iterator[pexpect.spawn[str]]:
    """Start the demonstration at a terminal."""
    child = pexpect.spawn(
        sys.executable,
        DEMO,
        env={**os.environ, "TERM": "dumb"},
        encoding="utf-8",
        timeout=120,
        dimensions=(60, 120),
    )
    child.delaybeforesend = None
    child.expect(r"The program, yours to edit:  (\S+)")
    child.program = Path(child.match.group(1))
    child.expect("Press Enter to start")
    child.sendline("")
    child.expect("KeyError: 'acuracy'")
    child.expect("daifu> ")
    yield child
    child.close(force=True)


def finish(child: pexpect.spawn[str]) -> int:
    """Wait for the end and return the exit code."""
    child.expect(pexpect.EOF)
    child.close()
    return int(child.exitstatus)


@pytest.mark.terminal
def test_the_file_is_edited(demo: pexpect.spawn[str]) -> None:
    demo.sendline("p earlier")
    demo.expect("'accuracy': ")
    demo.expect("daifu> ")
    text = demo.program.read_text()
    demo.program.write_text(text.replace("'acuracy'", "'accuracy'"))
    demo.sendline("surgery")
    demo.expect("replaced describe")
    demo.expect("daifu> ")
    demo.sendline("pass")
    demo.expect_exact(IDENTICAL)
    assert finish(demo) == 0
    assert not demo.program.parent.exists()


@pytest.mark.terminal
def test_the_function_is_typed(demo: pexpect.spawn[str]) -> None:
    surgery = demonstration.surgery_of(demonstration.PROGRAM.read_text())
    # Ctrl-C is for the prompt; the demonstration goes on.
    demo.sendline("nonsense(")
    demo.sendintr()
    demo.expect("daifu> ")
    for line in surgery.splitlines():
        demo.sendline(line)
    demo.expect("replaced describe")
    demo.expect("daifu> ")
    demo.sendline("pass")
    demo.expect_exact(IDENTICAL)
    assert finish(demo) == 0


@pytest.mark.terminal
def test_the_exception_goes_on(demo: pexpect.spawn[str]) -> None:
    demo.sendline("raise")
    demo.expect("the run ended with exit code 1, so there is nothing to compare")
    assert finish(demo) == 1
