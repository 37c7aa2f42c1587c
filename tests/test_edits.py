"""Edits of a function that is being run: where it goes on, and what is left on the way; values are worked out by hand."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.running import Ended
from tests.running import run as run_program

PRELUDE = """\
log = []
def say(*what):
    log.append(' '.join(map(str, what)))
class Guard:
    def __init__(self, name): self.name = name
    def __enter__(self): say('+', self.name); return self
    def __exit__(self, kind, error, trace): say('-', self.name)
"""


def run(folder: Path, old: str, new: str, words: str = "pass", call: str = "f()") -> Ended:
    """Run a program whose one hold is answered by the edited copy of it and some words."""
    end = f"\nresult = {call}\nprint(result)\nprint(*log, sep='\\n')\n"
    old, new = textwrap.dedent(old), textwrap.dedent(new)
    (folder / "edited.py").write_text(PRELUDE + new + end)
    return run_program(folder, PRELUDE + old + end, f"surgery edited.py\n{words}\n")


# For each case: the running text, the edited one, the lines of the output, and what the surgery says.
CASES: dict[str, tuple[str, str, list[str], str]] = {
    "a with is removed": (
        """
        def f():
            for i in range(2):
                with Guard(i):
                    say('a', i)
                    say(1 // i)
            return 'end'
        """,
        """
        def f():
            for i in range(2):
                say('a', i)
                say(10 // (i or 1))
            return 'end'
        """,
        ["end", "+ 0", "a 0", "- 0", "10", "a 1", "10"],
        "`with` of line 11",
    ),
    "a with is put around": (
        """
        def f():
            for i in range(2):
                say('a', i)
                say(1 // i)
            return 'end'
        """,
        """
        def f():
            for i in range(2):
                say('a', i)
                with Guard(i):
                    say(10 // (i or 1))
            return 'end'
        """,
        ["end", "a 0", "+ 0", "10", "- 0", "a 1", "+ 1", "10", "- 1"],
        "at its first changed statement",
    ),
    "a try is put around": (
        """
        def f():
            for i in range(2):
                say('a', i)
                say(1 // i)
            return 'end'
        """,
        """
        def f():
            for i in range(2):
                try:
                    say('a', i)
                    say(1 // i)
                except ZeroDivisionError:
                    say('zero')
                finally:
                    say('finally')
            return 'end'
        """,
        ["end", "a 0", "zero", "finally", "a 1", "1", "finally"],
        "replaced f",
    ),
    "a try with a finally is removed": (
        """
        def f():
            for i in range(2):
                try:
                    say('a', i)
                    say(1 // i)
                finally:
                    say('finally')
            return 'end'
        """,
        """
        def f():
            for i in range(2):
                say('a', i)
                say(10 // (i or 1))
            return 'end'
        """,
        ["end", "a 0", "finally", "10", "a 1", "10"],
        "`try` of line 11",
    ),
    "a try with clauses is removed": (
        """
        def f():
            for i in range(2):
                try:
                    say('a', i)
                    for j in range(2):
                        say(j // i)
                except KeyError:
                    say('never')
            return 'end'
        """,
        """
        def f():
            for i in range(2):
                say('a', i)
                for j in range(2):
                    say(10 // (i or 1))
            return 'end'
        """,
        ["end", "a 0", "10", "10", "a 1", "10", "10"],
        "`try` of line 11",
    ),
    "a for is removed": (
        """
        def f():
            for i in range(2):
                for j in range(2):
                    say('a', i, j)
                    say(1 // i)
            return 'end'
        """,
        """
        def f():
            for i in range(2):
                say('a', i, 0)
                say(10 // (i or 1))
            return 'end'
        """,
        ["end", "a 0 0", "a 0 0", "10", "a 1 0", "10"],
        "`for` of line 11",
    ),
    "a for is put around": (
        """
        def f():
            i = 0
            say(1 // i)
            return 'end'
        """,
        """
        def f():
            i = 0
            for i in (5, 1):
                say(10 // i)
            return 'end'
        """,
        ["end", "2", "10"],
        "at its first changed statement",
    ),
    "a for has become a while": (
        """
        def f():
            for i in range(3):
                say('a', i)
                say(1 // i)
            return 'end'
        """,
        """
        def f():
            while i < 2:
                i += 1
                say(10 // i)
            return 'end'
        """,
        ["end", "a 0", "10", "5"],
        "`for` of line 10",
    ),
    "a loop's header": (
        """
        def f():
            for i in (1, 0, 2):
                say('a', i)
                say(10 // i)
            return 'end'
        """,
        """
        def f():
            for i in (7, 8):
                say('a', i)
                say(20 // (i or 4))
            return 'end'
        """,
        ["end", "a 1", "10", "a 0", "5", "a 2", "10"],
        "line 10 changed too",
    ),
    "an if is put around": (
        """
        def f():
            for i in range(2):
                say('a', i)
                say(1 // i)
            return 'end'
        """,
        """
        def f():
            for i in range(2):
                say('a', i)
                if i:
                    say(1 // i)
            return 'end'
        """,
        ["end", "a 0", "a 1", "1"],
        "at its first changed statement",
    ),
    "an if is removed": (
        """
        def f():
            for i in range(2):
                if i == 0:
                    say('a', i)
                    say(1 // i)
            return 'end'
        """,
        """
        def f():
            for i in range(2):
                say('a', i)
                say(10 // (i or 1))
            return 'end'
        """,
        ["end", "a 0", "10", "a 1", "10"],
        "`if` of line 11",
    ),
    "a try around the loop that is being run": (
        """
        def f():
            say('once')
            for i in range(2):
                say('a', i)
                say(1 // i)
            return 'end'
        """,
        """
        def f():
            say('twice')
            try:
                for i in range(2):
                    say('a', i)
                    say(10 // (i or 1))
            finally:
                say('finally')
            return 'end'
        """,
        ["end", "once", "a 0", "10", "a 1", "10", "finally"],
        "line 10, 11 changed too",
    ),
    "a with around the loop that is being run": (
        """
        def f():
            for i in range(2):
                say('a', i)
                say(1 // (i - 1))
            return 'end'
        """,
        """
        def f():
            with Guard('new'):
                for i in range(2):
                    say('a', i)
                    say(10 // (i + 1))
            return 'end'
        """,
        ["end", "a 0", "-1", "a 1", "+ new", "a 0", "10", "a 1", "5", "- new"],
        "at its first changed statement",
    ),
    "the outer of two withs": (
        """
        def f():
            with Guard('outer'):
                with Guard('inner'):
                    say(1 // 0)
            return 'end'
        """,
        """
        def f():
            with Guard('inner'):
                say(1)
            return 'end'
        """,
        ["end", "+ outer", "+ inner", "- inner", "- outer", "+ inner", "1", "- inner"],
        "`with` of line 10",
    ),
    "the inner of two withs": (
        """
        def f():
            with Guard('outer'):
                with Guard('inner'):
                    say(1 // 0)
            return 'end'
        """,
        """
        def f():
            with Guard('outer'):
                say(1)
            return 'end'
        """,
        ["end", "+ outer", "+ inner", "- inner", "1", "- outer"],
        "`with` of line 11",
    ),
    "the last statement is gone": (
        """
        def f():
            for i in range(2):
                say('a', i)
                say(1 // i)
            return 'end'
        """,
        """
        def f():
            for i in range(2):
                say('a', i)
            return 'end'
        """,
        ["end", "a 0", "a 1"],
        "behind the statements that are left",
    ),
    "only what follows": (
        """
        def f():
            for i in range(2):
                say(1 // (i or d.pop()))
                say('old')
            return 'end'
        d = [2, 0]
        """,
        """
        def f():
            for i in range(2):
                say(1 // (i or d.pop()))
                say('new')
            return 'end'
        d = [2, 0]
        """,
        ["end", "0", "new", "1", "new"],
        "replaced f",
    ),
    "the body of a loop whose header crashed": (
        """
        def items():
            return Items()
        class Items:
            at = -1
            def __iter__(self): return self
            def __next__(self):
                self.at += 1
                if self.at == 1: raise ValueError
                if self.at == 3: raise StopIteration
                return self.at
        def f():
            for i in items():
                say('old', i)
            return 'end'
        """,
        """
        def items():
            return Items()
        class Items:
            at = -1
            def __iter__(self): return self
            def __next__(self):
                self.at += 1
                if self.at == 1: raise ValueError
                if self.at == 3: raise StopIteration
                return self.at
        def f():
            for i in items():
                say('new', i)
            return 'end'
        """,
        ["end", "old 0", "new 2"],
        "replaced f",
    ),
    "an except clause is left": (
        """
        def f():
            for i in (0, 1):
                try:
                    say(1 // i)
                except ZeroDivisionError:
                    say(missing)
            return 'end'
        """,
        """
        def f():
            for i in (0, 1):
                say(1 // (i or 5))
            return 'end'
        """,
        ["end", "0", "1"],
        "`try` of line 11",
    ),
    "several statements on a line": (
        """
        def f():
            i = 0; say('a', i); say(1 // i); say('b')
            return 'end'
        """,
        """
        def f():
            i = 0; say('a', i); say(7); say('c')
            return 'end'
        """,
        ["end", "a 0", "7", "c"],
        "at its first changed statement",
    ),
}
WORDS = {"the body of a loop whose header crashed": "frame f\nsurgery edited.py\npass"}


@pytest.mark.parametrize("case", CASES)
def test_the_run_goes_on_in_the_edited_text(case: str, tmp_path: Path) -> None:
    old, new, lines, said = CASES[case]
    ended = run(tmp_path, old, new, WORDS.get(case, "pass"))
    assert ended.stdout.splitlines() == lines, ended.stderr
    assert said in ended.stderr
    assert ended.code == 0
