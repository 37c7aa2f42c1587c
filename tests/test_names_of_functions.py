"""The names by which a surgery finds functions that are inside others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import run

PROGRAM = """
def make(step):
    def add(n):
        x = 1 // step
        return n + 1 - step
    def twice(n):
        return 2 * n
    class Inner:
        def method(self, n):
            return n + 3
    return add, twice, Inner().method
kept = [make(0), make(1)]
def work():
    add, twice, method = kept[0]
    return add(twice(method(1)))
print(work(), kept[0][1](5), kept[1][1](5), kept[0][2](5))
"""


@pytest.mark.parametrize("name", ["make.add", "make.<locals>.add", "add"])
def test_the_function_that_is_held(tmp_path: Path, name: str) -> None:
    playbook = f"surgery {name} <<END\ndef add(n):\n    x = 1\n    return n + 100 - step\nEND\npass\n"
    assert run(tmp_path, PROGRAM, playbook).stdout == "108 10 10 8\n"


@pytest.mark.parametrize("name", ["make.twice", "make.<locals>.twice", "__main__.make.twice"])
def test_one_that_is_alive(tmp_path: Path, name: str) -> None:
    """In a list; all that have been made of the same text are replaced."""
    playbook = f"surgery {name} <<END\ndef twice(n):\n    return 20 * n\nEND\nskip\n"
    ended = run(tmp_path, PROGRAM, playbook)
    assert "replaced make" in ended.stderr
    assert ended.stdout == "9 100 100 8\n"


@pytest.mark.parametrize("name", ["make.Inner.method", "make.<locals>.Inner.method"])
def test_a_method(tmp_path: Path, name: str) -> None:
    playbook = f"surgery {name} <<END\ndef method(self, n):\n    return n + 30\nEND\nskip\n"
    assert run(tmp_path, PROGRAM, playbook).stdout == "9 10 10 35\n"


def test_on_the_stack(tmp_path: Path) -> None:
    """Further out than the frame that is held: new from its next call on."""
    program = """
def make():
    def outer(n):
        return inner(n)
    return outer
def inner(n):
    return 1 // n
kept = [make()]
print(kept[0](0), kept[0](1))
"""
    playbook = "surgery make.outer <<END\ndef outer(n):\n    return inner(n) + 10\nEND\nreturn 7\n"
    assert run(tmp_path, program, playbook).stdout == "7 11\n"


def test_one_that_is_not_there(tmp_path: Path) -> None:
    ended = run(tmp_path, PROGRAM, "surgery make.other <<END\ndef other(n):\n    return n\nEND\npass\n")
    assert "make.other is no function that can be found from here" in ended.stderr
    assert "`outer.f` for a function inside another" in ended.stderr
