"""What a signal's handler raises: the statement that it stops is not repeated blindly."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.running import run

#: Up to 3.12 the iterator is taken off the stack when a loop is interrupted between two of its iterations.
LOSES_ITERATORS = sys.version_info < (3, 13)

#: A handler that is not vaccinated is dead when what it has raised arrives.
DEAD = """
import os, signal, time
exec("def handler(number, frame):\\n    raise TimeoutError('limit')")
signal.signal(signal.SIGALRM, handler)
calls = []
def call():
    calls.append(time.sleep(0.01) or os.kill(os.getpid(), signal.SIGALRM))
    calls.append('after')
    return 'returned'
print(call(), calls)
"""


def test_an_interrupted_call_is_not_repeated_blindly(tmp_path: Path) -> None:
    ended = run(tmp_path, DEAD, "pass\n")
    assert ended.stdout == ""
    assert ended.code == 1
    assert "The handler of SIGALRM raised it; line 7 of `call` was only interrupted" in ended.stderr
    assert "`pass` cannot go on: the statement was interrupted and has not failed" in ended.stderr


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ("skip\n", "returned ['after']\n"),
        ("goto 8\n", "returned ['after']\n"),
        ("return 3\n", "3 []\n"),
        ("goto 7\n---\ncalls.append(1)\ngoto 8\n", "returned [1, 'after']\n"),
        ("frame <module>\ngoto 5\n---\nskip\n", "returned ['after']\n"),
    ],
)
def test_the_other_ways_are_as_always(tmp_path: Path, words: str, printed: str) -> None:
    ended = run(tmp_path, DEAD, words)
    assert ended.stdout == printed, ended.stderr


JUMPS = """
import signal
exec("def handler(number, frame):\\n    raise TimeoutError('limit')")
signal.signal(signal.SIGALRM, handler)
ended = []
def spin():
    count = other = 0
    while True:
        count += 1
        if ended: break
        other += 1
    print(count > 1, count - other)
signal.setitimer(signal.ITIMER_REAL, 0.05)
spin()
"""


def test_a_jump_has_done_nothing(tmp_path: Path) -> None:
    """The iteration that was ended by the jump is over, and no statement of it is repeated."""
    ended = run(tmp_path, JUMPS, "action ended.append(1)\npass\n")
    assert ended.stdout == "True 1\n", ended.stderr
    assert "going on behind the interrupted instruction at line" in ended.stderr


def test_a_jump_in_loops_over_something(tmp_path: Path) -> None:
    program = JUMPS.replace("while True:", "for _ in iter(int, 1):")
    ended = run(tmp_path, program, "action ended.append(1)\npass\n")
    if LOSES_ITERATORS:
        assert "`pass` cannot go on" in ended.stderr
        assert (ended.code, ended.stdout) == (1, "")
    else:
        assert ended.stdout == "True 1\n", ended.stderr


CHAINED = """
import signal
def first(number, frame):
    raise KeyError('first')
def second(number, frame):
    first(number, frame)
    print('behind first')
signal.signal(signal.SIGUSR1, first)
def by_name():
    first(signal.SIGUSR1, None)
    return 'named'
print(by_name())
signal.signal(signal.SIGUSR1, second)
def interrupted():
    return signal.raise_signal(signal.SIGUSR1), 'went on'
print(interrupted())
"""


def test_a_handler_that_the_program_calls_has_interrupted_nothing(tmp_path: Path) -> None:
    ended = run(tmp_path, CHAINED, "frame by_name\ngoto 11\n---\nskip\n")
    assert ended.stdout == "named\nbehind first\n(None, 'went on')\n", ended.stderr
    assert ended.stderr.count("was only interrupted") == 1
    assert "The handler of SIGUSR1 raised it; line 15 of `interrupted` was only interrupted" in ended.stderr


FAILS = """
import signal
seen = []
def handler(number, frame):
    count = len(seen)
    seen.append(table[number])
table = {}
signal.signal(signal.SIGUSR1, handler)
def train():
    for step in range(2):
        signal.raise_signal(signal.SIGUSR1)
        print('step', step, seen)
train()
"""


def test_a_handler_that_has_a_mistake_is_repaired(tmp_path: Path) -> None:
    """It has failed; its statement runs again."""
    ended = run(tmp_path, FAILS, "action table[number] = 'known'\npass\n")
    assert ended.stdout == "step 0 ['known']\nstep 1 ['known', 'known']\n", ended.stderr
    assert "going on at line 6" in ended.stderr


def test_an_edited_handler_goes_on_in_its_new_text(tmp_path: Path) -> None:
    words = "surgery handler <<END\ndef handler(number, frame):\n    count = len(seen)\n    seen.append(-count)\nEND\npass\n"
    ended = run(tmp_path, FAILS, words)
    assert ended.stdout == "step 0 [0]\nstep 1 [0, -1]\n", ended.stderr


OUTER = """
import signal
def stop(number, frame):
    raise InterruptedError
signal.signal(signal.SIGUSR1, stop)
def inner():
    try:
        signal.raise_signal(signal.SIGUSR1)
        print('inner went on')
    finally:
        print('finally')
def outer(again=True):
    print('outer')
    inner()
    print('end')
outer()
"""


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ("pass\n", "outer\ninner went on\nfinally\nend\n"),
        ("frame inner\npass\n", "outer\ninner went on\nfinally\nend\n"),
        ("frame inner\nskip\n", "outer\ninner went on\nfinally\nend\n"),
        ("frame inner\nreturn\n", "outer\nfinally\nend\n"),
        ("frame outer\nskip\n", "outer\nfinally\nend\n"),
        ("frame outer\npass\n---\npass\n", "outer\nfinally\ninner went on\nfinally\nend\n"),
        ("raise\n", "outer\nfinally\n"),
    ],
)
def test_from_any_frame(tmp_path: Path, words: str, printed: str) -> None:
    ended = run(tmp_path, OUTER, words)
    assert ended.stdout == printed, ended.stderr


CTRL_C = """
import signal, sys
def work():
    for step in range(2):
        signal.raise_signal(signal.SIGINT)
        print('step', step)
try:
    work()
except ValueError:
    pass
except {handled}:
    print('handled')
"""


@pytest.mark.parametrize(
    ("handled", "words", "printed", "code"),
    [
        ("OSError", "pass\n---\npass\n", "step 0\nstep 1\n", 0),
        ("OSError", "skip body\n---\nskip loop\n", "", 0),
        ("OSError", "raise\n", "", -2),
        ("KeyboardInterrupt", "pass\n", "handled\n", 0),
    ],
)
def test_ctrl_c(tmp_path: Path, handled: str, words: str, printed: str, code: int) -> None:
    program = CTRL_C.replace("{handled}", handled)
    ended = run(tmp_path, program, words, "--hold-keyboard-interrupt")
    assert (ended.stdout, ended.code) == (printed, code), ended.stderr
    assert run(tmp_path, program, words).code == (-2 if handled == "OSError" else 0)


def test_a_handler_of_the_programs_own_stays(tmp_path: Path) -> None:
    program = """
import signal, sys
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    assert run(tmp_path, program, "", "--hold-keyboard-interrupt").stdout == "True\n"  # nobody answers
    assert run(tmp_path, program, "pass\n", "--hold-keyboard-interrupt").stdout == "False\n"
    assert run(tmp_path, program, "pass\n").stdout == "True\n"
