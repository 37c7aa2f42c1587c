"""A running thread is stopped at a statement, without a crash, and goes on as it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.playing import play

TIGHT = """
import sys, threading, daifu_bc
stop, log = [], []
def ask():
    while not started.wait(0.01): pass
    pause = daifu_bc.pause(thread)
    assert pause.held.wait(20)
def spin(limit):
    n = 0
    with open(__file__) as file:
        started.set()
        while not stop: n += 1
        log.append(('left', file.closed))
    return 'spun'
def run():
    result = spin(3)
    return result
started = threading.Event()
thread = threading.main_thread()
asking = threading.Thread(target=ask)
asking.start()
if len(sys.argv) > 1:
    results = []
    thread = threading.Thread(target=lambda: results.append(run()))
    thread.start()
    thread.join()
    print(results, log)
else:
    print(run(), log)
asking.join()
"""

WAYS: dict[str, tuple[str, str]] = {
    "pass": ("action stop.append(1)\npass", "spun [('left', False)]"),
    "goto": ("goto 13", "spun [('left', False)]"),
    "skip loop": ("skip loop", "spun [('left', False)]"),
    "return": ("return 'given'", "given []"),
    "return further out": ("frame run\nreturn 'outer'", "outer []"),
    "restart": ("action stop.append(1)\nrestart", "spun [('left', False)]"),
    "surgery": (
        (
            "surgery spin <<END\n"
            "def spin(limit):\n"
            "    n = 0\n"
            "    with open(__file__) as file:\n"
            "        started.set()\n"
            "        while n < 0: n += 1\n"
            "        log.append(('mended', file.closed))\n"
            "    return 'spun'\n"
            "END\n"
            "pass"
        ),
        "spun [('mended', False)]",
    ),
}


@pytest.mark.parametrize("where", ["main", "thread"])
@pytest.mark.parametrize("way", WAYS)
def test_a_tight_loop_goes_on_as_told(way: str, where: str, tmp_path: Path) -> None:
    words, printed = WAYS[way]
    ended = play(tmp_path, TIGHT, words, *(["thread"] if where == "thread" else []))
    assert ended.returncode == 0, ended.stderr
    if where == "thread":
        result, log = printed.split(" ", 1)
        printed = f"['{result}'] {log}"
    assert ended.stdout == f"{printed}\n"


IN_A_BLOCK = """
import os, signal
stop, log = [], []
def spin(n):
    try:
        try:
            os.kill(os.getpid(), signal.SIGUSR1)
            while not stop and n < 30000: n += 1
        except {}: log.append('caught')
        finally: log.append('finally')
    {}
    return n < 30000
print(spin(0), log)
"""


@pytest.mark.parametrize("clause", ["KeyError", "BaseException", "* KeyError"])
@pytest.mark.parametrize(
    "around",
    ["except OSError: pass", "except BaseException: log.append('too far')", "finally: log.append('out')"],
)
def test_a_loop_in_a_block_is_stopped(clause: str, around: str, tmp_path: Path) -> None:
    """What is raised there is asked of the program's own clauses first; no barrier covers it."""
    ended = play(tmp_path, IN_A_BLOCK.format(clause, around), "stop.append(1)\npass")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == f"True {['finally', *(['out'] if 'out' in around else [])]}\n"


def test_from_a_loop_in_a_block_it_goes_elsewhere(tmp_path: Path) -> None:
    program = IN_A_BLOCK.format("KeyError", "except OSError: pass")
    ended = play(tmp_path, program, "return 'given'")
    assert (ended.returncode, ended.stdout) == (0, "given ['finally']\n"), ended.stderr


RANDOM = """
import random, threading, time, daifu_bc
events = []
class Guard:
    def __enter__(self): events.append('enter')
    def __exit__(self, *exc): events.append('exit')
def numbers(n):
    for i in range(n):
        yield i
def work(n):
    total = 0
    for i in numbers(n):
        try:
            if i % 3 == 0:
                raise KeyError(i)
            with Guard():
                total += sum([j for j in range(i % 7)])
        except KeyError as error:
            total += error.args[0]
        finally:
            events.append(total)
        while i % 5: i -= 1
    return total, len(events), hash(tuple(map(str, events)))
plain = work(4000)
events.clear()
done = threading.Event()
paused = 0
def ask():
    global paused
    chooser = random.Random(7)
    while not done.is_set():
        pause = daifu_bc.pause()
        if pause.held.wait(5):
            paused += 1
        time.sleep(chooser.random() / 300)
    pause.cancel()
from daifu_bc.recovery import policy
from daifu_bc.recovery.reach import taken_at
from fuzz.continuing import go_on
def answer(hold):
    # Every other time the frame goes on in a continuation, at the very statement.
    elsewhere = hold.number % 2 == 0 and not taken_at(hold.captured.frame, hold.exception)
    if hold.crashed:
        hold.let_go()
    elif elsewhere:
        hold.decision = go_on(hold, hold.captured.flow, hold.captured.place)
    else:
        hold.retry()
policy.set_playbook(answer)
asking = threading.Thread(target=ask, daemon=True)
asking.start()
while paused < 60:
    assert work(4000) == plain
    events.clear()
done.set()
asking.join()
print('same', paused >= 60)
"""


def test_pauses_at_random_moments_change_nothing(tmp_path: Path) -> None:
    ended = play(tmp_path, RANDOM, "pass")
    assert (ended.returncode, ended.stdout) == (0, "same True\n"), ended.stderr


def test_nothing_watches_before_and_after(tmp_path: Path) -> None:
    program = (
        "import sys, threading, daifu_bc\n"
        "def tools():\n"
        "    if not hasattr(sys, 'monitoring'): return sys.gettrace()\n"
        "    return [sys.monitoring.get_tool(number) for number in range(6)]\n"
        "before = tools()\n"
        "def f():\n"
        "    pause = daifu_bc.pause()\n"
        "    x = 1\n"
        "    y = 2\n"
        "    return pause.held.is_set()\n"
        "print(f(), tools() == before)\n"
    )
    ended = play(tmp_path, program, "pass")
    assert (ended.returncode, ended.stdout) == (0, "True True\n"), ended.stderr


def test_nobody_to_answer_is_said(tmp_path: Path) -> None:
    program = "import daifu_bc\ntry: daifu_bc.pause()\nexcept daifu_bc.Refusal as error: print(error)\n"
    ended = play(tmp_path, program, None)
    assert "nobody would answer a pause" in ended.stdout, ended.stderr


def test_what_a_person_reads_of_a_pause(tmp_path: Path) -> None:
    ended = play(tmp_path, TIGHT, "why\naction stop.append(1)\npass")
    assert ended.returncode == 0, ended.stderr
    assert "\nPaused: asked for\n" in f"\n{ended.stderr}"
    assert "daifu> why\nHeld, although nothing has crashed:\n  - A pause was asked for.\n" in ended.stderr
