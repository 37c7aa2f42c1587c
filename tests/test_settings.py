"""What the user says about holding: by options, variables, pyproject.toml, and from the program."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import daifu_bc
from daifu_bc.analysis import filters
from daifu_bc.errors import UsageError
from daifu_bc.install import settings
from tests.running import run

SWALLOWS = """
from framework import Trainer
def step(number):
    print('step', number)
    return 1 // number
Trainer().fit(step)
try:
    step(0)
except Exception:
    print('not fit')
"""

FRAMEWORK = """
class Trainer:
    def fit(self, step):
        for number in (1, 0):
            try:
                self.before(number)
                {}[number]
            except KeyError:
                print('narrow', number)
            try:
                step(number)
            except Exception as error:
                print('swallowed', type(error).__name__)
    def before(self, number):
        print('before', number)
"""

PLAIN = "before 1\nnarrow 1\nstep 1\nbefore 0\nnarrow 0\nstep 0\n"
LOST = PLAIN + "swallowed ZeroDivisionError\nstep 0\nnot fit\n"
HELD = PLAIN + "step 0\nnot fit\n"
MENDED = "return 7\n"


def play(folder: Path, *options: str, **variables: str) -> tuple[str, int]:
    (folder / "framework.py").write_text(FRAMEWORK)
    ended = run(folder, SWALLOWS, MENDED, *options, **variables)
    return ended.stdout, ended.stderr.count("-- daifu: hold ")


def test_by_itself_what_is_handled_is_not_held(tmp_path: Path) -> None:
    assert play(tmp_path) == (LOST, 0)


@pytest.mark.parametrize(
    "name",
    [
        "fit",
        "Trainer.fit",
        "framework:fit",
        "framework:Trainer.*",
        "framework.py:fit",
        "*:Trainer.fit",
        "other, fit",
    ],
)
def test_held_though_it_would_be_caught(tmp_path: Path, name: str) -> None:
    """Only by broad clauses, and only by those of that function."""
    assert play(tmp_path, "--hold-through", name) == (HELD, 1)


@pytest.mark.parametrize("name", ["step", "Other.fit", "other:fit", "work.py:fit", "fits", "__main__:fit"])
def test_other_functions_are_as_they_were(tmp_path: Path, name: str) -> None:
    assert play(tmp_path, "--hold-through", name) == (LOST, 0)


def test_by_variable(tmp_path: Path) -> None:
    assert play(tmp_path, DAIFU_HOLD_THROUGH="fit") == (HELD, 1)


def test_by_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.daifu]\nhold-through = ["Trainer.fit"]\n')
    assert play(tmp_path) == (HELD, 1)
    assert play(tmp_path, "--hold-through", "other") == (LOST, 0)


def test_cached_code_is_of_the_same_settings(tmp_path: Path) -> None:
    """With `hold-through` there are barriers where else there are none."""
    inside = FRAMEWORK.replace("step(number)", "print(1 // number)")
    for options, holds in [((), 0), (("--hold-through", "fit"), 1), ((), 0), (("--hold-through", "fit"), 1)]:
        (tmp_path / "framework.py").write_text(inside)
        os.utime(tmp_path / "framework.py", (1, 1))
        ended = run(tmp_path, "from framework import Trainer\nTrainer().fit(None)\n", "skip\n", *options)
        assert ended.stderr.count("-- daifu: hold ") == holds
        assert ended.stdout.endswith("narrow 0\n" if holds else "ZeroDivisionError\n")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('[tool.daifu]\nhold_through = ["fit"]\n', "hold_through, which is not known"),
        ('[tool.daifu]\nhold-through = "fit"\n', "is no list of names"),
        ('[tool.daifu]\nleave-to = ["a b"]\n', "'a b' names no function"),
        ('[tool.daifu]\nhold-keyboard-interrupt = "yes"\n', "neither true nor false"),
    ],
)
def test_mistakes_in_a_project_are_told_before_the_program_starts(
    tmp_path: Path, content: str, text: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(content)
    ended = run(tmp_path, "print('started')\n")
    assert (ended.code, ended.stdout) == (2, "")
    assert text in ended.stderr


def test_mistakes_in_variables_are_told_before_the_program_starts(tmp_path: Path) -> None:
    ended = run(tmp_path, "print('started')\n", DAIFU_LEAVE_TO="a:b:c")
    assert (ended.code, ended.stdout) == (2, "")
    assert "'a:b:c' names no function" in ended.stderr


def test_a_project_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.daifu]\nleave-to = [\n")
    ended = run(tmp_path, "print('started')\n")
    assert (ended.code, ended.stdout) == (0, "started\n")
    assert "pyproject.toml cannot be read" in ended.stderr


LEFT = """
class Server:
    def serve(self, requests):
        for request in requests:
            self.answer(request)
    def answer(self, request):
        return {}[request]
