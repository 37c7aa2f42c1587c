"""Exceptions whose class makes something else of the interpreter's attributes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import run

NAMES = ("__traceback__", "__context__", "__cause__", "__suppress_context__")
RAISES = "property(lambda self: 1 / 0)"
LIES = "property(lambda self: 'nothing of the kind')"

PROGRAM = """
class Odd(Exception):
    {name} = {value}
class OddGroup(ExceptionGroup):
    {name} = {value}
    exceptions = {value}
fails = [1, 1]
def with_context(kind):
    try:
        {{}}["first"]
    except KeyError:
        try:
            raise kind
        except Exception as error:
            return error
def inner(kind):
    if fails:
        fails.pop()
        raise with_context(kind)
    return 5
def held(kind):
    with open("/dev/null"):
        x = inner(kind)
    return x
print(held(Odd("one")), held(OddGroup("two", [Odd("three")])))
def caught():
    fails.append(1)
    try:
        held(Odd("four"))
    except Odd as error:
        return error.args
print(caught())
"""


@pytest.mark.parametrize("value", [RAISES, LIES], ids=["raises", "lies"])
@pytest.mark.parametrize("name", NAMES)
def test_it_is_held_and_the_run_goes_on(tmp_path: Path, name: str, value: str) -> None:
    playbook = "exc\nwhere\nwhy\naction 1\nskip\n---\nexc\nskip\n"
    ended = run(tmp_path, PROGRAM.format(name=name, value=value), playbook)
    assert ended.stdout == "5 5\n('four',)\n"
    assert ended.code == 0
    assert "Odd: one" in ended.stderr
    assert "internal error" not in ended.stderr


LEAVES = """
import os
class Odd(Exception):
    {name} = {value}
def held():
    if os.environ.get("DAIFU_DISABLE") is None:
        {{}}["skipped"]
    try:
        {{}}["first"]
    except KeyError:
        pass
    raise Odd("six")
held()
"""


@pytest.mark.parametrize("value", [RAISES, LIES], ids=["raises", "lies"])
@pytest.mark.parametrize("name", NAMES)
def test_it_leaves_after_the_run_has_gone_on(tmp_path: Path, name: str, value: str) -> None:
    """Out of a continuation, and through the report at the end."""
    program = LEAVES.format(name=name, value=value)
    ended = run(tmp_path, program, "skip\n---\nraise\n")
    plain = run(tmp_path, program, DAIFU_DISABLE="1")
    assert ended.code == plain.code == 1
    assert ended.stderr.endswith(f"Odd goes on\n{plain.stderr}")


def test_an_action_raises_it(tmp_path: Path) -> None:
    for value in (RAISES, LIES):
        program = PROGRAM.format(name="__cause__", value=value)
        ended = run(
            tmp_path,
            program,
            "action <<END\ntry:\n    raise Odd('five')\nexcept Odd as e: f = e\nraise f\nEND\n",
        )
        assert "The action raised Odd; the hold stays" in ended.stderr
        assert "internal error" not in ended.stderr
        assert ended.code == 1
