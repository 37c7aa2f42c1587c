"""`daifu_bc.surgery`: the program replaces its own functions, while nothing is held."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from daifu_bc import pyversion
from tests.playing import play, python


def printed(folder: Path, program: str, words: str | None = None, **variables: str) -> list[str]:
    """What a program prints that ends well."""
    ended = play(folder, program, words, **variables)
    assert ended.returncode == 0, ended.stderr
    assert "daifu_bc: internal error" not in ended.stderr, ended.stderr
    return ended.stdout.splitlines()


CALLER = """
import daifu_bc
def loop():
    log = []
    for i in range(4):
        if i == 1:
            print(daifu_bc.surgery("loop", NEW))
        log.append(i)
    return log
NEW = '''
def loop():
    log = []
    for i in range(4):
        if i == 1:
            print(daifu_bc.surgery("loop", NEW))
        log.append(i * 10)
    return log, 'new'
'''
print(loop())
"""


def test_the_caller_itself_goes_on_in_its_new_body(tmp_path: Path) -> None:
    assert printed(tmp_path, CALLER) == [
        "replaced loop (1 function)",
        "another active frame goes on in the new body at the next statement",
        "([0, 10, 20, 30], 'new')",
    ]


THREAD = """
import threading, daifu_bc
stop, out = [], []
def spin():
    n = 0
    with open(__file__) as file:
        started.set()
        while not stop: n += 1
        out.append(('left', file.closed))
started = threading.Event()
thread = threading.Thread(target=spin, daemon=True)
thread.start()
started.wait(20)
daifu_bc.surgery("spin", '''
def spin():
    n = 0
    with open(__file__) as file:
        started.set()
        while n < 0: n += 1
        out.append(('mended', file.closed))
''')
thread.join(20)
print(out)
"""


def test_a_tight_loop_in_another_thread_goes_on_in_its_new_body(tmp_path: Path) -> None:
    assert printed(tmp_path, THREAD) == ["[('mended', False)]"]


EVERYWHERE = """
import functools, daifu_bc
def step(x): return x + 1
def scaled(k):
    def inner(x): return x * k
    return inner
def numbers():
    for i in range(3):
        yield i
class C:
    def m(self): return 'old'
alias, partial, cached = step, functools.partial(step, 1), functools.lru_cache(step)
twice, thrice, bound = scaled(2), scaled(3), C().m
waiting = numbers()
next(waiting)
daifu_bc.surgery(step, "def step(x): return x + 100")
daifu_bc.surgery("scaled.inner", "def inner(x): return -x * k")
daifu_bc.surgery("C.m", "def m(self): return 'new'")
daifu_bc.surgery(numbers, "def numbers():\\n    for i in range(3):\\n        yield i * 7\\n")
print(alias(1), partial(), cached(1), twice(1), thrice(1), bound())
print(list(waiting), list(numbers()))
for _ in range(4): daifu_bc.undo()
print(alias(1), partial(), step is alias, twice(1), thrice(1), bound(), list(numbers()))
try: daifu_bc.undo()
except daifu_bc.Refusal as error: print(error)
"""


def test_it_reaches_every_function_and_is_taken_back(tmp_path: Path) -> None:
    waiting = "[7, 14]" if pyversion.HAS_MONITORING else "[1, 2]"
    assert printed(tmp_path, EVERYWHERE) == [
        "101 101 101 -2 -3 new",
        f"{waiting} [0, 7, 14]",
        "2 2 True 2 3 old [0, 1, 2]",
        "there is no surgery to take back",
    ]


HELPER = "def f(x):\n    return x + 1\n\n\ndef g():\n    return f(1)\n"

DISK = """
import pathlib, daifu_bc, helper
path = pathlib.Path(helper.__file__)
path.write_text(path.read_text().replace('x + 1', 'x + 50') + 'def more(): return 5\\n')
print(daifu_bc.surgery(check=True))
print(helper.g())
print(daifu_bc.surgery())
print(helper.g(), helper.more())
print(daifu_bc.surgery(), repr(daifu_bc.patch()))
print(daifu_bc.undo())
print(helper.g(), hasattr(helper, 'more'))
"""


def test_from_disk_it_takes_every_vaccinated_file(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    assert printed(tmp_path, DISK) == [
        "would replace f (1 function)",
        "would add more",
        "2",
        "replaced f (1 function)",
        "added more",
        "51 5",
        "nothing has changed ''",
        "surgery is taken back",
        "2 False",
    ]


def test_the_word_takes_them_too(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    program = "import helper\nprint(helper.f(1))\nprint(1 / 0 if helper.f(1) == 2 else 'mended')\n"
    words = (
        f"action from pathlib import Path; Path('helper.py').write_text({HELPER.replace('+ 1', '+ 7')!r})\n"
    )
    assert printed(tmp_path, program, f"{words}surgery\npass") == ["2", "mended"]


def test_a_file_and_a_module(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "fixed.py").write_text(HELPER.replace("x + 1", "x + 7"))
    program = (
        "import daifu_bc, helper\n"
        "print(daifu_bc.surgery('fixed.py', module=helper))\n"
        "print(helper.g())\n"
        "print(daifu_bc.patch())\n"
    )
    lines = printed(tmp_path, program)
    assert lines[:2] == ["replaced f (1 function)", "8"]
    assert [line for line in lines if line[:2] in ("-r", "+r", "- ", "+ ")] == [
        "-    return x + 1",
        "+    return x + 7",
    ]


LINE = """
import daifu_bc
def f(x):
    y = x + 1
    return y
