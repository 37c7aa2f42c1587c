"""Active frames of a changed function go on in the new body; what is printed is worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from daifu_bc import pyversion
from tests.playing import play

PROGRAM = """
import threading
log = []
bad = {2}
class Guard:
    def __enter__(self): log.append('+')
    def __exit__(self, *exc): log.append('-')
def step(i):
    x = 1 / (i not in bad)
    return i
def train(n):
    total = 0
    with Guard():
        for i in range(n):
            total += step(i)
            log.append(f'old {i}')
    log.append('old end')
    return total
def never(n):
    try:
        result = train(n)
    except BaseException:
        log.append('not for us')
        raise
    log.append(len(log) < 2)
    return result, 'old'
def numbers():
    for i in range(3):
        yield i
        log.append('old number')
    yield 'old'
def twice(f):
    def inner(n):
        result = f(n)
        return result, 'old'
    return inner
waiting = numbers()
next(waiting)
go, ready = threading.Event(), threading.Event()
def worker():
    ready.set()
    while not go.is_set():
        go.wait(0.01)
    return 'old'
results = []
thread = threading.Thread(target=lambda: results.append(worker()), daemon=True)
thread.start()
ready.wait()
print(twice(never)(4))
print('old module')
go.set()
thread.join()
print(log)
log.clear()
print(list(waiting), results)
"""

EDIT = """action text = open('program.py').read().replace('old', 'new').replace('(i not in bad)', '1')
action open('edited.py', 'w').write(text) and None
surgery edited.py
"""


def test_frames_further_out_in_other_threads_and_waiting_ones_move(tmp_path: Path) -> None:
    ended = play(tmp_path, PROGRAM, EDIT + "pass\n")
    assert ended.returncode == 0, ended.stderr
    # On 3.11 a generator that waits could only be watched by tracing everything.
    number = "new" if pyversion.HAS_MONITORING else "old"
    # `never` cannot be taken to its barrier inside of its `try`, but behind it.
    assert ended.stdout.splitlines() == [
        "((6, 'new'), 'new')",
        "new module",
        str(["+", "old 0", "old 1", "new 2", "new 3", "-", "new end", False]),
        f"[1, 2, '{number}'] ['new']",
    ]
    said = "an active frame keeps the old body: what waits cannot be watched by this Python"
    assert (said in ended.stderr) == (not pyversion.HAS_MONITORING)


def test_after_undo_they_take_the_old_body(tmp_path: Path) -> None:
    ended = play(tmp_path, PROGRAM, EDIT + "undo\naction bad.clear()\npass\n")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == [
        "((6, 'old'), 'old')",
        "old module",
        str(["+", "old 0", "old 1", "old 2", "old 3", "-", "old end", False]),
        "[1, 2, 'old'] ['old']",
    ]


def test_nothing_is_watched_when_no_frame_waits(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "def f(x):\n"
        "    return 1 / x\n"
        "print(f(0))\n"
        "print(sys.gettrace(), [sys.monitoring.get_tool(n) for n in range(6)] if hasattr(sys, 'monitoring') else [])\n"
    )
    words = "surgery f <<END\ndef f(x):\n    return 2 / (x or 1)\nEND\npass\n"
    ended = play(tmp_path, program, words)
    tools = [None] * 6 if pyversion.HAS_MONITORING else []
    assert ended.stdout == f"2.0\nNone {tools}\n", ended.stderr


CALLS_A_MODULE = """
import shapes
def scale(n):
    return n * 2
def work(n):
    unit = 'old'
    print('doubled', scale(n))
    print(shapes.area(n), unit)
work(3)
"""


def test_a_copy_is_one_of_the_module_of_the_selected_frame(tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text("def area(n):\n    return n / 0\n")
    edited = CALLS_A_MODULE.replace("n * 2", "n * 200").replace("unit = 'old'", "unit = 'new'")
    (tmp_path / "edited.py").write_text(edited.replace("shapes.area(n)", "n * n"))
    done = play(tmp_path, CALLS_A_MODULE, "frame work\nsurgery edited.py\npass")
    assert (done.stdout, done.returncode) == ("doubled 6\ndoubled 600\n9 new\n", 0), done.stderr


def test_a_definition_is_looked_for_where_the_selected_frame_would_find_it(tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text(
        "def scale(n):\n    return 7\ndef area(n):\n    return scale(n) / 0\n"
    )
    words = "frame work\nsurgery scale <<END\ndef scale(n):\n    return n * 200\nEND\naction shapes.area = scale\ngoto 7"
    done = play(tmp_path, CALLS_A_MODULE, words)
    assert (done.stdout, done.returncode) == ("doubled 6\ndoubled 600\n600 old\n", 0), done.stderr


SCRIPT = """
rate = 1
class Settings:
    depth = 1
