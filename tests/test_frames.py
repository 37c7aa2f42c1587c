"""Any frame of the stack: what lies inside the selected one is left by its own code, once; what is printed is worked out by hand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.playing import ROOT, play

PROGRAM = """
import asyncio, functools, sorts
log = []
bad = {2}
class Guard:
    def __init__(self, name): self.name = name
    def __enter__(self): log.append(f'+{self.name}'); return self
    def __exit__(self, kind, error, trace): log.append(f'-{self.name} {kind.__name__ if kind else None}')
def step(i):
    with Guard('step'):
        try:
            log.append(f'step {i}')
            if i in bad:
                raise ValueError(i)
        finally:
            log.append(f'finally {i}')
    return i * 10
def cleaned(i):
    try:
        return step(i)
    except Exception:
        log.append('clean-up')
        raise
def train(n):
    total, made = 0, []
    for i in range(1, n):
        try:
            made.append(lambda: total)
            total += cleaned(i)
        finally:
            log.append('round')
    else:
        log.append('else')
    log.append(f'end {total}')
    return total, [one() for one in made]
def nested(n):
    with Guard('train'):
        for i in range(1, n):
            total = sorts.by([i], step)
            log.append(total)
    return 'nested'
def numbers(n):
    for i in range(1, n):
        yield step(i)
def generated(n):
    for number in numbers(n):
        log.append(number)
    return 'generated'
async def awaited(n):
    async with asyncio.timeout(60):
        for i in range(1, n):
            await asyncio.sleep(0)
            log.append(await inner(i))
    return 'awaited'
async def inner(i):
    return step(i)
def translated(n):
    for i in range(1, n):
        try:
            log.append(step(i))
        except ValueError as error:
            raise RuntimeError('translated') from error
    return 'translated'
"""

# Not under the program's root: it is not vaccinated.
SORTS = """
def by(items, key):
    return sorted(items, key=key)
"""

ROUND_ONE = ["+step", "step 1", "finally 1", "-step None"]
CRASHED = ["+step", "step 2", "finally 2", "-step ValueError"]
MENDED = ["+step", "step 2", "finally 2", "-step None"]
MEND = "action bad.clear()"

CASES: dict[str, tuple[str, str, object, list[str]]] = {
    # call, words, result, log
    "pass": (
        "train(3)",
        f"frame train\n{MEND}\npass",
        (30, [30, 30]),
        [*ROUND_ONE, "round", *CRASHED, "clean-up", *MENDED, "round", "else", "end 30"],
    ),
    "skip": (
        "train(3)",
        "frame train\nskip",
        (10, [10, 10]),
        [*ROUND_ONE, "round", *CRASHED, "clean-up", "round", "else", "end 10"],
    ),
    "skip body": (
        "train(3)",
        "frame train\nskip body",
        (10, [10, 10]),
        [*ROUND_ONE, "round", *CRASHED, "clean-up", "round", "else", "end 10"],
    ),
    "skip loop": (
        "train(3)",
        "frame train\nskip loop",
        (10, [10, 10]),
        [*ROUND_ONE, "round", *CRASHED, "clean-up", "round", "end 10"],
    ),
    "goto out of a finally": (
        "train(3)",
        "frame train\ngoto 34",
        (10, [10, 10]),
        [*ROUND_ONE, "round", *CRASHED, "clean-up", "round", "end 10"],
    ),
    "return": (
        "train(3)",
        "frame train\nreturn total + 1",
        11,
        [*ROUND_ONE, "round", *CRASHED, "clean-up", "round"],
    ),
    "restart with another parameter": (
        "train(4)",
        "frame train\naction n = 2\nrestart",
        (10, [10]),
        [*ROUND_ONE, "round", *CRASHED, "clean-up", "round", *ROUND_ONE, "round", "else", "end 10"],
    ),
    "below a library and C": (
        "nested(3)",
        f"frame nested\n{MEND}\npass",
        "nested",
        ["+train", *ROUND_ONE, "[1]", *CRASHED, *MENDED, "[2]", "-train None"],
    ),
    "leaves a with": (
        "nested(3)",
        "frame nested\nreturn 7",
        7,
        ["+train", *ROUND_ONE, "[1]", *CRASHED, "-train None"],
    ),
    "an awaited coroutine": (
        "asyncio.run(awaited(3))",
        f"frame awaited\n{MEND}\npass",
        "awaited",
        [*ROUND_ONE, "10", *CRASHED, *MENDED, "20"],
    ),
    "an exception that is translated on the way": (
        "translated(3)",
        "frame translated\nskip body",
        "translated",
        [*ROUND_ONE, "10", *CRASHED],
    ),
    "the module": (
        "(train(3), log.append('again'))[0]",
        f"frame <module>\n{MEND}\npass",
        (30, [30, 30]),
        [*ROUND_ONE, "round", *CRASHED, "clean-up", "round", *ROUND_ONE, "round", *MENDED, "round"]
        + ["else", "end 30", "again"],
    ),
}

REFUSED = {
    "a generator that has ended": ("generated(3)", "frame generated\npass", "would give no more"),
    "a frame of a library": ("nested(3)", "frame by\npass", "not vaccinated"),
    "a task's end": ("asyncio.run(awaited(3))", "frame <module>\npass", "cannot be reached"),
    "no loop": ("nested(3)", "skip body", "no loop is being run"),
}


def run(folder: Path, call: str, words: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a folder of its own, its one hold answered by the words."""
    program = folder / "project"
    program.mkdir()
    (folder / "sorts.py").write_text(SORTS)
    text = f"{PROGRAM}result = {call}\nprint(repr(result))\nprint(log)\n"
    return play(program, text, words, PYTHONPATH=f"{ROOT}:{folder}")


