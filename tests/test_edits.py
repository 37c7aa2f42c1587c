"""Edits of a function that is being run: where it goes on, and what is left on the way; values are worked out by hand."""

from __future__ import annotations

import py_compile
import textwrap
from pathlib import Path

import pytest

from tests.playing import play
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
    end = f"\nresult = {call}\nprint(result)\nprint('\\n'.join(log), end='')\n"
    old, new = textwrap.dedent(old), textwrap.dedent(new)
    (folder / "edited.py").write_text(PRELUDE + new + end)
    return run_program(folder, PRELUDE + old + end, f"surgery edited.py\n{words}\n")


# For each case: the running text, the edited one, the lines of the output, and what the surgery says.
CASES: dict[str, tuple[str, str, list[str], str]] = {
    "a try with a finally is removed, and a variable renamed that the handlers of the try in it use": (
        """
        def f(n=1):
            try:
                try:
                    say('a')
                    say('a too')
                    [][n]
                except IndexError:
                    say(n // 0, n)
                    say('handled', n)
                say('b')
            finally:
                say('outer')
            return 'end'
        """,
        """
        def f(count=1):
            try:
                say('a')
                say('a too')
                [][count]
            except IndexError:
                say(count // 1, count)
                say('handled', count)
            say('b')
            return 'end'
        """,
        ["end", "a", "a too", "outer", "a", "a too", "1 1", "handled 1", "b"],
        "`try` of line 10",
    ),
    "a finally changes around a try with a finally that has most of its body": (
        """
        def f():
            try:
                say('a')
                try:
                    say('b')
                    say('c')
                finally:
                    say(1 // 0)
            finally:
                say('outer')
            return 'end'
        """,
        """
        def f():
            try:
                say('a')
                try:
                    say('b')
                    say('c')
                finally:
                    say(1 // 1)
            finally:
                say('changed')
            return 'end'
        """,
        ["end", "a", "b", "c", "1", "changed"],
        "goes on at",
    ),
    "a try with a finally is removed inside of another one": (
        """
        def f():
            try:
                say('a')
                try:
                    say(1 // 0)
                finally:
                    say('inner')
                say('b')
            finally:
                say('outer')
            return 'end'
        """,
        """
        def f():
            try:
                say('a')
                say(1)
                say('b')
            finally:
                say('outer')
            return 'end'
        """,
        ["end", "a", "inner", "1", "b", "outer"],
        "`try` of line 12",
    ),
    "a with is put around a with": (
        """
        def f():
            with Guard('A'):
                say(1 // 0)
            return 'end'
        """,
        """
        def f():
            with Guard('N'):
                with Guard('A'):
                    say(1)
            return 'end'
        """,
        ["end", "+ A", "- A", "+ N", "+ A", "1", "- A", "- N"],
        "`with` of line 10",
    ),
    "a try around a try in a loop is removed": (
        """
        def f():
            for i in range(1):
                try:
                    while i < 1:
                        try:
                            i += 1 // i
                        finally:
                            say('inner')
                finally:
                    say('outer')
            return 'end'
        """,
        """
        def f():
            for i in range(1):
                while i < 1:
                    try:
                        i += 1
                    finally:
                        say('inner')
            return 'end'
        """,
        ["end", "inner", "outer", "inner"],
        "`try` of line 11",
    ),
    "a block that is gone is not taken for another one of its kind": (
        """
        def f():
            try:
                say(1 // 0)
            finally:
                say('x')
            if say('c') is None:
                say('then')
            else:
                try:
                    say('else')
                finally:
                    say('y')
            return 'end'
        """,
        """
        def f():
            if say('c') is None:
                say('then')
            else:
                try:
                    say('else')
                finally:
                    say('y')
            return 'end'
        """,
        ["end", "x", "c", "then"],
        "`try` of line 10",
    ),
    "a with in an except body is removed": (
        """
        def f():
            values = iter([0, 1])
            try:
                say({}[1])
            except KeyError:
                with Guard('A'):
                    say(1 // next(values))
                say('b')
            return 'end'
        """,
        """
        def f():
            values = iter([0, 1])
            try:
                say({}[1])
            except KeyError:
                say(1 // next(values))
                say('b')
            return 'end'
        """,
        ["end", "+ A", "- A", "1", "b"],
        "`with` of line 14",
    ),
    "most of a block moves out of it and what crashed stays": (
        """
        def f():
            values = iter([0, 1])
            try:
                say('a')
                say('b')
                say('c')
                say(1 // next(values))
            finally:
                say('d')
            return 'end'
        """,
        """
        def f():
            values = iter([0, 1])
            try:
                say(1 // next(values))
            finally:
                say('a')
                say('b')
                say('c')
                say('d')
            return 'end'
        """,
        ["end", "a", "b", "c", "1", "a", "b", "c", "d"],
        "goes on at line 12 of the new code",
    ),
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
    "locals have another name": (
        """
        def f(first):
            total, i = 5, 0
            def more(n):
                nonlocal total
                total += n
            for i in range(2):
                more(i)
                say(total, first // i)
            return total
        """,
        """
        def f(start):
            amount, number = 5, 0
            def more(n):
                nonlocal amount
                amount += n
            for number in range(2):
                more(number)
                say(amount, start // (number or 7), number)
            return amount
        """,
        ["6", "5 1 0", "6 8 1"],
        "amount has the value of total",
    ),
    "a local that has no value yet": (
        """
        def f():
            for i in range(2):
                say(1 // i)
            return 'end'
        """,
        """
        def f():
            base = 3
            for i in range(2):
                say(base // (i or 1))
            return base
        """,
        ["4", "4", "4"],
        "no value yet for base",
    ),
    "super in a method that had none": (
        """
        class Base:
            def scale(self): return 3
        class Some(Base):
            def scale(self): return 1
            def method(self, n):
                return n // 0
        def f():
            return Some().method(5), Some().method(6)
        """,
        """
        class Base:
            def scale(self): return 3
        class Some(Base):
            def scale(self): return 1
            def method(self, n):
                return n * super().scale()
        def f():
            return Some().method(5), Some().method(6)
        """,
        ["(15, 18)"],
        "replaced Some.method",
    ),
    "a variable of the function around that a neighbour has": (
        """
        def make(step):
            count = 0
            def bump():
                nonlocal count
                count += step
                return count
            def work(n):
                return bump() // n
            return work, bump
        def f():
            (one, bump), (two, _) = make(1), make(10)
            return one(0), two(5), one(1), bump()
        """,
        """
        def make(step):
            count = 0
            def bump():
                nonlocal count
                count += step
                return count
            def work(n):
                return (bump(), count, step)
            return work, bump
        def f():
            (one, bump), (two, _) = make(1), make(10)
            return one(0), two(5), one(1), bump()
        """,
        ["((2, 2, 1), (10, 10, 10), (3, 3, 1), 4)"],
        "replaced make (1 function), make.<locals>.work (2 functions)",
    ),
    "a variable of the function around is used no more": (
        """
        def make(step, base):
            def work(n):
                return step // n + base
            return work
        def f():
            one, two = make(1, 100), make(10, 200)
            return one(0), two(5), one(1)
        """,
        """
        def make(step, base):
            def work(n):
                return n + base
            return work
        def f():
            one, two = make(1, 100), make(10, 200)
            return one(0), two(5), one(1)
        """,
        ["(100, 205, 101)"],
        "replaced make (1 function), make.<locals>.work (2 functions)",
    ),
    "decorators and annotations": (
        """
        def twice(function):
            def wrapper(*arguments): return 2 * function(*arguments)
            wrapper.__wrapped__ = function
            return wrapper
        @twice
        def g(n: int):
            return 1 // n
        def f():
            return g(0), sorted(g.__wrapped__.__annotations__)
        """,
        """
        def twice(function):
            def wrapper(*arguments): return 2 * function(*arguments)
            wrapper.__wrapped__ = function
            return wrapper
        def g(n: float) -> int:
            return 7
        def f():
            return g(0), sorted(g.__wrapped__.__annotations__)
        """,
        ["(14, ['n'])"],
        "the decorators of g have changed: they are not applied again",
    ),
    "several functions at once, and new ones": (
        """
        def g(n):
            return h(n) + 1
        def h(n):
            return 1 // n
        class Some:
            def method(self, n):
                return g(n)
        def f():
            return Some().method(0), Some().method(0), Some().added()
        """,
        """
        import math
        from os import path as paths
        def g(n):
            return h(n) + k(n)
        def h(n):
            return math.gcd(n, 4)
        def k(n):
            return 10
        class Other:
            def method(self, n):
                return paths.basename('a/b')
        class Some:
            def method(self, n):
                return g(n), Other().method(n)
            @staticmethod
            def added(n=1):
                return n
            def __repr__(self):
                return super().__repr__()[:4]
        def f():
            return Some().method(0), Some().method(0), Some().added()
        """,
        ["(5, (14, 'b'), 1)"],
        "replaced g (1 function), h (1 function), Some.method (1 function)",
    ),
    "goto takes lines of the new text": (
        """
        def f():
            say('a')
            say(1 // 0)
            return 'end'
        """,
        """
        def f():
            say('changed')
            say('left out')
            say('b')
            return 'end'
        """,
        ["end", "a", "b"],
        "going on at line 12",
    ),
    "an async with and a generator": (
        """
        import asyncio
        class Later(Guard):
            async def __aenter__(self): return self.__enter__()
            async def __aexit__(self, *error): await asyncio.sleep(0); return self.__exit__(*error)
        async def main():
            for i in range(2):
                async with Later(i):
                    say(1 // i)
            return 'end'
        def f():
            return asyncio.run(main())
        """,
        """
        import asyncio
        class Later(Guard):
            async def __aenter__(self): return self.__enter__()
            async def __aexit__(self, *error): await asyncio.sleep(0); return self.__exit__(*error)
        async def main():
            for i in range(2):
                await asyncio.sleep(0)
                say(10 // (i or 1))
            return 'end'
        def f():
            return asyncio.run(main())
        """,
        ["end", "+ 0", "- 0", "10", "10"],
        "`async with` of line 15",
    ),
    "a generator": (
        """
        def numbers():
            for i in range(2):
                try:
                    yield 1 // i
                finally:
                    say('finally')
        def f():
            return list(numbers())
        """,
        """
        def numbers():
            for i in range(2):
                yield 10 // (i or 1)
        def f():
            return list(numbers())
        """,
        ["[10, 10]", "finally"],
        "`try` of line 11",
    ),
    "the module's body": (
        """
        for i in range(2):
            with Guard(i):
                say(1 // i)
        def f(): return 'end'
        """,
        """
        for i in range(2):
            say(10 // (i or 1))
        def f(): return 'end'
        """,
        ["end", "+ 0", "- 0", "10", "10"],
        "`with` of line 10",
    ),
}
WORDS = {
    "goto takes lines of the new text": "goto 12",
    "a local that has no value yet": "action base = 4\npass",
    "the body of a loop whose header crashed": "frame f\nsurgery edited.py\npass",
}
CALLS = {"locals have another name": "f(8)"}


