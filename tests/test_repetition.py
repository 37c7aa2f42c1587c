"""Retries that change nothing are noticed; a block that answers all holds is not repeated for ever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daifu_bc.errors import UsageError
from daifu_bc.frontends.playbook import PlaybookError, parse_playbook
from daifu_bc.recovery import repetition
from tests.playing import play

#: `flaky(n)` fails n times, each time with another number in its message.
#: It is a library's, and so not held itself.
FLAKY = """
count, scope = [0], {}
exec(compile('''
def flaky(times):
    if count[0] < times:
        count[0] += 1
        raise OSError(f'attempt {count[0]} at 0x{id(count):x} failed')
    count[0] = 0
    return 'got'
''', '<library>', 'exec'), scope)
scope['count'] = count
flaky = scope['flaky']
"""
STUBBORN = FLAKY + "def work():\n    x = 1\n    return flaky(9)\nprint(work())\n"
AGAIN = "Again: the same error at the same place; it has been retried {} with nothing changed."
GIVEN_UP = (
    "3 retries in a row have changed nothing, so the block of line 2 is not repeated. The exception goes on."
)


def test_a_block_that_answers_all_gives_up(tmp_path: Path) -> None:
    """The number in the message is another each time."""
    words = "repeat\npass"
    ended = play(tmp_path, STUBBORN, words, DAIFU_JOURNAL="journal")
    assert (ended.returncode, ended.stdout) == (1, ""), ended.stderr
    assert GIVEN_UP in ended.stderr
    assert ended.stderr.count("-- daifu: hold ") == 4
    assert [AGAIN.format(times) in ended.stderr for times in ("once", "2 times", "3 times", "4 times")] == [
        True,
        True,
        True,
        False,
    ]
    entries = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    assert [entry["again"] for entry in entries if "again" in entry] == [1, 2, 3]
    assert entries[-1]["event"] == "raise"
    assert entries[-1]["outcome"] == "3 retries in a row have changed nothing"


def test_a_retry_from_further_out_counts_too(tmp_path: Path) -> None:
    ended = play(tmp_path, STUBBORN.replace("return flaky", "return inner").replace("def work", INNER), OUTER)
    assert (ended.returncode, ended.stderr.count("-- daifu: hold ")) == (1, 4), ended.stderr
    assert AGAIN.format("3 times") in ended.stderr


INNER = "def inner(times): return flaky(times)\ndef work"
OUTER = "repeat\nframe work\npass"
ALWAYS = "def f(x):\n    return [x][x]\nprint(f(1))\n"


@pytest.mark.parametrize(
    ("variables", "holds"),
    [({}, 4), ({"DAIFU_RETRY_LIMIT": "1"}, 2), ({"DAIFU_RETRY_LIMIT": "7"}, 8)],
    ids=["by itself", "1", "7"],
)
def test_the_limit_is_settable(variables: dict[str, str], holds: int, tmp_path: Path) -> None:
    ended = play(tmp_path, ALWAYS, "repeat\npass", **variables)
    assert (ended.returncode, ended.stderr.count("-- daifu: hold ")) == (1, holds), ended.stderr


def test_the_limit_of_the_project_and_none(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.daifu]\nretry-limit = 2\n")
    ended = play(tmp_path, ALWAYS, "repeat\npass")
    assert (ended.returncode, ended.stderr.count("-- daifu: hold ")) == (1, 3), ended.stderr
    ended = play(tmp_path, STUBBORN, "repeat\npass", DAIFU_RETRY_LIMIT="none")
    assert (ended.returncode, ended.stdout) == (0, "got\n"), ended.stderr


@pytest.mark.parametrize("words", ["repeat 9\npass", "---\n".join(["pass\n"] * 9)], ids=["number", "list"])
def test_blocks_that_a_person_has_counted_are_all_played(words: str, tmp_path: Path) -> None:
    ended = play(tmp_path, STUBBORN, words)
    assert (ended.returncode, ended.stdout) == (0, "got\n"), ended.stderr
    assert ended.stderr.count("-- daifu: hold ") == 9


TRANSIENT = {
    "in a loop of the frame itself": "for i in range(8):\n    print(flaky(2))\n",
    "in a function": (
        "def work():\n    got = []\n    for batch in iter(list, None):\n"
        "        got.append(flaky(1))\n        if len(got) == 8: return got\nprint(len(work()))\n"
    ),
    "in a function that is called anew": (
        "def one(): return flaky(2)\ndef work():\n    return [one() for _ in range(8)]\nprint(len(work()))\n"
    ),
}


@pytest.mark.parametrize("case", TRANSIENT)
def test_errors_that_a_retry_does_away_with_may_come_again_and_again(case: str, tmp_path: Path) -> None:
    ended = play(tmp_path, FLAKY + TRANSIENT[case], "repeat\npass")
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("-- daifu: hold ") in (8, 16)


HALVED = """
def fits(batch):
    if len(batch) > 2: raise MemoryError('too large')
    return len(batch)
def work():
    batch = list(range(64))
    return fits(batch)
