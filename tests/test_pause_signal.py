"""SIGUSR1 stops the running program at its next statement, where the program has no use for the signal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from tests.playing import ROOT, TIMEOUT_SECONDS, play
from tests.test_terminal import prompt

TIGHT = """
import os, signal, threading
def ask():
    started.wait()
    os.kill(os.getpid(), signal.SIGUSR1)
def spin():
    n = 0
    started.set()
    while not stop: n += 1
    return 'spun'
def run():
    return spin()
started, stop = threading.Event(), []
asking = threading.Thread(target=ask)
asking.start()
print(run())
asking.join()
"""


@pytest.mark.parametrize(
    ("words", "result"),
    [("action stop.append(1)\npass", "spun"), ("return 5", "5")],
    ids=["pass", "return"],
)
def test_a_tight_loop_is_stopped_and_goes_on_as_told(words: str, result: str, tmp_path: Path) -> None:
    """The signal comes again while the run is held; it is held once."""
    ended = play(tmp_path, TIGHT, f"action os.kill(os.getpid(), signal.SIGUSR1)\n{words}")
    assert (ended.returncode, ended.stdout) == (0, f"{result}\n"), ended.stderr
    assert ended.stderr.count("-- daifu: hold ") == 1
    assert "Held: SIGUSR1 asked for a pause." in ended.stderr
    assert "daifu_bc: SIGUSR1: the run stops at its next statement;" in ended.stderr


EMPTY = {
    "a name": "while not stop: pass",
    "a call": "while not len(stop): pass",
    "two lines": "while not stop:\n        pass",
    "a negative number": "while -len(stop) == 0: pass",
}


@pytest.mark.parametrize("loop", EMPTY)
def test_a_loop_with_nothing_in_it(loop: str, tmp_path: Path) -> None:
    program = (
        "import os, signal, threading\n"
        "stop = []\n"
        "def f():\n"
        f"    {EMPTY[loop]}\n"
        "    return 'left'\n"
        "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()\n"
        "print(f())\n"
    )
    ended = play(tmp_path, program, "action print('at', stop)\naction stop.append(1)\npass")
    assert (ended.returncode, ended.stdout) == (0, "left\n"), ended.stderr
    assert "at []" in ended.stderr
    ended = play(tmp_path, program, f"goto {5 + EMPTY[loop].count(chr(10))}")
    assert (ended.returncode, ended.stdout) == (0, "left\n"), ended.stderr


def kill_self(before: str = "", after: str = "") -> str:
    return (
        f"import os, signal\n{before}\n"
        "def f():\n"
        "    os.kill(os.getpid(), signal.SIGUSR1)\n"
        "    x = 1\n"
        "    return x + 1\n"
        f"print(f())\n{after}\n"
    )


def test_it_stops_before_the_next_statement(tmp_path: Path) -> None:
    ended = play(tmp_path, kill_self(), "action x = 41\ngoto 6")
    assert (ended.returncode, ended.stdout) == (0, "42\n"), ended.stderr


def test_a_call_that_waits_is_finished_first(tmp_path: Path) -> None:
    program = (
        "import os, signal, threading, time\n"
        "began = time.monotonic()\n"
        "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()\n"
        "time.sleep(1)\n"
        "slept = time.monotonic() - began >= 1\n"
        "print(slept)\n"
    )
    ended = play(tmp_path, program, "action print('slept' in globals(), time.monotonic() - began >= 1)\npass")
    assert (ended.returncode, ended.stdout) == (0, "True\n"), ended.stderr
    assert "False True" in ended.stderr
    assert "It is at program.py:4." in ended.stderr


KILLED = -signal.SIGUSR1


@pytest.mark.parametrize(
    ("words", "variables", "project"),
    [
        (None, {}, ""),
        ("pass", {"DAIFU_PAUSE_SIGNAL": "none"}, ""),
        ("pass", {"DAIFU_PAUSE_SIGNAL": "SIGUSR2"}, ""),
        ("pass", {}, 'pause-signal = "none"'),
        ("pass", {"DAIFU_DISABLE": "1"}, ""),
    ],
    ids=["nobody answers", "off", "another signal", "off for the project", "all is off"],
)
def test_otherwise_it_does_what_it_always_does(
    words: str | None, variables: dict[str, str], project: str, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.daifu]\n{project}\n")
    ended = play(tmp_path, kill_self(), words, **variables)
    assert (ended.returncode, ended.stdout) == (KILLED, ""), ended.stderr


def test_another_signal_can_be_chosen(tmp_path: Path) -> None:
    program = kill_self().replace("SIGUSR1", "SIGUSR2")
    ended = play(tmp_path, program, "pass", DAIFU_PAUSE_SIGNAL="usr2")
    assert (ended.returncode, ended.stdout) == (0, "2\n"), ended.stderr
    assert "SIGUSR2 asked for a pause." in ended.stderr
    program = "import daifu_bc\ndaifu_bc.configure(pause_signal='SIGUSR2')\n" + program
    ended = play(tmp_path, program, "pass")
    assert (ended.returncode, ended.stdout) == (0, "2\n"), ended.stderr


def test_a_signal_that_there_is_not_is_a_mistake(tmp_path: Path) -> None:
    ended = play(tmp_path, "print('run')", "pass", DAIFU_PAUSE_SIGNAL="SIGNOTHING")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "'SIGNOTHING' is no signal to pause by" in ended.stderr


HANDLERS = {
    "looks first, as libraries do": (
        "assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL\n"
        "if signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL:\n"
        "    signal.signal(signal.SIGUSR1, lambda *_: print('mine'))"
    ),
    "replaces it": "assert signal.signal(signal.SIGUSR1, lambda *_: print('mine')) is signal.SIG_DFL",
    "and back again": (
        "before = signal.signal(signal.SIGUSR1, lambda *_: print('other'))\n"
        "signal.signal(signal.SIGUSR1, before)\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('mine'))"
    ),
}


@pytest.mark.parametrize("handler", HANDLERS)
def test_the_program_has_its_own_handler(handler: str, tmp_path: Path) -> None:
    ended = play(tmp_path, kill_self(HANDLERS[handler]), "pass")
    assert (ended.returncode, ended.stdout) == (0, "mine\n2\n"), ended.stderr
    assert "-- daifu: hold " not in ended.stderr


def test_the_default_that_is_put_back_by_the_program_is_the_default(tmp_path: Path) -> None:
    before = "signal.signal(signal.SIGUSR1, signal.signal(signal.SIGUSR1, print))"
    assert play(tmp_path, kill_self(before), "pass").returncode == KILLED


def test_a_handler_in_c_stays(tmp_path: Path) -> None:
    before = "import faulthandler, sys\nfaulthandler.register(signal.SIGUSR1, sys.__stdout__)"
    ended = play(tmp_path, kill_self(before), "pass")
    assert ended.returncode == 0, ended.stderr
    assert 'program.py", line 5 in f' in ended.stdout


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(kill_self())
    (tmp_path / "playbook").write_text("return 7\n")
    command = [sys.executable, "-m", "daifu_bc", "run", "--playbook", "playbook", "program.py"]
    ended = subprocess.run(
        ["/bin/sh", "-c", 'trap "" USR1; exec "$@"', "sh", *command],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "DAIFU_ATTACH": "0"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "2\n"), ended.stderr


@pytest.mark.parametrize("where", ["main", "thread"])
def test_forked_children_have_the_default(where: str, tmp_path: Path) -> None:
    program = (
        "import os, signal, threading, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "def fork():\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        os.kill(os.getpid(), signal.SIGUSR1)\n"
        "        os._exit(3)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "def main(): fork()\n"
        "def thread():\n"
        "    one = threading.Thread(target=fork)\n"
        "    one.start(); one.join()\n"
        f"{where}()\n"
    )
    ended = play(tmp_path, program, "pass")
    assert (ended.returncode, ended.stdout) == (0, f"{KILLED}\n"), ended.stderr


@pytest.mark.parametrize("where", ["main", "thread"])
def test_a_decorated_program(where: str, tmp_path: Path) -> None:
    """Where the decorator runs in another thread than the main one, the signal is left alone."""
    program = (
        "import os, signal, threading, daifu_bc\n"
        "def f():\n"
        "    os.kill(os.getpid(), signal.SIGUSR1)\n"
        "    x = 1\n"
        "    return x + 1\n"
        "def decorate(): daifu_bc.vaccinate(scope='function')(f)\n"
        "def main(): decorate()\n"
        "def thread():\n"
        "    one = threading.Thread(target=decorate)\n"
        "    one.start(); one.join()\n"
        f"{where}()\n"
        "print(f())\n"
    )
    (tmp_path / "program.py").write_text(program)
    (tmp_path / "playbook").write_text("return 7\n")
    ended = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "DAIFU_PLAYBOOK": str(tmp_path / "playbook")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    expected = (0, "7\n") if where == "main" else (KILLED, "")
    assert (ended.returncode, ended.stdout) == expected, ended.stderr


@pytest.mark.terminal
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_at_a_terminal_a_person_is_asked(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "stop = False\nprint('begun', flush=True)\nwhile not stop: pass\nprint('ended', flush=True)\n"
    )
    child = pexpect.spawn(
        sys.executable,
        ["-m", "daifu_bc", "run", "program.py"],
        cwd=str(tmp_path),
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "dumb"},
        encoding="utf-8",
        timeout=20,
        dimensions=(40, 160),
    )
    try:
        child.expect_exact("begun")
        child.kill(signal.SIGUSR1)
        child.expect_exact("SIGUSR1 asked for a pause.")
        prompt(child)
        child.sendline("stop = True")
        prompt(child)
        child.sendline("pass")
        child.expect(re.escape("ended"))
        child.expect(pexpect.EOF)
    finally:
        child.close(force=True)
    assert child.exitstatus == 0
