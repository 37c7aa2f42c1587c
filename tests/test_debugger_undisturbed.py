"""A debugger goes its own way where nothing is held, and dies or is forked without harm."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.debugged import Debugged, debugged, started, under_debugpy

STEPPED = """\
def double(n):
    for i in range(n):
        yield i * 2

def clean(x):
    try:
        if x > 1:
            raise ValueError(x)
        return x
    except ValueError:
        return -x

def main():
    total = 0
    for v in double(2):
        total += clean(v)
    return total

print(main())
"""
BEGIN = 14


def stops(folder: Path, *launcher: str) -> list[Any]:
    """Each stop of a program that is stepped through from a breakpoint on, into what it calls and over the rest."""
    (folder / "program.py").write_text(STEPPED)
    command = under_debugpy(*launcher, "program.py")
    with started(folder, command, PYDEVD_DISABLE_FILE_VALIDATION="1") as run:
        client = run.attach((BEGIN,), ("raised", "uncaught"), justMyCode=True)
        seen: list[Any] = []
        while (event := client.either("stopped", "terminated"))["event"] == "stopped":
            body = event["body"]
            # What has started it without us is not hidden.
            stack = client.stack(body["threadId"])
            places = [(one["name"], one["line"]) for one in stack if one["source"]["path"] == run.path]
            if places:
                seen.append((body["reason"], body.get("text"), places))
            client.ask("next" if len(seen) % 3 == 0 else "stepIn", threadId=body["threadId"])
        out, _, code = run.end()
        seen.append((out, code))
    return seen


def test_stepping_is_as_without_us(tmp_path: Path) -> None:
    plain, ours = tmp_path / "plain", tmp_path / "ours"
    plain.mkdir()
    ours.mkdir()
    expected = stops(plain)
    assert len(expected) > 10
    assert "exception" in {one[0] for one in expected[:-1]}
    assert stops(ours, "-m", "daifu_bc", "run") == expected


FORKS = """\
import os
import warnings
warnings.simplefilter("ignore")

def work(n):
    m = n + 1
    return m

def crash(n):
    return work(n) // 0

print("parent", crash(1) or work(1), flush=True)
if not os.fork():
    print("child", work(2), crash(3), flush=True)
    os._exit(0)
os.wait()
"""


def test_a_forked_child_is_not_stopped_by_its_parents_debugger_and_gets_its_own(tmp_path: Path) -> None:
    with debugged(tmp_path, FORKS) as run:
        client = run.attach()
        thread = client.stopped()
        assert client.places(thread)[0] == ("crash", 10)
        client.breakpoints(run.path, 6)
        client.console("return 0", client.stack(thread)[0])
        thread = client.stopped("breakpoint")
        client.ask("continue", threadId=thread)
        run.port = 0
        other = run.attach()
        thread = other.stopped()
        assert other.places(thread)[:2] == [("crash", 10), ("<module>", 14)]
        other.console("return 5", other.stack(thread)[0])
        other.event("terminated")
        client.event("terminated")
        out, err, code = run.end()
    assert (out, code) == ("parent 2\nchild 3 5\n", 0), err


def adapters(run: Debugged) -> list[int]:
    """The adapters of a program, by their environment."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", name, "cmdline").read_bytes()
            variables = Path("/proc", name, "environ").read_bytes()
        except OSError:
            continue
        if b"--for-server" in words and os.fsencode(run.folder) in variables:
            found.append(int(name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
def test_a_hold_outlives_the_debuggers_adapter(tmp_path: Path) -> None:
    with debugged(tmp_path, "def f():\n    return 1 // 0\n\nprint(f())\n") as run:
        client = run.attach()
        client.stopped()
        for number in adapters(run):
            os.kill(number, signal.SIGKILL)
        run.port = 0
        client = run.attach()
        thread = client.stopped()
        assert client.places(thread) == [("f", 2), ("<module>", 4)]
        client.console("return 7", client.stack(thread)[0])
        client.event("terminated")
        out, err, code = run.end()
    assert (out, code) == ("7\n", 0), err
