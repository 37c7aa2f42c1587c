"""Programs that are held at a real pseudo-terminal: signals, Ctrl-C, and the end of the program."""

from __future__ import annotations

import re
import signal
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.at_terminal import Start, starting
from tests.test_terminal import end, prompt

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture(params=["comfortable", "dumb"])
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    with starting(tmp_path, request.param) as spawn:
        yield spawn


SIGNALS = """
import os, signal, sys, time
class TimeLimit(Exception): pass
def limit(number, frame): raise TimeLimit("too long")
signal.signal(signal.SIGALRM, limit)
def own(number, frame): print("own handler", flush=True)
def work(state):
    signal.setitimer(signal.ITIMER_REAL, 1.5)
    return 10 // len(state)
"""


def test_a_time_limit_that_comes_at_the_prompt(start: Start) -> None:
    child = start(f"{SIGNALS}print('result', work([]), signal.getsignal(signal.SIGALRM) is limit)\n")
    told = prompt(child, "`raise TimeLimit` lets it go on, any other way on drops it.")
    assert "The handler of SIGALRM has raised TimeLimit while the run is held; the hold stays." in told
    child.sendline("state.append(1)")
    prompt(child, "Next")
    child.sendline("pass")
    assert "result 10 True" in end(child)
    assert child.exitstatus == 0


def test_what_came_at_the_prompt_is_let_go_on(start: Start) -> None:
    child = start(f"{SIGNALS}\ntry: work([])\nexcept TimeLimit as error: print('limit', error)\n")
    prompt(child, "any other way on drops it.")
    child.sendline("raise TimeLimit")
    assert "limit too long" in end(child)


def test_ctrl_c_interrupts_an_action_whatever_the_program_makes_of_it(start: Start) -> None:
    child = start(
        f"{SIGNALS}signal.signal(signal.SIGINT, own)\nprint('result', work([]))\nos.kill(os.getpid(), signal.SIGINT)\n"
    )
    prompt(child, "any other way on drops it.")
    child.sendline(
        "action print('begun', len('x'), flush=True); sys.__stderr__.write('r' + 'uns'); time.sleep(60)"
    )
    child.expect_exact("runs")
    child.sendcontrol("c")
    prompt(child, "The action raised KeyboardInterrupt; the hold stays.")
    child.sendline("state.append(1)")
    prompt(child, "Next")
    child.sendline("pass")
    text = end(child)
    assert "result 10" in text
    assert text.count("own handler") == 1


IN_THREAD = """
import sys, threading, time
def work(state):
    return 10 // len(state)
def job():
    print("result", work([]), flush=True)
thread = threading.Thread(target=job, daemon={daemon})
thread.start()
"""
WAITS = """
for _ in range(600):
    time.sleep(0.05)
    if not thread.is_alive(): break
print("main has", "ended", flush=True)
"""
SPINS = "for i in range(10 ** 9): i == 1 and sys.__stderr__.write('r' + 'uns')"


def test_ctrl_c_interrupts_an_action_of_another_thread(start: Start) -> None:
    child = start(IN_THREAD.format(daemon=False) + WAITS)
    prompt(child, "`help` lists")
    for _ in range(2):
        child.sendline(SPINS)
        child.sendline("")
        child.expect_exact("runs")
        child.sendcontrol("c")
        prompt(child, "The action raised KeyboardInterrupt; the hold stays.")
    child.sendcontrol("c")
    prompt(child)
    child.sendline("state.append(1)")
    prompt(child, "Next")
    child.sendline("pass")
    text = end(child)
    assert "result 10" in text
    assert "main has ended" in text
    assert "KeyboardInterrupt" not in text
    assert child.exitstatus == 0


def test_ctrl_c_of_another_thread_at_any_moment(start: Start) -> None:
    """Between the prompts, too, it does not hit the main thread."""
    child = start(IN_THREAD.format(daemon=False) + WAITS)
    prompt(child, "`help` lists")
    for turn in range(60):
        child.sendcontrol("c")
        time.sleep(turn * 0.0003)
    child.sendline("")
    child.sendline("state.extend('four')")
    prompt(child, "Next")
    child.sendline("pass")
    text = end(child)
    assert "result 2" in text
    assert "main has ended" in text
    assert "KeyboardInterrupt" not in text


def test_what_is_typed_while_an_action_of_another_thread_runs(start: Start) -> None:
    """It is read afterwards; an action that reads by itself gets it."""
    child = start(IN_THREAD.format(daemon=False) + WAITS)
    prompt(child, "`help` lists")
    child.sendline("sys.__stderr__.write('r' + 'uns'); time.sleep(1)")
    child.expect_exact("runs")
    child.sendline("state.append(7)")
    prompt(child, "Next")
    child.sendline("sys.__stderr__.write('re' + 'ads'); print(input('what' + '? ').upper())")
    child.expect_exact("reads")
    time.sleep(0.5)
    child.sendline("this")
    prompt(child, "THIS")
    child.sendline("p state")
    prompt(child, "[7]")
    child.sendline("pass")
    assert "result 10" in end(child)


def test_the_program_ends_while_a_daemon_thread_is_held(start: Start) -> None:
    child = start(
        IN_THREAD.format(daemon=True)
        + "sys.stdin.flush()\ntime.sleep(1.5)\nprint('main has', 'ended', flush=True)\n"
    )
    descriptor = child.ptyproc.fd
    before = termios.tcgetattr(descriptor)
    prompt(child, "`help` lists")
    text = end(child)
    assert re.search(
        r"the program has ended while thread Thread-1 \(job\) \(program\.py, line 4, in work\) was still held",
        text,
    )
    assert child.exitstatus == 0
    assert termios.tcgetattr(descriptor)[3] == before[3]


def test_a_program_that_ends_afterwards_says_nothing(start: Start) -> None:
    child = start(IN_THREAD.format(daemon=True) + WAITS)
    prompt(child, "`help` lists")
    child.sendline("state.append(1)")
    prompt(child, "Next")
    child.sendline("pass")
    text = end(child)
    assert "main has ended" in text
    assert "still held" not in text


def test_a_held_process_is_killed(start: Start, tmp_path: Path) -> None:
    """Its journal can be read."""
    child = start(f"{SIGNALS}work([])\n")
    prompt(child, "`help` lists")
    child.kill(signal.SIGKILL)
    child.expect(pexpect.EOF)
    lines = (tmp_path / "journal.jsonl").read_text().splitlines()
    assert len(lines) == 1
    assert '"event": "held"' in lines[0]


INTERRUPTED = """
import time
steps = 0
def train():
    global steps
    while not stop:
        steps += 1
        if steps == 1: print('training', flush=True)
        time.sleep(0.01)
    return 'trained'
stop = []
print(train(), steps > 0)
time.sleep(60)
"""


def test_ctrl_c_holds_the_program_if_asked_to(start: Start) -> None:
    child = start(INTERRUPTED, "--hold-keyboard-interrupt")
    child.expect_exact("training")
    child.sendintr()
    told = prompt(child, "behind the interrupted instruction at line")
    assert "KeyboardInterrupt" in told
    # What an action prints is shown when it has ended.
    child.sendline("import os; os.write(1, b'SLEEP' b'ING'); time.sleep(30)")
    child.expect_exact("SLEEPING")
    child.sendintr()
    prompt(child, "KeyboardInterrupt")
    child.sendline("stop.append(1)")
    prompt(child, "Next")
    child.sendline("pass")
    child.expect_exact("trained True")
    child.sendintr()
    prompt(child, "behind the interrupted instruction at line 1")
    child.sendline("raise")
    end(child)
    assert child.signalstatus == signal.SIGINT