def share(i):
    return 1 / i
for i in range(2):
    print(rate, share(i))
"""


@pytest.mark.parametrize("statement", ["print(rate, share(i))", "print(rate, share(i), end='.\\n')"])
def test_a_changed_statement_of_a_script_is_told_of_once(statement: str, tmp_path: Path) -> None:
    """Whether the one that runs has changed or not. A class's own body is another one than that which crashed."""
    edited = SCRIPT.replace("rate = 1", "rate = 2").replace("depth = 1", "depth = 2")
    edited = edited.replace("1 / i", "1 / (i + 1)").replace("print(rate, share(i))", statement)
    (tmp_path / "edited.py").write_text(edited)
    done = play(tmp_path, SCRIPT, "frame <module>\nsurgery edited.py\npass")
    dot = "." if "end" in statement else ""
    assert (done.stdout, done.returncode) == (f"1 1.0{dot}\n1 0.5{dot}\n", 0), done.stderr
    notes = [line for line in done.stderr.splitlines() if line.startswith("line ")]
    assert notes == [
        "line 2 changed too, and ran already: not run again by itself; `goto 2` does",
        "line 4 has changed outside of functions: not taken; say it as an action",
    ]


CALLS_WITH_ONE = """
log = []
def share(x):
    return x / 0
def work(n):
    log.append('work')
    result = share(n)
    log.append(('old', result))
    return result
print(work(4), log)
"""
#: Lines of the new text: `work` begins on line 7, and calls on line 9.
CALLS_WITH_TWO = """
log = []
import math
import json
def share(x, by):
    return x / by
def work(n):
    log.append('work')
    result = share(n, 2)
    log.append(('new', result))
    return result
print(work(4), log)
"""
SELECTED = {
    "pass": ("pass", "2.0 ['work', ('new', 2.0)]"),
    "selected before": (None, "2.0 ['work', ('new', 2.0)]"),
    "restart": ("restart", "2.0 ['work', 'work', ('new', 2.0)]"),
    "goto the call": ("goto 9", "2.0 ['work', ('new', 2.0)]"),
    "goto the line before": ("goto 8", "2.0 ['work', 'work', ('new', 2.0)]"),
    "skip": ("action result = 1\nskip", "1 ['work', ('new', 1)]"),
    "return": ("return 7", "7 ['work']"),
}


@pytest.mark.parametrize("case", SELECTED)
def test_a_frame_that_is_selected_after_a_surgery_goes_on_in_the_new_text(case: str, tmp_path: Path) -> None:
    """Its lines are those of the new text, too."""
    words, expected = SELECTED[case]
    (tmp_path / "edited.py").write_text(CALLS_WITH_TWO)
    book = f"surgery edited.py\nframe work\n{words}"
    if words is None:
        book = "up\ndown\nsurgery edited.py\nup\npass"
    ended = play(tmp_path, CALLS_WITH_ONE, book)
    assert (ended.stdout, ended.returncode) == (f"{expected}\n", 0), ended.stderr


def test_after_undo_a_selected_frame_goes_on_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "edited.py").write_text(CALLS_WITH_TWO.replace("x, by", "x, by=1"))
    words = "surgery edited.py\nframe work\nundo\naction share = lambda x: x\naction globals().update(share=share)\ngoto 7"
    ended = play(tmp_path, CALLS_WITH_ONE, words)
    assert (ended.stdout, ended.returncode) == ("4 ['work', ('old', 4)]\n", 0), ended.stderr


LATE = """
calls = []
def share(x):
    calls.append(x)
    if len(calls) == 1:
        return x / 0
    return 'text' if len(calls) == 2 else x
def work(n):
    result = len(share(n))
    kept = 'old'
    return result, kept
print(work(4), calls)
"""