try:
    Server().serve(['x'])
finally:
    print('finally')
"""


def test_never_held_below_a_function(tmp_path: Path) -> None:
    held = run(tmp_path, LEFT, "return 1\n")
    assert held.stderr.count("-- daifu: hold ") == 1
    for name in ("serve", "Server.*", "program.py:Server.answer", "*"):
        left = run(tmp_path, LEFT, "return 1\n", "--leave-to", name)
        assert "-- daifu: hold " not in left.stderr
        assert (left.code, left.stdout) == (1, "finally\n")


def test_from_the_program(tmp_path: Path) -> None:
    """Said while it runs, it counts for what happens next, what was remembered notwithstanding."""
    program = """
import daifu_bc
def fit(step):
    try:
        return step()
    except Exception:
        return 'swallowed'
def step():
    return {}['x']
print(fit(step))
daifu_bc.configure(hold_through=['fit'])
print(fit(step))
daifu_bc.configure(leave_to=['step'])
print(fit(step))
daifu_bc.configure(hold_through=[], leave_to=())
print(fit(step))
"""
    ended = run(tmp_path, program, "return 5\n")
    assert ended.stdout == "swallowed\n5\nswallowed\nswallowed\n", ended.stderr
    assert ended.stderr.count("-- daifu: hold ") == 1


def test_configure_takes_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (filters.HOLD_THROUGH, filters.LEAVE_TO, filters.KEYBOARD_INTERRUPT):
        monkeypatch.setenv(variable, "")
    for name in ("a:", ":b", "a b", "a:b:c"):
        with pytest.raises(UsageError, match="names no function"):
            daifu_bc.configure(leave_to=[name])
    settings.configure(leave_to=["a", "b.c:d"])
    assert filters.asked(filters.LEAVE_TO) == ("a", "b.c:d")
    assert filters.asked(filters.HOLD_THROUGH) == ()
    settings.configure(leave_to="")
    assert filters.asked(filters.LEAVE_TO) == ()


INTERRUPTED = """
import signal
def train():
    try:
        for step in range(3):
            print('step', step)
            if step == 1: raise KeyboardInterrupt
    finally:
        print('finally')
def outer():
    try:
        train()
    except Exception:
        print('never')
outer()
print('end')
"""


def test_an_interrupt_is_held_when_asked_for(tmp_path: Path) -> None:
    plain = "step 0\nstep 1\nfinally\n"
    assert run(tmp_path, INTERRUPTED, "skip\n").stdout == plain
    assert run(tmp_path, INTERRUPTED, "skip\n", DAIFU_HOLD_KEYBOARD_INTERRUPT="0").stdout == plain
    expected = "step 0\nstep 1\nstep 2\nfinally\nend\n"
    assert run(tmp_path, INTERRUPTED, "skip\n", "--hold-keyboard-interrupt").stdout == expected
    assert run(tmp_path, INTERRUPTED, "skip\n", DAIFU_HOLD_KEYBOARD_INTERRUPT="1").stdout == expected
    (tmp_path / "pyproject.toml").write_text("[tool.daifu]\nhold-keyboard-interrupt = true\n")
    assert run(tmp_path, INTERRUPTED, "skip\n").stdout == expected
    handled = INTERRUPTED.replace("except Exception", "except KeyboardInterrupt")
    assert run(tmp_path, handled, "skip\n").stdout == plain + "never\nend\n"