@pytest.mark.parametrize("case", CASES)
def test_the_selected_frame_goes_on(case: str, tmp_path: Path) -> None:
    call, words, result, log = CASES[case]
    ended = run(tmp_path, call, words)
    assert ended.returncode == 0, ended.stderr
    first, second = ended.stdout.splitlines()
    assert first == repr(result)
    assert [str(one) for one in eval(second)] == log


@pytest.mark.parametrize("case", REFUSED)
def test_a_frame_that_cannot_go_on_says_why(case: str, tmp_path: Path) -> None:
    call, words, reason = REFUSED[case]
    ended = run(tmp_path, call, words)
    assert reason in ended.stderr
    assert "ValueError: 2" in ended.stderr
    assert ended.returncode == 1


LOOPS = """
log, bad = [], {2}
class Guard:
    def __enter__(self): pass
    def __exit__(self, *exc): log.append('exit')
def leaf(i):
    if i in bad: raise ValueError(i)
    return i
def nested():
    r = []
    for a in 'xy':
        n = 0
        while n < 3:
            n += 1
            try:
                r.append((a, leaf(n)))
            finally:
                log.append(n)
        log.append('behind')
    return r
def alone():
    n, r = 0, []
    while n < 3:
        n += 1
        try:
            r.append(leaf(n))
        finally:
            for q in (1,): log.append('fin')
    return r
def group(i):
    if i in bad: raise ExceptionGroup('g', [ValueError(i), KeyError(1)])
    return i
def star(i):
    try:
        return group(i)
    except* KeyError:
        log.append('key')
        raise
def starred():
    return [one for one in map(star_or_none, (1, 2, 3))]
def star_or_none(i):
    result = star(i)
    return result
def rethrown():
    r = []
    for i in (1, 2, 3):
        r.append(translating(i))
    return r
def translating(i):
    try:
        return leaf(i)
    except ValueError as error:
        raise RuntimeError('other') from error
def cleaning(i):
    try:
        return leaf(i)
    finally:
        if i in bad: leaf(i)
def cleaned():
    r = []
    for i in (1, 2, 3):
        r.append(cleaning(i))
    return r
"""