def test_a_frame_that_crashes_before_it_has_moved_moves_when_it_goes_on(tmp_path: Path) -> None:
    """`work` waits for `share`, crashes in the same statement, and has come to no other one yet."""
    edited = LATE.replace("'old'", "'new'").replace("x / 0", "x")
    (tmp_path / "edited.py").write_text(edited)
    ended = play(tmp_path, LATE, "surgery edited.py\npass\n---\npass")
    assert (ended.stdout, ended.returncode) == ("(4, 'new') [4, 4]\n", 0), ended.stderr


def test_a_finally_runs_once_behind_the_clause_in_which_a_frame_waits(tmp_path: Path) -> None:
    # The compiler ends the clause by a jump, which cannot raise and has no barrier.
    program = (
        "def crash(v): return v / 0\n"
        "def work(v): return v\n"
        "def f():\n"
        "    try:\n"
        "        raise KeyError\n"
        "    except KeyError:\n"
        "        c = sum(crash(v) for v in (2,))\n"
        "    finally:\n"
        "        print('old', c)\n"
        "    print('end')\n"
        "f()\n"
    )
    action = (
        "action text = open('program.py').read().replace('(crash(v)', '(work(v)').replace('old', 'new')\n"
        "action written = open('program.py', 'w').write('# moved\\n' + text)\n"
    )
    words = f"frame f.<locals>.<genexpr>\n{action}surgery\nframe f.<locals>.<genexpr>\npass\n"
    ended = play(tmp_path, program, words)
    assert "another active frame goes on in the new body" in ended.stderr
    assert ended.stdout == "new 2\nend\n", ended.stderr


WITHIN_A_BLOCK = """
log = []
class Guard:
    def __enter__(self): log.append('+')
    def __exit__(self, *exc): log.append('-')
def share(n):
    return 1 // n
def work():
    for i in range(2):
        with Guard():
            log.append(share(i))
        log.append('end')
work()
print(log)
"""


def test_a_frame_that_is_selected_after_a_surgery_leaves_a_block_that_is_gone(tmp_path: Path) -> None:
    edited = WITHIN_A_BLOCK.replace("with Guard()", "if True").replace("1 // n", "n")
    edited = edited.replace("        if True:\n            log", "        log")
    (tmp_path / "edited.py").write_text(edited)
    ended = play(tmp_path, WITHIN_A_BLOCK, "surgery edited.py\nframe work\npass")
    assert (ended.stdout, ended.returncode) == ("['+', '-', 0, 'end', 1, 'end']\n", 0), ended.stderr


def test_a_selected_frame_without_a_cell_for_a_new_variable_stays_and_says_so(tmp_path: Path) -> None:
    program = (
        "def make(k, j):\n    def work(n):\n        result = share(n)\n        return result, j\n"
        "    def keep():\n        return k, j\n    return work, keep\n"
        "def share(n):\n    return n / 0\nwork, keep = make(3, 1)\nprint(work(2), work(2))\n"
    )
    (tmp_path / "edited.py").write_text(program.replace("= share(n)", "= share(n) + k").replace("n / 0", "n"))
    ended = play(tmp_path, program, "surgery edited.py\nframe work\npass")
    assert (ended.stdout, ended.returncode) == ("(2, 1) (5, 1)\n", 0), ended.stderr
    assert (
        "(it goes on in the body that it runs: the new body uses k of the function around it" in ended.stderr
    )


def test_a_frame_without_the_cell_that_its_new_text_needs_is_named(tmp_path: Path) -> None:
    program = (
        "def crash(v): return v / 0\n"
        "def work(v): return v\n"
        "def outer():\n"
        "    far = 7\n"
        "    def inner():\n"
        "        print('old', crash(2))\n"
        "        print('old end')\n"
        "    def other(): return far\n"
        "    inner()\n"
        "    inner()\n"
        "outer()\n"
    )
    action = (
        "action text = open('program.py').read().replace(\"'old', crash\", \"'new', far, work\")\n"
        "action written = open('program.py', 'w').write(text.replace('v / 0', 'v'))\n"
    )
    ended = play(tmp_path, program, f"{action}surgery\npass\n")
    said = (
        "outer.<locals>.inner uses far of the function around it now: a frame that runs it keeps the old body"
    )
    assert said in ended.stderr
    assert "another active frame goes" in ended.stderr  # that of `outer`, alone
    assert ended.stdout == "old 2\nold end\nnew 7 2\nold end\n", ended.stderr
