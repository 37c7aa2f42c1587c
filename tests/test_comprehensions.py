"""Comprehensions whose variable has the name of another one, in modules, classes and functions."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.playing import play

#: `i` and `k` are variables of the namespace, and of comprehensions that are inlined from 3.12 on.
BODY = """
seen = []
k = 'kept'
for i in (1, 2):
    seen.append((i, table['missing']))
    seen.append('behind')
squares = [i * i for i in (3, 4)]
pairs = {k: [i for i in range(k)] for k in (1, 2)}
values.append((i, k, seen, squares, pairs))
"""

IN = {
    "module": "table, values, seen = {}, [], []\nBODY\nprint(values)\n",
    "class": "table, values, seen = {}, [], []\nclass C:\nINDENTED\nprint(values)\n",
    "function": "table, values, seen = {}, [], []\ndef f():\nINDENTED\nf()\nprint(values)\n",
}

REST = "[9, 16], {1: [0], 2: [0, 1]})]\n"

WORDS = {
    "pass": ("table['missing'] = 0\npass", "[(2, 'kept', [(1, 0), 'behind', (2, 0), 'behind'], " + REST),
    "skip": ("skip\n---\nskip", "[(2, 'kept', ['behind', 'behind'], " + REST),
    "skip body": ("skip body\n---\nskip body", "[(2, 'kept', [], " + REST),
    "skip loop": ("skip loop", "[(1, 'kept', [], " + REST),
    "a line": ("goto LINE\n---\nskip loop", "[(2, 'kept', ['behind'], " + REST),
    "surgery": (
        "surgery --at AT <<END\nseen.append([i for i in (7,)])\nEND\npass",
        "[(2, 'kept', [[7], 'behind', [7], 'behind'], " + REST,
    ),
}


@pytest.mark.parametrize("where", IN)
@pytest.mark.parametrize("way", WORDS)
def test_a_variable_of_the_same_name_outside(way: str, where: str, tmp_path: Path) -> None:
    program = IN[where].replace("BODY", BODY).replace("INDENTED", textwrap.indent(BODY, "    "))
    at = next(number for number, line in enumerate(program.splitlines(), 1) if "'missing'" in line)
    words, printed = WORDS[way]
    ended = play(tmp_path, program, words.replace("LINE", str(at + 1)).replace("AT", str(at)))
    assert (ended.returncode, ended.stdout) == (0, printed), ended.stderr


INSIDE = """
i = 'outer'
for attempt in (1,):
    found = [seen.append(i) or table[i] for i in range(3)]
values.append((i, attempt, found, seen))
"""


@pytest.mark.parametrize("where", IN)
def test_the_crash_is_in_the_comprehension(where: str, tmp_path: Path) -> None:
    program = IN[where].replace("BODY", INSIDE).replace("INDENTED", textwrap.indent(INSIDE, "    "))
    ended = play(tmp_path, program, "table.update({0: 'a', 1: 'b', 2: 'c'})\npass")
    # The statement is run again as a whole.
    assert ended.stdout == "[('outer', 1, ['a', 'b', 'c'], [0, 0, 1, 2])]\n", ended.stderr


CLOSURE = """
table, values = {}, []
def outer(i, k):
    def inner():
        nonlocal k
        x = [i for i in (i, 8)]
        k = [k for k in range(k)][-1]
        y = table['missing']
        z = [i for i in (i, 9)] + [i + table['inside'] for i in (i,)]
        values.append((i, k, x, y, z))
    inner()
    return i, k
print(outer(1, 3), values)
"""


def test_a_variable_of_the_same_name_in_a_function_around(tmp_path: Path) -> None:
    words = "table['missing'] = 5\npass\n---\ntable['inside'] = 7\npass"
    ended = play(tmp_path, CLOSURE, words)
    assert ended.stdout == "(1, 2) [(1, 2, [1, 8], 5, [1, 9, 8])]\n", ended.stderr
    assert ended.stderr.count("<- held") == 2
    assert ended.stderr.count("outer.<locals>.inner  program.py:8   <- held") == 1