LOOP_CASES: dict[str, tuple[str, str, object, list[object]]] = {
    "skip loop through a finally": (
        "nested()",
        "frame nested\nskip loop\n---\nframe nested\nskip loop",
        [("x", 1), ("y", 1)],
        [1, 2, "behind", 1, 2, "behind"],
    ),
    "skip body through a finally": (
        "nested()",
        "frame nested\nskip body\n---\nframe nested\nskip body",
        [("x", 1), ("x", 3), ("y", 1), ("y", 3)],
        [1, 2, 3, "behind", 1, 2, 3, "behind"],
    ),
    "skip loop through a finally with a loop of its own": (
        "alone()",
        "frame alone\nskip loop",
        [1],
        ["fin", "fin"],
    ),
    "skip body through a finally with a loop of its own": (
        "alone()",
        "frame alone\nskip body",
        [1, 3],
        ["fin", "fin", "fin"],
    ),
    "through except star": ("starred()", "frame star_or_none\nreturn 0", [1, 0, 3], ["key"]),
    "through a translation": ("rethrown()", "frame rethrown\nskip", [1, 3], []),
    "a crash on the way out is held itself": (
        "cleaned()",
        "frame cleaned\nskip\n---\naction bad.clear()\npass",
        [1, 3],
        [],
    ),
}


@pytest.mark.parametrize("case", LOOP_CASES)
def test_what_lies_between_is_left(case: str, tmp_path: Path) -> None:
    call, words, result, log = LOOP_CASES[case]
    ended = play(tmp_path, f"{LOOPS}print([{call}, log])\n", words)
    assert ended.stdout == f"{[result, log]}\n", ended.stderr


LEAKS = """
import asyncio, gc, weakref
gc.disable()
references = []
class Watched:
    def __init__(self): references.append(weakref.ref(self))
class WatchedError(ValueError):
    pass
def alive(): return sum(reference() is not None for reference in references)
bad = {2}
def leaf(i):
    x = Watched()
    if i in bad:
        error = WatchedError(i)
        references.append(weakref.ref(error))
        raise error
    return i
def mid(i):
    b = Watched()
    return leaf(i)
def outer():
    r = []
    for i in (1, 2, 3):
        r.append(mid(i))
        print(alive())
    return r
def cells():
    b = Watched()
    k = lambda: b
    for i in (1, 2, 3): leaf(i)
    k = b = None
    return alive()
async def numbers():
    for i in (1, 2, 3):
        await asyncio.sleep(0)
        yield leaf(i)
async def looped():
    return [number async for number in numbers()]
"""

LEAK_CASES = {
    "a frame further out": ("outer()", "frame outer\naction bad.clear()\npass", "[1, 2, 3]"),
    "surgery": (
        "outer()",
        "surgery leaf <<END\ndef leaf(i):\n    x = Watched()\n    y = i * 10\n    return y\nEND\npass",
        "[1, 20, 30]",
    ),
    "surgery of what moves": (
        "outer()",
        "surgery mid <<END\ndef mid(i):\n    b = Watched()\n    c = leaf(i)\n    return c * 10\nEND\ngoto 17",
        "[1, 2, 30]",
    ),
    "undo": (
        "outer()",
        "surgery leaf <<END\ndef leaf(i):\n    return 0\nEND\nundo\naction bad.clear()\nframe outer\npass",
        "[1, 2, 3]",
    ),
    "cells of a restart": ("cells()", "frame cells\naction bad.clear()\nrestart", "0"),
}


@pytest.mark.parametrize("case", LEAK_CASES)
def test_nothing_dead_is_kept_alive(case: str, tmp_path: Path) -> None:
    call, words, result = LEAK_CASES[case]
    ended = play(tmp_path, f"{LEAKS}print({call})\n", words)
    *counts, last = ended.stdout.splitlines() or [ended.stderr]
    assert last == result, ended.stderr
    assert set(counts) <= {"0"}


def test_an_asynchronous_generator_that_has_ended_is_said(tmp_path: Path) -> None:
    program = LEAKS + (
        "async def main():\n    async for number in numbers():\n        print(number)\nasyncio.run(main())\n"
    )
    ended = play(tmp_path, program, "frame main\naction bad.clear()\npass")
    assert "would give no more" in ended.stderr
    assert ended.stdout == "1\n"
