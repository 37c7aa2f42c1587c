"""Generators and coroutines that are alive when the interpreter ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import run

PROGRAM = """
import types
class Late:
    def __del__(self): print("closed", flush=True)
def generator(state, late):
    x = 10 // len(state)
    try:
        yield 1
        yield 2
    finally:
        len(state)
def takes(state, late):
    x = 10 // len(state)
    try:
        yield 1
    except GeneratorExit:
        return
@types.coroutine
def switch(): yield
async def coroutine(state, late):
    x = 10 // len(state)
    await switch()
async def asynchronous(state, late):
    x = 10 // len(state)
    yield 1
def start(made):
    if hasattr(made, "__next__"):
        next(made)
        return made
    try:
        (made if hasattr(made, "send") else made.asend(None)).send(None)
    except StopIteration:
        pass
    return made
keep = [start(kind([], Late())) for kind in (generator, takes, coroutine, asynchronous)]
print("end", flush=True)
"""


@pytest.mark.parametrize("holds", [1, 2, 3])
def test_they_are_closed_in_silence(tmp_path: Path, holds: int) -> None:
    """As often as they were held before: a frame that has gone on once, and those that have run it."""
    block = "pass\n---\n" * (holds - 1) + "state.append(1)\npass\n---\n"
    ended = run(tmp_path, PROGRAM, block * 4)
    assert (ended.code, ended.stdout) == (0, "end\n" + "closed\n" * 4)
    assert ended.stderr.splitlines()[-1].startswith("going on")
