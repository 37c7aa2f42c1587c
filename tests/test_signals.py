"""Exceptions that signal handlers raise, also while our own code runs: none is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import run

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


# ---------------------------------------------------------------------------------------------- while it is held

HELD = """
import os, signal, sys, time
class TimeLimit(Exception): pass
def limit(number, frame): raise TimeLimit("too long")
def end(number, frame): raise SystemExit(7)
signal.signal(signal.SIGALRM, limit)
signal.signal(signal.SIGTERM, end)
class Slow:
    def __repr__(self):
        time.sleep(0.3)
        return "slow"
class Interrupts:
    def __repr__(self): raise KeyboardInterrupt
state = []
def work(slow, after=0.1):
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        return 10 // len(state), slow
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
def same(number, handler):
    return signal.getsignal(number) is handler
"""
KEPT = "print(same(signal.SIGALRM, limit), same(signal.SIGTERM, end), same(signal.SIGINT, signal.default_int_handler))"


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("5", "p time.sleep(0.4)"),
        ("5", "action time.sleep(0.4)"),
        ("Slow()", "p 5"),  # during the report
        ("5, after=0.02", "where\naction for i in range(400): time.sleep(0.001)"),
    ],
)
def test_a_time_limit_that_comes_during_a_hold(tmp_path: Path, argument: str, words: str) -> None:
    """It is told, and the block is played to its end."""
    playbook = f"{words}\nstate.append(1)\npass\n"
    ended = run(tmp_path, f"{HELD}print(work({argument})[0])\n{KEPT}\n", playbook)
    assert ended.stdout == "10\nTrue True True\n"
    assert ended.code == 0
    told = "The handler of SIGALRM has raised TimeLimit while the run is held; the hold stays. It is dropped"
    assert ended.stderr.count(told) == 1


def test_what_a_handler_raised_is_let_go_on_by_its_name(tmp_path: Path) -> None:
    program = f"""{HELD}
try:
    work(5)
except TimeLimit as error:
    print("limit", error, repr(error.__context__), error.__traceback__.tb_next is not None)
{KEPT}
"""
    ended = run(tmp_path, program, "p time.sleep(0.3)\nraise TimeLimit\n")
    assert ended.stdout == "limit too long None True\nTrue True True\n"


def test_a_handler_that_asks_the_program_to_end(tmp_path: Path) -> None:
    """Nobody is asked whether to drop it: it goes on in spite of the block."""
    program = f"{HELD}\nimport atexit\natexit.register(print, 'at exit')\nwork(5, 9)\n"
    playbook = "action os.kill(os.getpid(), signal.SIGTERM)\nstate.append(1)\npass\n"
    ended = run(tmp_path, program, playbook)
    assert (ended.code, ended.stdout) == (7, "at exit\n")
    assert "SIGTERM has raised SystemExit while the run is held" in ended.stderr
    assert "SystemExit goes on instead" in ended.stderr


def test_handlers_that_only_do_something_run_at_once(tmp_path: Path) -> None:
    program = f"""{HELD}
signal.signal(signal.SIGUSR1, lambda *_: state.append("handled"))
print(work(5, 9))
"""
    playbook = "action os.kill(os.getpid(), signal.SIGUSR1)\naction assert state == ['handled']\npass\n"
    ended = run(tmp_path, program, playbook)
    assert ended.stdout == "(10, 5)\n"


def test_a_handler_that_an_action_puts_in_stays(tmp_path: Path) -> None:
    playbook = """
action <<END
def other(number, frame): raise TimeLimit("other")
globals()["other"] = other
signal.signal(signal.SIGUSR1, other)
END
action os.kill(os.getpid(), signal.SIGUSR1)
state.append(1)
pass
"""
    ended = run(tmp_path, f"{HELD}print(work(5, 9), same(signal.SIGUSR1, other))\n{KEPT}\n", playbook)
    assert ended.stdout == "(10, 5) True\nTrue True True\n"
    assert "SIGUSR1 has raised TimeLimit" in ended.stderr


def test_flags_of_a_handler_stay(tmp_path: Path) -> None:
    """Whether it interrupts system calls; and a handler in C that a library has put in is left alone."""
    program = f"""{HELD}
import ctypes
sigaction = ctypes.CDLL(None).sigaction
def present(number):
    buffer = ctypes.create_string_buffer(512)
    sigaction(number, None, buffer)
    return buffer.raw[:16] + buffer.raw[136:140]  # handler, signals, flags; the rest is not set
signal.siginterrupt(signal.SIGALRM, False)
signal.signal(signal.SIGUSR2, limit)
ctypes.CDLL(None).signal(signal.SIGUSR2, ctypes.cast(ctypes.CDLL(None).abs, ctypes.c_void_p))
before = [present(number) for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGUSR2, signal.SIGINT)]
print(work(5, 9))
print(before == [present(number) for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGUSR2, signal.SIGINT)])
print(same(signal.SIGUSR2, limit))
"""
    playbook = "action state.append(1)\naction os.kill(os.getpid(), signal.SIGUSR2)\npass\n"
    ended = run(tmp_path, program, playbook)
    assert ended.stdout == "(10, 5)\nTrue\nTrue\n"
    assert "SIGUSR2" not in ended.stderr.replace("signal.SIGUSR2", "")


def test_a_child_that_an_action_forks_has_its_handlers(tmp_path: Path) -> None:
    playbook = """
action <<END
child = os.fork()
if not child:
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
    except SystemExit as end:
        os._exit(end.code + 1)
    os._exit(1)