def here():
    x = 1
    daifu_bc.surgery(at=8 + 1, source="y = x * 5")
    y = x
    return y
print(daifu_bc.surgery("f", "y = x - 1", at=4), f(10))
print(daifu_bc.surgery(f, "y = -x", at=4), f(10))
print(here(), here())
scope = {}
exec(compile("def typed(a):\\n    b = a + 1\\n    return b\\n", "<typed>", "exec"), scope)
print(daifu_bc.surgery(scope["typed"], "b = a * 9", at=2), scope["typed"](2))
"""


def test_one_statement_with_and_without_source(tmp_path: Path) -> None:
    assert printed(tmp_path, LINE) == [
        "replaced f (1 function) 9",
        "replaced f (1 function) -10",
        "5 5",
        "replaced the statement of line 2 in typed (1 function) 18",
    ]


REFUSED = """
import daifu_bc
def f(): return 'old'
def tell(*arguments, **more):
    try: print(daifu_bc.surgery(*arguments, **more))
    except daifu_bc.DaifuError as error: print(type(error).__name__, error)
tell('nofile.py')
tell('nothing', 'def nothing(): pass')
tell('f', 'def g(): pass')
tell('f', 'def f(:')
tell('f', 'pass', at=77)
tell(module='no.module')
tell(source='x')
tell(at=3)
tell(f)
tell(print, 'x')
tell(f, 'x', module='m')
print(f())
"""


def test_what_cannot_be_is_said_and_changes_nothing(tmp_path: Path) -> None:
    starts = (
        "Refusal there is no file nofile.py. To give a new definition",
        "Refusal nothing is no function that can be found from here.",
        "Refusal the new text does not define f.",
        "Refusal the new text is not valid Python (at <surgery>:1)",
        "Refusal no statement of f begins on line 77. Lines: 3.",
        "Refusal no module no.module is loaded",
        "UsageError `source` needs a `target`",
        "UsageError `at` goes with `source`",
        "UsageError a function as the `target` needs",
        "UsageError the target is no Python function, but builtin_function_or_method",
        "UsageError `module` goes with a file",
        "old",
    )
    lines = printed(tmp_path, REFUSED)
    assert [line[: len(start)] for line, start in zip(lines, starts, strict=True)] == list(starts)


HELD = """
import daifu_bc
def f(): return 1
def run():
    return f() / 0