print(work())
"""


def test_an_action_that_changes_a_variable_is_no_repetition(tmp_path: Path) -> None:
    ended = play(tmp_path, HALVED, "repeat\nframe work\naction batch = batch[::2]\npass")
    assert (ended.returncode, ended.stdout) == (0, "2\n"), ended.stderr
    assert ended.stderr.count("-- daifu: hold ") == 5
    assert "Again:" not in ended.stderr


def test_an_action_that_changes_none_is_counted_but_not_told(tmp_path: Path) -> None:
    ended = play(tmp_path, ALWAYS, "repeat\naction print('hello')\npass")
    assert (ended.returncode, ended.stderr.count("-- daifu: hold ")) == (1, 4), ended.stderr
    assert "Again:" not in ended.stderr


def test_another_error_or_another_place_is_no_repetition(tmp_path: Path) -> None:
    program = (
        "count = [0]\n"
        "def f():\n"
        "    count[0] += 1\n"
        "    if count[0] % 2: raise KeyError('odd')\n"
        "    raise ValueError('even')\n"
        "f()\n"
    )
    ended = play(tmp_path, program, "repeat 6\nframe <module>\npass")
    assert ended.stderr.count("-- daifu: hold ") == 7
    assert "Again:" not in ended.stderr


KEPT = """
import gc, weakref
class Thing: pass
class Failed(Exception): pass
alive = []
def f(thing):
    values = [thing]
    error = Failed('always')
    alive.append(weakref.ref(error))
    alive.append(weakref.ref(thing))
    raise error
def run():
    f(Thing())
try: run()
except ValueError: pass
for _ in range(3): gc.collect()
print([one() for one in alive])
from daifu_bc.recovery import retries
print(len(retries._retries) <= 1)
"""


def test_nothing_is_kept_alive(tmp_path: Path) -> None:
    ended = play(tmp_path, KEPT, "pass\n---\npass\n---\nframe run\nskip")
    assert (ended.returncode, ended.stdout) == (0, "[None, None]\nTrue\n"), ended.stderr


def test_what_is_remembered_is_bounded(tmp_path: Path) -> None:
    program = (
        "def f(x): return [x][x]\n"
        "for number in range(100):\n"
        "    exec(compile('\\n' * number + 'y = f(1)', f'<{number}>', 'exec'), {'f': f})\n"
        "from daifu_bc.recovery import retries\n"
        "print(len(retries._retries))\n"
    )
    # Each of the errors is retried once, and then left.
    ended = play(tmp_path, program, "---\n".join(["pass\n", "return 0\n"] * 100))
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) <= 64


MISTAKES = {
    "repeat\npass\n---\nraise": "book:1: the blocks after this one are never reached",
    "repeat 0\npass": "book:1: a block cannot answer no hold",
    "repeat 2\n---\npass": "book:1: there is nothing in the block that is repeated",
    "p 1\nrepeat 2\npass": "book:2: `repeat 2` stands at the beginning of a block",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_told_before_the_program_starts(text: str) -> None:
    with pytest.raises(PlaybookError) as raised:
        parse_playbook(text, "book")
    assert MISTAKES[text] in str(raised.value)


def test_counted_blocks_come_one_after_the_other(tmp_path: Path) -> None:
    program = "def f(x): return [x][x]\nprint(f(1), f(1), f(1), f(1))\n"
    ended = play(tmp_path, program, "repeat 2\nreturn 'a'\n---\nreturn 'b'\n---\nrepeat\nreturn 'c'")
    assert (ended.returncode, ended.stdout) == (0, "a a b c\n"), ended.stderr


@pytest.mark.parametrize("text", ["0", "-1", "some", "1.5"])
def test_a_limit_that_is_none(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        repetition.checked(text)
    ended = play(tmp_path, "print('run')", "pass", DAIFU_RETRY_LIMIT=text)
    assert (ended.returncode, ended.stdout) == (2, "")


LETS_GO = """
import weakref
class Thing: pass
refs, state = [], []
def inner(thing):
    refs.append(weakref.ref(thing))
    return 10 // len(state)
def outer():
    thing = Thing()
    result = inner(thing)
    del thing
    print('alive', refs[-1]() is not None)
    return result
print(outer())
"""


def test_frames_further_out_keep_nothing_that_was_looked_at(tmp_path: Path) -> None:
    run = play(tmp_path, LETS_GO, "pass\n---\nstate.append(1)\npass\n")
    assert run.stdout.splitlines()[-2:] == ["alive False", "10"]


LOCAL_CLASS = """
import gc, weakref
table = {}
class Thing:
    def look(self): return table['missing']
seen = weakref.ref(Thing)
thing = Thing()
print(thing.look())
del thing, Thing
gc.collect()
print(seen())
"""


@pytest.mark.parametrize("words", ["table['missing'] = 1\npass", "return 1"])
def test_the_class_of_a_held_method_is_not_kept(words: str, tmp_path: Path) -> None:
    ended = play(tmp_path, LOCAL_CLASS, words)
    assert (ended.returncode, ended.stdout) == (0, "1\nNone\n"), ended.stderr