@pytest.mark.parametrize("case", CASES)
def test_the_run_goes_on_in_the_edited_text(case: str, tmp_path: Path) -> None:
    old, new, lines, said = CASES[case]
    ended = run(tmp_path, old, new, WORDS.get(case, "pass"), CALLS.get(case, "f()"))
    assert ended.stdout.splitlines() == lines, ended.stderr
    assert said in ended.stderr
    assert ended.code == 0


REFUSED = {
    "a finally that is being run is gone": (
        """
        def f():
            try:
                say('a')
            finally:
                say(1 // 0)
        """,
        """
        def f():
            say('a')
            say(1)
        """,
        "the `finally` that is being run, of the `try` of line 10, is gone",
    ),
    "a variable of the function around that has no cell": (
        """
        def f():
            step = 1
            def work(n):
                return 1 // n
            return work(0)
        """,
        """
        def f():
            step = 1
            def work(n):
                return step
            return work(0)
        """,
        "the new body of f.<locals>.work uses step of the function around it",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_edit_that_cannot_be_taken_says_why(case: str, tmp_path: Path) -> None:
    old, new, reason = REFUSED[case]
    ended = run(tmp_path, old, new)
    assert reason in ended.stderr
    assert "ZeroDivisionError" in ended.stderr.splitlines()[-1]
    assert ended.code == 1


def test_cells_are_taken_back(tmp_path: Path) -> None:
    old, new, _, _ = CASES["a variable of the function around that a neighbour has"]
    ended = run(tmp_path, old, new, "undo\naction n = 1\npass")
    assert ended.stdout.splitlines() == ["(2, 2, 3, 4)"], ended.stderr


AT = (
    PRELUDE
    + """
def f(n):
    total = 0
    for i in range(2):
        with Guard(i): total += n // i   # why
        if total > 100: return None
    return total
print(f(6))
print(f(8))
print('\\n'.join(log), end='')
"""
)


def at(line: int, *text: str) -> str:
    return "\n".join([f"surgery --at {line}", *text]).replace("\n", " <<END\n", 1) + "\nEND\n"


def test_one_statement_is_replaced(tmp_path: Path) -> None:
    # Two of them, one after the other: the second one keeps the first.
    words = at(14, "say('end')", "return total + 1") + at(12, "with Guard(i): total += n // (i or 2)")
    ended = run_program(tmp_path, AT, words + "patch\npass\n")
    assert ended.stdout.splitlines() == [
        *("10", "13"),
        *("+ 0", "- 0", "+ 1", "- 1", "end", "+ 0", "- 0", "+ 1", "- 1", "end"),
    ], ended.stderr
    assert "+        with Guard(i): total += n // (i or 2)   # why" in ended.stderr
    assert ended.stderr.count("+    say('end')") == 1


def test_a_statement_beside_others_is_replaced(tmp_path: Path) -> None:
    ended = run_program(
        tmp_path, AT.replace("with Guard(i): total", "pass; total"), at(12, "x = 1") + "pass\n"
    )
    assert "+ 0" not in ended.stdout
    assert "`pass` goes on at line 12 of the new code: x = 1; total += n // i" in ended.stderr
    refused = run_program(
        tmp_path, AT.replace("with Guard(i): total", "pass; total"), at(12, "x = 1", "y = 2")
    )
    assert "other statements stand on line 12" in refused.stderr
    refused = run_program(tmp_path, AT, at(15, "x = 1"))
    assert "no statement of f begins on line 15. Lines: 10, 11, 12, 13, 14." in refused.stderr


SOURCELESS = """
def f(n):
    total, kept = 0, [lambda: 1]
    for i in range(2):
        with Guard(i):
            say('a', i)
            total += n // i
    if total > 1:
        total -= missing
    return total
def g(n):
    count = 0
    def more(k):
        nonlocal count
        count += k
        return count // k
    try:
        more(n)
    finally:
        say('finally', count)
    x = int('x' * n)
    return x, count
def h(n):
    y = n // 0
    z = y
    return z
def numbers(n):
    yield 1 // n
    yield 2
print(f(6), f(8))
print(g(0), g(3))
print(h(1), h(2))
print(list(numbers(0)))
print(*log, sep='|')
"""


def run_sourceless(folder: Path, words: str, program: str = SOURCELESS) -> Ended:
    """Run a program of which there is only the compiled file."""
    source = folder / "source.py"
    source.write_text(PRELUDE + program)
    py_compile.compile(str(source), str(folder / "program.pyc"), doraise=True)
    source.unlink()
    return run_program(folder, "", words, script="program.pyc")


def test_a_statement_is_replaced_without_source(tmp_path: Path) -> None:
    words = [
        at(
            14,
            "try:",
            "    total += [k for k in (n // i,)][0]",
            "except ZeroDivisionError:",
            "    say('zero', total)",
        ),
        at(16, "tail = 5", "for tail in range(3):", "    if tail: total -= tail", "del tail"),
        "pass\n---\n",
        at(23, "count += k", "return (lambda: count)() // (k or 1)"),
        "patch\npass\n---\n",
        at(28, "x = 7"),
        "pass\n---\n",
        at(31, "if n > 1: y = n"),
        "pass\n---\n",
        "action z = 'unbound'\ngoto 33\n---\n",
        at(35, "say('generator', n)"),
        "pass\n",
    ]
    ended = run_sourceless(tmp_path, "".join(words))
    assert ended.stdout.splitlines() == [
        *("3 5", "(7, 0) (7, 3)", "unbound 2", "[2]"),
        "+ 0|a 0|zero 0|- 0|+ 1|a 1|- 1|+ 0|a 0|zero 0|- 0|+ 1|a 1|- 1|finally 0|finally 3|generator 0",
    ], ended.stderr


NOT_PLACED = {
    "a break": (at(14, "break"), "`break` and `continue` of a loop around it need source"),
    "a return in a with": (at(14, "return 1"), "a `return` cannot leave the blocks around it"),
    "a yield": (at(14, "x = yield"), "cannot have `yield` or `await`"),
    "a cell": (at(14, "later = lambda: n"), "a function in the new text uses n"),
    "no statement": (at(30, "pass"), "no statement of f begins on line 30. Lines: 10, 11, 12, 13, 14,"),
    "no Python": (at(14, "return = 1"), "this is no Python"),
    "a new local beside cells": ("frame g\n" + at(28, "y = 1"), "y would be a new local"),
}


@pytest.mark.parametrize("case", NOT_PLACED)
def test_what_cannot_be_placed_without_source_says_why(case: str, tmp_path: Path) -> None:
    words, reason = NOT_PLACED[case]
    if case == "a new local beside cells":
        words = "return 1\n---\nreturn 1\n---\n" + words
    ended = run_sourceless(tmp_path, words)
    assert reason in ended.stderr


def test_a_replaced_statement_is_taken_back_and_listed(tmp_path: Path) -> None:
    words = "return 1\n---\n" * 5 + at(31, "y = 5") + "patch\nundo\naction n = 1\npass\n"
    ended = run_sourceless(tmp_path, words)
    assert "replaced the statement of line 31 in h (1 function)" in ended.stderr
    assert "# surgery --at 31, which has no file:" in ended.stderr
    assert "# y = 5" in ended.stderr
    assert "surgery --at 31 is taken back" in ended.stderr
    assert ended.code == 1


def test_a_lambda_without_source(tmp_path: Path) -> None:
    program = "\nf = lambda n: 1 // n\nprint(f(0), f(0))\n"
    ended = run_sourceless(tmp_path, at(9, "return n + 7") + "pass\n", program)
    assert ended.stdout == "7 7\n", ended.stderr


def test_the_module_without_source(tmp_path: Path) -> None:
    program = "\nx = 3\nfor i in range(2):\n    y = x // i\n    print(y)\nprint(x, y)\n"
    ended = run_sourceless(
        tmp_path, at(11, "import math", "y = math.gcd(x, 6) + i", "x = 9") + "pass\n", program
    )
    assert ended.stdout == "3\n4\n9 4\n", ended.stderr


def test_the_list_without_source_has_names_and_constants(tmp_path: Path) -> None:
    ended = run_sourceless(tmp_path, "list\nlist all\n")
    assert "  *   14 " in ended.stderr.replace(">", " ")
    for line in (
        "  parameters: n",
        "  locals: total, kept, i",
        "  global names: range, Guard, say, missing",
    ):
        assert ended.stderr.count(line + "\n") == 2
    assert "<code of <lambda>>" in ended.stderr


CHAIN = (
    "table = {}\ndef f(n):\n    if n == 0: y = 0\n"
    + "".join(f"    elif n == {k}: y = {k} + table['missing']\n" for k in range(1, 1500))
    + "    return y\nprint(f(1400))\n"
)


def test_a_long_chain_of_branches(tmp_path: Path) -> None:
    ended = play(tmp_path, CHAIN, "table['missing'] = 1\npass")
    assert (ended.returncode, ended.stdout) == (0, "1401\n"), ended.stderr


def test_a_text_that_is_nested_too_deeply(tmp_path: Path) -> None:
    edit = "p = __import__('pathlib').Path('program.py')\n!p.write_text(p.read_text().replace('0: y = 0', '0: y = 1'))"
    ended = play(tmp_path, CHAIN, f"{edit}\nsurgery\npass")
    assert "failed inside" not in ended.stderr
    # Or there is room for it: then the run goes on, and the statement fails again.
    assert "nested more deeply than can be compared" in ended.stderr or "replaced f" in ended.stderr
    assert ended.stderr.endswith("KeyError: 'missing'\n"), ended.stderr


SAYS = """
events = []
def f(state):
    global events
    events.append("begin")
    for name in state:
        events.append(name)
        state[name] += other[name]
    return state
other = {"a": 1}
print(f({"a": 1, "b": 2}), events)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    global events\n", '    """Adds."""\n    global events\n'),
        ("    global events\n", "    global other, events\n"),
        ("    global events\n", "    global events\n    count: int\n"),
        ("    for name in state:\n", "    for name in state:\n        count: int\n"),
        ("    for name in state:\n", "    global other\n    for name in state:\n"),
    ],
)
def test_what_does_nothing_is_no_change(old: str, new: str, tmp_path: Path) -> None:
    """A docstring or a declaration that was put in is nothing to go on at, and nothing that would have to be run."""
    edited = SAYS.replace(old, new).replace("other[name]", "other.get(name, 5)")
    (tmp_path / "edited.py").write_text(edited)
    ended = play(tmp_path, SAYS, "surgery edited.py\npass")
    assert ended.stdout == "{'a': 2, 'b': 7} ['begin', 'a', 'b']\n", ended.stderr
    assert "ran already" not in ended.stderr
    assert "run again" not in ended.stderr