state.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
END
pass
"""
    ended = run(tmp_path, f"{HELD}print(work(5, 9), state)\n", playbook)
    assert ended.stdout == "(10, 5) [8]\n"


def test_an_interrupt_that_a_repr_raises_is_a_repr_that_failed(tmp_path: Path) -> None:
    """The program's exception is held once, and with it its block."""
    playbook = "p slow\nlocals\nstate.append(1)\npass\n---\nexit 9\n"
    ended = run(
        tmp_path, f"{HELD}\ndef outer():\n    return work(Interrupts(), 9)[0]\nprint(outer())\n", playbook
    )
    assert (ended.code, ended.stdout) == (0, "10\n")
    assert "slow = <the repr of this Interrupts raised KeyboardInterrupt>" in ended.stderr
    assert ended.stderr.count("-- daifu: hold") == 1


def test_ctrl_c_during_a_playbook_ends_the_program(tmp_path: Path) -> None:
    program = f"{HELD}\nimport atexit\natexit.register(print, 'at exit')\nwork(5, 9)\n"
    playbook = "action os.kill(os.getpid(), signal.SIGINT); time.sleep(9)\nstate.append(1)\npass\n"
    ended = run(tmp_path, program, playbook)
    assert ended.stdout == "at exit\n"
    assert ended.code == -2
    assert "KeyboardInterrupt goes on instead" in ended.stderr


def test_a_repr_that_hangs_under_a_playbook(tmp_path: Path) -> None:
    program = f"""{HELD}
import threading
import daifu_bc.frontends.patience as patience
patience.PATIENCE = 0.5
class Waits:
    def __repr__(self):
        lock.acquire()
        return "never"
class Spins:
    def __repr__(self):
        while True: pass
lock = threading.Lock()
lock.acquire()
print(work(Waits(), 9)[0])
state.clear()
print(work(Spins(), 9)[0])
def in_thread():
    state.clear()
    print(work_there(Spins())[0])
def work_there(slow):
    return 20 // len(state), slow
thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
{KEPT}
"""
    ended = run(
        tmp_path, program, "state.append(1)\npass\n---\nstate.append(1)\npass\n---\nstate.append(1)\npass\n"
    )
    assert ended.stdout == "10\n10\n20\nTrue True True\n"
    assert ended.stderr.count("(The rest of the report is left out: it took more than 0.5 seconds.)") == 3


# ------------------------------------------------------------------ between the word and the program's next instruction

WINDOW = """
import os, signal, sys, time
import daifu_bc
from daifu_bc.recovery import resume, signals
class TimeLimit(Exception): pass
def limit(number, frame):
    came.append(1)
    raise TimeLimit
signal.signal(signal.SIGALRM, limit)
came, state, log = [], [], []
def work(*items):
    try:
        x = 10 // len(state)
        time.sleep(2)
        return x
    finally:
        log.append("left")
"""
#: As if it were ours: a signal comes before or behind a function that runs in between.
PLACED = """
original = {home}.{name}
source = '''
def strike():
    if not struck:
        struck.append(1)
        os.kill(os.getpid(), signal.SIGALRM)
struck = []
def placed(*arguments):
    if {before}: strike()
    result = original(*arguments)
    if not {before}: strike()
    return result
'''
exec(compile(source, resume.__file__, "exec"))
{home}.{name} = placed
try:
    print("no", work())
except TimeLimit:
    print(log, len(came), signal.getsignal(signal.SIGALRM) is limit)
"""


@pytest.mark.parametrize(
    ("place", "before"),
    [
        ("resume._arrange", True),
        ("resume._arrange", False),
        ("resume._runner", False),
        ("daifu_bc._take", True),
        ("signals._put_back", True),
        ("signals._put_back", False),
    ],
)
def test_a_signal_before_the_program_runs_again(tmp_path: Path, place: str, before: bool) -> None:
    """It arrives once, and the blocks that are open are left."""
    home, _, name = place.partition(".")
    program = WINDOW + PLACED.format(home=home, name=name, before=before)
    ended = run(tmp_path, program, "state.append(1)\npass\n")
    assert ended.stdout == "['left'] 1 True\n"
    assert ended.code == 0


MANY = """
rounds = 120
def spin():  # not in the `try`: on some versions a loop's jump backward is not covered by it
    end = time.perf_counter() + 0.03
    while time.perf_counter() < end: pass
blocks = finished = caught = 0
def once(number):
    state.clear()
    try:
        x = 10 // len(state)
        spin()
        return x
    finally:
        log.append("left")
for number in range(rounds):
    log.clear()
    try:
        once(number)
        finished += 1
    except TimeLimit:
        caught += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    blocks += len(log) == 1
    if len(log) != 1: print(number, log)
print(blocks, finished + caught, len(came), caught > 0, signal.getsignal(signal.SIGALRM) is limit)
print("caught", caught)
"""


def test_signals_at_any_moment(tmp_path: Path) -> None:
    blocks = [
        f"action state.append(1); signal.setitimer(signal.ITIMER_REAL, {number * 1.3e-5 + 1e-6:.7f})\npass\n"
        for number in range(120)
    ]
    ended = run(tmp_path, WINDOW + MANY, "---\n".join(blocks))
    first, second = ended.stdout.splitlines()[-2:]
    assert first == "120 120 120 True True", ended.stdout
    dropped = ended.stderr.count("has raised TimeLimit")
    assert dropped + int(second.removeprefix("caught ")) == 120