daifu_bc.surgery("f", "def f(): return 2")
print(run())
print(f())
"""


def test_a_later_hold_undoes_it_and_shows_it_in_its_patch(tmp_path: Path) -> None:
    ended = play(tmp_path, HELD, "patch\nundo\nreturn f()", DAIFU_JOURNAL="journal")
    assert (ended.returncode, ended.stdout) == (0, "1\n1\n"), ended.stderr
    assert "+def f(): return 2" in ended.stderr
    assert "surgery f is taken back" in ended.stderr
    entries = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    first = entries[0]
    assert (first["event"], first["code"], first["outcome"], first["line"]) == (
        "surgery",
        "def f(): return 2",
        "done",
        6,
    )
    assert [entry["event"] for entry in entries[1:]] == ["held", "undo", "return", "running again"]


def test_an_action_says_the_word_instead(tmp_path: Path) -> None:
    words = "action import daifu_bc; print('told')\np daifu_bc.surgery('f', 'def f(): return 2')\nreturn f()"
    ended = play(tmp_path, HELD.replace("daifu_bc.surgery", "# "), words)
    assert "this thread is held. Say the word `surgery` at the prompt." in ended.stderr


def _plain(folder: Path, program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A program that is not started by `daifu`."""
    (folder / "program.py").write_text(program)
    return python(folder, ["program.py"], **variables)


EDITED_FIRST = """
import pathlib, helper
stack = helper.waits()
next(stack)
path = pathlib.Path('helper.py')
path.write_text('# moved\\n' + path.read_text().replace('x + 1', 'x + 30').replace("'old'", "'new'"))
import daifu_bc
{vaccinate}
print(daifu_bc.surgery({arguments}))
print(helper.f(1), next(stack), next(helper.waits()), repr(daifu_bc.patch()))
"""
WAITS = "\n\ndef waits():\n    while True:\n        yield 'old'\n"


@pytest.mark.parametrize(
    ("vaccinate", "arguments"),
    [("", "module=helper"), ("daifu_bc.vaccinate(scope='function')(helper.f)", "")],
    ids=["never vaccinated", "vaccinated after the edit"],
)
def test_a_file_that_was_edited_before_anything_was_vaccinated(
    vaccinate: str, arguments: str, tmp_path: Path
) -> None:
    (tmp_path / "helper.py").write_text(HELPER + WAITS)
    ended = _plain(tmp_path, EDITED_FIRST.format(vaccinate=vaccinate, arguments=arguments))
    assert ended.stdout.splitlines() == [
        "replaced f (1 function), waits (1 function)",
        "waits was not vaccinated: a frame that runs it now keeps the old body, the next call has the new one",
        "31 old new ''",
    ], ended.stderr


def test_a_cell_of_a_notebook(tmp_path: Path) -> None:
    """Code from `exec`, whose text only linecache has."""
    program = (
        "import linecache, daifu_bc\n"
        "scope = {'__name__': 'cells'}\n"
        "def cell(number, text):\n"
        "    name = f'<cell {number}>'\n"
        "    linecache.cache[name] = (len(text), None, text.splitlines(True), name)\n"
        "    exec(compile(text, name, 'exec'), scope)\n"
        "cell(1, 'import daifu_bc\\n@daifu_bc.vaccinate(scope=\"function\")\\ndef f(x):\\n    return x + 1\\n')\n"
        'cell(2, \'first = f(1)\\nsaid = daifu_bc.surgery("f", "def f(x): return x + 9")\\nsecond = f(1)\\n\')\n'
        "print(scope['first'], scope['said'], scope['second'])\n"
    )
    ended = _plain(tmp_path, program)
    assert ended.stdout == "2 replaced f (1 function) 10\n", ended.stderr


def test_where_daifu_is_turned_off_it_says_so(tmp_path: Path) -> None:
    program = (
        "import daifu_bc\ndef f(): return 1\n"
        "try: daifu_bc.surgery(f, 'def f(): return 2')\n"
        "except daifu_bc.Refusal as error: print(error, f())\n"
    )
    ended = _plain(tmp_path, program, DAIFU_DISABLE="1")
    assert ended.stdout == "daifu_bc is turned off, or does not know this Python, and replaces nothing 1\n"
