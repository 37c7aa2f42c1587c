"""The words that go on, on whole programs: what they print is worked out by hand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import oracles

RETURN = """
log = []
def through_with(n):
    for i in range(3):
        try:
            with open('/dev/null') as f:
                x = 1 // n
                log.append('never')
        finally:
            log.append(('finally', i))
    return 'end'
def through_two(n):
    try:
        try:
            y = 1 // n
        finally:
            log.append('inner')
    finally:
        log.append('outer')
def generator(n):
    try:
        yield 1
        yield 2 // n
    finally:
        log.append('generator')
class Some:
    def method(self, n):
        try:
            return 5 // n
        finally:
            log.append(super().__repr__()[:4])
print(through_with(0)); print(through_two(0)); print(list(generator(0))); print(Some().method(0)); print(log)
"""

CLAUSE_IN_LOOP = """
class Numbers:
    def __init__(self):
        self.last = 0
    def __iter__(self):
        return self
    def __next__(self):
        self.last += 1
        if self.last == 2: raise OSError
        return self.last
def in_finally():
    try:
        print('body')
    finally:
        for number in Numbers():
            try: print(number)
            except KeyError: print('never')
        print('behind')
    return 'end'
def in_handler():
    try:
        raise LookupError
    finally:
        for number in Numbers():
            try: print(number)
            except KeyError: print('never')
        print('behind')
print(in_finally())
try: in_handler()
except LookupError: print('still raised')
for number in Numbers():
    try: print(number)
    except KeyError: print('never')
print("behind the module's loop")
"""

FUSED = """
from flaky import bad, calls
def f(k):
    calls.append(k)
    return k
def two_on_a_line():
    x = f(1); y = x + bad(2); z = y
    return x, y, z
def header_and_body(lists):
    for x in lists: x.append(bad(3))
    return lists
def unbound(p):
    q = bad(4)
    return q, p
print(two_on_a_line()); print(header_and_body([[], []])); print(unbound(5)); print(calls)
"""

# Lies outside of the program's folder, and is not vaccinated.
FLAKY = """
calls = []
seen = set()
def bad(k):
    if k not in seen:
        seen.add(k)
        raise ValueError(k)
    calls.append(k)
    return k
class Sound:
    def __init__(self, fails): self.fails = fails
    def __enter__(self): print('enter'); return self
    def __exit__(self, *exc):
        if self.fails:
            self.fails = False
            raise OSError('disk full')
        print('exit', exc[0])
def true_once_mended(k):
    bad(k)
    return True
def numbers():
    yield 1
    raise RuntimeError('no more')
"""

LOCALS = """
def outer(n):
    q = 0
    def inner():
        return q + n
    def show(): return n
    r = 1 // q
    return r, inner(), n, show()
class Body:
    a = 0
    b = 1 // a
def generator():
    z = 0
    yield 1
    yield 5 // z
print(Body.b, Body.a); print(outer(3)); print(list(generator()))
d = 0
print(7 // d)
"""

EXIT = """
from flaky import Sound
def run():
    for i in (1, 2):
        with Sound(i == 1):
            print('inside', i)
    return 'done'
print(run())
"""

ENDED = """
from flaky import numbers
def run():
    total = 0
    for n in numbers():
        total += n
    return total
print(run())
"""

HANDLERS = """
import asyncio
from flaky import bad, true_once_mended
def in_finally():
    try: 1 / 0
    finally:
        try: bad('in finally')
        except OSError: pass
        print('finally')
try: in_finally()
except ZeroDivisionError: print('ZeroDivisionError')
def in_except():
    try: raise ValueError
    except ValueError:
        try: bad('in except')
        except TypeError: print('no')
        print('after')
in_except()
"""

CLOSED = """
from flaky import bad
events = []
def generator():
    bad('first')
    try: yield 1
    finally:
        events.append('a'); bad('second'); events.append('b')
running = generator(); next(running); running.close(); print(events)
"""

AWAITED = """
import asyncio
from flaky import bad, true_once_mended
async def numbers():
    for i in range(3): yield i
async def five(): return 5
async def main():
    found = [x async for x in numbers() if true_once_mended(x)]
    await asyncio.sleep(0)
    print(len(found), bad(await five()))
asyncio.run(main())
"""

DEFAULTS = """
from flaky import bad
STEP = 10
def f(a):
    bad('f')
    return a
print(f(1))
print(f(2))
"""

LAST = """
from flaky import bad
def named():
    try: raise KeyError('k')
    except KeyError as error:
        print('in', error)
        bad('named')
    return 'named'
def unnamed():
    for i in (1, 2):
        try: raise KeyError('k')
        except KeyError:
            bad('unnamed')
    return i
def group():
    try: raise ExceptionGroup('g', [KeyError('k')])
    except* KeyError as error:
        bad('group')
    return 'group'
print(named(), unnamed(), group())
"""

LOOPS = """
def run(items):
    done = []
    for item in items:
        with open('/dev/null') as sink:
            done.append(10 // item)
        done.append('after')
    return done
print(run([5, 0, 2]))
"""

COPIES = """
def run(last):
    try:
        for i in range(3):
            try:
                if i == 1:
                    continue
                if i == last:
                    raise KeyError(i)
                print('try', i)
            finally:
                x = 1 // (2 - i)
                print('finally', i)
                print('end', i)
            print('after', i)
    except KeyError as error:
        print('error', error)
run(9)
run(2)
"""


def run(folder: Path, program: str, playbook: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "pyproject.toml").touch()  # so that the project ends here
    (folder / "program.py").write_text(program)
    (folder / "playbook").write_text(playbook)
    library = folder.parent / f"{folder.name}-library"
    library.mkdir(exist_ok=True)
    (library / "flaky.py").write_text(FLAKY)
    path = os.pathsep.join([str(library), os.environ.get("PYTHONPATH", "")])
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        *options,
        "-m",
        "daifu_bc",
        "run",
        "--playbook",
        "playbook",
        "program.py",
    ]
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )


MATCH = """
from flaky import bad
def sort(things):
    match next(things):
        case 0 | 1: x = bad('small')
        case [first, *rest]:
            x = bad(('list', first, *rest))
        case {'key': item}:
            x = bad(('map', item))
        case str() as text if text:
            x = bad(('text', text))
        case _: x = bad('other')
    return x
def run():
    for thing in (1, [1, 2], {'key': 3}, 'abc', None):
        print(sort(iter([thing])))
run()
"""

RAISED_BEFORE = """
kept = []
class Own(Exception): pass
def fill(kind):
    try:
        raise kind('kept')
    except kind as error:
        kept.append(error)
def work(n):
    return 1 // n
def run(n):
    try:
        return work(n)
    finally:
        print('finally')
def outer(kind):
    fill(kind)
    with open('/dev/null'):
        return run(0)
import traceback
try: outer(KeyError)
except KeyError as error: print([entry.name for entry in traceback.extract_tb(error.__traceback__)])
outer(ValueError)
"""
ELEMENTS = """
import asyncio
from flaky import bad
def loop(items):
    total = 0
    for a, b in items:
        total += a * b
    return total
print(loop([(1, 2), 5, (3, 4)]))
print(loop(iter([(1, 2), 5, (3, 4)])))
async def several():
    for x in ((1, 2), 5, (3, 4)): yield x
async def asynchronous():
    async for a, b in several():
        print(a, b)
    else:
        print('else')
asyncio.run(asynchronous())
print(list(a for a, b in [(1, 2), 5, (3, 4)]))
def parked():
    for x in (1, 2):
        try: return 'value'
        finally:
            bad('parked')
            print('finally', x)
print(parked())
"""
CELLS = """
from flaky import bad
def merged(bases):
    for base in bases:
        any(b is base for b in bases)
    found = [bad(('in', base)) for base in bases]
    return found, bad(('behind', base))
def argument(a):
    i = 7
    kept = lambda: i
    x = bad(len([bad(('argument', i)) for i in a]))
    return x, sorted([i for i in a], key=bad('key') and None), kept(), bad(i)
def parameter(a):
    def show(): return a
    b = [a for a in a]
    bad('parameter')
    return b, show()
def both(a):
    for one in a:
        with open('/dev/null') as two:
            later = lambda: (one, two.name)
            try:
                found = [(one, two) for one in a for two in range(len(bad(('both', one))))]
            finally:
                bad(('finally', one))
    return found, later(), {one: bad(('dict', one)) for one in a}
class Body:
    x = 1
    y = [bad(('class', x)) for x in range(2)]
    z = [one() for one in [lambda: x for x in range(2)]]
    w = bad(x)
print(merged((1, 2)))
print(argument([2, 1]))
print(parameter([3, 4]))
print(both([1, 2])[1:])
print(Body.y, Body.z, Body.w)
"""
ASYNC_WITH = """
import asyncio
from flaky import bad
class Manager:
    def __init__(self, name, error=None): self.name, self.error = name, error
    async def __aenter__(self): return self
    async def __aexit__(self, *exc):
        await asyncio.sleep(0)
        print('exit', self.name, exc[1])
        if self.error:
            raise self.error
async def loop():
    for i in (1, 2):
        async with Manager('loop') as manager:
            bad('loop')
            print('inside', i)
        print('behind', i)
    return 'looped'
async def nested(n):
    try:
        async with Manager('outer'):
            with open('/dev/null'):
                async with Manager('inner', KeyError('failed') if n else None):
                    bad('nested' + str(n))
            print('never')
    except KeyError as error:
        print('caught', error)
    return 'went on'
async def generator():
    async with Manager('generator'):
        yield 1
        bad('generator')
    yield 2
async def cancelled():
    async with Manager('cancelled'):
        bad('cancelled')
async def main():
    print(await loop())
    print(await nested(0))
    print(await nested(1))
    print([x async for x in generator()])
    task = asyncio.ensure_future(cancelled())
    await asyncio.sleep(0)
    task.cancel()
    try: await task
    except asyncio.CancelledError: print('cancelled')
asyncio.run(main())
"""
FAILING_EXIT = """
from flaky import bad
class Manager:
    def __enter__(self): return self
    def __exit__(self, *exc):
        print('exit', exc[1])
        raise KeyError('failed')
def run():
    try:
        with Manager():
            bad('inside')
        print('never')
    except KeyError as error:
        print('caught', error)
    return 'went on'
print(run())
"""

#: What `COPIES` prints up to the crash.
BEFORE = "try 0\nfinally 0\nend 0\nafter 0\nfinally 1\nend 1\n"

LOOP_BEFORE_FINALLY = """\
def again(n):
    try:
        i = 0
        while i < 2:
            1 // n
            i += 1
    finally:
        print('fin', i)
    return 5
def known(n):
    try:
        i = 1 // n
    finally:
        print('fin', n)
    return 5
def inside(n):
    try:
        try:
            for i in range(3):
                try:
                    1 // n
                finally:
                    print('inner', i)
        finally:
            print('fin')
    finally:
        print('outer')
    return 6
print(again(0))
print(known(0))
print(inside(0))
"""

CLAUSE_AROUND_FINALLY = """\
import warnings
warnings.simplefilter('error')
def f(n):
    try:
        try:
            try:
                pass
            finally:
                1 // n
        except BaseException:
            print('a clause')
            raise
    finally:
        print('fin')
print(f(0))
"""

END_OF_FINALLY = """\
def bad(n): return 1 // n
def several(n):
    try:
        missing
    finally:
        print('fin 0')
        1 // n
def alone(n):
    try:
        missing
    finally:
        1 // n
def compound(n):
    try:
        missing
    finally:
        print('fin 2')
        if bad(n):
            pass
def without(n):
    try:
        x = 3
    finally:
        print('fin 3')
        1 // n
    return x
def inner(n):
    try:
        try:
            missing
        finally:
            [n][1]
    finally:
        print('fin 4')
for f in several, alone, compound, without, inner:
    try:
        value = f(0)
        print(value)
    except NameError as error:
        print('caught', error.name)
"""

CASES = {
    "return through finally": (
        RETURN,
        "return 41 + i\n---\nreturn\n---\nreturn 7\n---\nreturn n + 8\n",
        "41\nNone\n[1]\n8\n[('finally', 0), 'inner', 'outer', 'generator', '<__m']\n",
    ),
    "pass in the middle of an instruction": (
        FUSED,
        "pass\n---\npass\n---\npass\n",
        "(1, 3, 3)\n[[3], [3]]\n(4, 5)\n[1, 2, 3, 3, 4]\n",
    ),
    "an unbound local is unbound after skip": (
        FUSED,
        "pass\n---\nskip\n---\nskip\n---\nreturn 'was unbound'\n",
        "(1, 3, 3)\n[[], [3]]\nwas unbound\n[1, 2, 3]\n",
    ),
    "actions change locals, cells, class bodies and globals": (
        LOCALS,
        "action a = 4\npass\n---\naction q = 2; n = 9\npass\n---\naction z = 5\npass\n---\naction d = 7\npass\n",
        "0 4\n(0, 11, 9, 9)\n[1, 1]\n1\n",
    ),
    "an exit that failed is called again": (
        EXIT,
        "pass\n",
        "enter\ninside 1\nexit None\nenter\ninside 2\nexit None\ndone\n",
    ),
    "skip behind a with whose exit failed": (
        EXIT,
        "skip\n",
        "enter\ninside 1\nenter\ninside 2\nexit None\ndone\n",
    ),
    "skip leaves a with by its exit": (LOOPS, "skip\n", "[2, 'after', 'after', 5, 'after']\n"),
    "goto an earlier line": (LOOPS, "action item = 1\ngoto 6\n", "[2, 'after', 10, 'after', 5, 'after']\n"),
    "goto leaves a with": (LOOPS, "goto 7\n", "[2, 'after', 'after', 5, 'after']\n"),
    "a try inside a handler": (
        HANDLERS,
        "pass\n---\npass\n",
        "finally\nZeroDivisionError\nafter\n",
    ),
    "held while being closed": (CLOSED, "pass\n---\npass\n", "['a', 'b']\n"),
    "behind an await": (AWAITED, "pass\n---\n" * 3 + "pass\n", "3 5\n"),
    "new parameters take their defaults": (
        DEFAULTS,
        "surgery f <<END\ndef f(a, b=STEP, *, c=5):\n    return a + b + c\nEND\npass\n",
        "16\n17\n",
    ),
    "skip the last statement of a handler": (
        LAST,
        "skip\n---\nskip\n---\nskip\n",
        "in 'k'\nnamed 2 group\n",
    ),
    "skip in a finally that stands in the code several times": (
        COPIES,
        "skip\n---\nskip\n",
        BEFORE + "try 2\nfinally 2\nend 2\nafter 2\n" + BEFORE + "finally 2\nend 2\nerror 2\n",
    ),
    "goto in a finally that stands in the code several times": (
        COPIES,
        "goto 14\n---\ngoto 14\n",
        BEFORE + "try 2\nend 2\nafter 2\n" + BEFORE + "end 2\nerror 2\n",
    ),
    "the subject of a match is not evaluated again": (
        MATCH,
        "pass\n---\n" * 4 + "pass\n",
        "small\n('list', 1, 2)\n('map', 3)\n('text', 'abc')\nother\n",
    ),
    "skip an element that cannot be unpacked": (
        ELEMENTS,
        "skip\n---\n" * 4 + "skip\n",
        "14\n14\n1 2\n3 4\nelse\n[1, 3]\nfinally 1\nvalue\n",
    ),
    "goto the body with an element of one's own": (
        ELEMENTS,
        "action a, b = 5, 5\ngoto 7\n---\n" + "skip\n---\n" * 3 + "skip\n",
        "39\n14\n1 2\n3 4\nelse\n[1, 3]\nfinally 1\nvalue\n",
    ),
    "goto and return leave an async with": (
        ASYNC_WITH,
        "goto 17\n---\nreturn 'given'\n---\nreturn 'unused'\n---\nreturn\n---\nreturn\n",
        (
            "exit loop None\nbehind 1\ninside 2\nexit loop None\nbehind 2\nlooped\n"
            "exit inner None\nexit outer None\ngiven\n"
            "exit inner None\nexit outer 'failed'\n"
            "caught 'failed'\nwent on\n"
            "exit generator None\n[1]\ncancelled\n"
        ),
    ),
    "an exit that fails on the way out is handled by the program": (
        FAILING_EXIT,
        "goto 12\n",
        "exit None\ncaught 'failed'\nwent on\n",
    ),
    "skip a loop whose body has a clause": (
        CLAUSE_IN_LOOP,
        "frame in_finally\nskip\n---\nframe in_handler\nskip\n---\nframe <module>\nskip\n",
        "body\n1\nbehind\nend\n1\nbehind\nstill raised\n1\nbehind the module's loop\n",
    ),
    "skip a loop, and go to a line, behind which a finally follows": (
        LOOP_BEFORE_FINALLY,
        "skip loop\n---\ngoto 14\n---\nskip loop\n",
        "fin 0\n5\nfin 0\n5\ninner 0\nfin\nouter\n6\n",
    ),
    "return from a finally, past a clause": (
        CLAUSE_AROUND_FINALLY,
        "return 9\n",
        "fin\n9\n",
    ),
    "skip the end of a finally, with an exception on its way and without": (
        END_OF_FINALLY,
        "skip\n---\nskip\n---\nframe compound\nskip\n---\nskip\n---\nskip\n",
        "fin 0\ncaught missing\ncaught missing\nfin 2\ncaught missing\nfin 3\n3\nfin 4\ncaught missing\n",
    ),
    "goto the end": (LOOPS, "goto 8\n", "[2, 'after']\n"),
}


@pytest.mark.parametrize("case", CASES)
def test_goes_on(case: str, tmp_path: Path) -> None:
    program, playbook, expected = CASES[case]
    result = run(tmp_path, program, playbook)
    assert result.stdout == expected, result.stderr
    assert result.returncode == 0
    assert "has no block for this hold" not in result.stderr


def test_a_generator_that_has_ended_is_said(tmp_path: Path) -> None:
    refused = run(tmp_path, ENDED, "pass\n")
    assert "the generator that the loop takes its elements from has ended" in refused.stderr
    assert refused.returncode == 1
    skipped = run(tmp_path, ENDED, "skip\n")
    assert skipped.stdout == "1\n", skipped.stderr


@pytest.mark.parametrize("kind", ["ValueError", "Own"])
def test_an_exception_that_was_raised_before_goes_its_way(kind: str, tmp_path: Path) -> None:
    program = RAISED_BEFORE.replace("outer(ValueError)", f"outer({kind})")
    result = run(tmp_path, program, "raise kept[-1]\n---\nraise kept[-1]\n---\nexit 9\n")
    assert result.stdout == "finally\n['<module>', 'outer', 'run', 'work', 'fill']\nfinally\n", result.stderr
    assert result.returncode == 1
    assert result.stderr.count("-- daifu: hold") == 2
    assert f"{kind}: kept" in result.stderr.splitlines()[-1]


def test_surgery_without_source_goes_on_at_what_has_changed() -> None:
    running = """
def f(items):
    doubled = [(lambda x: 2 * x)(item) for item in items]; say(doubled)
    for item in doubled:
        say(item)
    if (
        item > 0
        and crash(item)
    ):
        say('yes')
    return list(map(lambda x: x + crash(10), items))
def main():
    return f([1, 2])
"""
    # Other lines, and one statement a line.
    edited = """
def f(items):
    doubled = [(lambda x: 2 * x)(item) for item in items]
    say(doubled)
    for item in doubled:
        say(item)
    if item > 0 and work(item): say('yes')
    return list(map(lambda x: x + work(10), items))
"""
    seen = oracles.run_held(
        running,
        oracles.Plan("always"),
        answers=[["surgery", "pass"]],
        edited=edited,
        sourceless=True,
    )
    assert not seen.refusals and not seen.death
    assert seen.events == ["[2, 4]", "2", "4", "'yes'"]
    assert seen.result == "[11, 12]"
    assert seen.holds == 1


@pytest.mark.parametrize("numbers", [[1, 2, 3], [2], [3]])
def test_surgery_in_a_finally_into_which_new_ways_lead(numbers: list[int]) -> None:
    running = """
def main():
    for i in range(3):
        try:
            if i == 1:
                continue
            say('try', i)
        finally:
            crash(i)
            say('finally', i)
        say('after', i)
"""
    edited = running.replace("            if i == 1", "            if i == 7: return\n            if i == 1")
    edited = edited.replace("crash(", "work(")
    seen = oracles.run_held(
        running, oracles.Plan("at", numbers), answers=[["surgery", "pass"]], edited=edited
    )
    assert not seen.refusals and not seen.death
    assert seen.events == oracles.run_plain(edited).events
    assert seen.holds == 1


def test_surgery_of_a_lambda_without_source() -> None:
    running = """
def f(items):
    return list(map(lambda x: (say(x), crash(x))[1], items)), [(lambda: 1)()]
def main():
    return f([1, 2, 3])
"""
    seen = oracles.run_held(
        running,
        oracles.Plan("always"),
        answers=[["surgery", "pass"]],
        edited=running.replace("crash(", "work("),
        sourceless=True,
    )
    assert not seen.refusals and not seen.death
    # The running `map` has the same lambda, whose next calls are new: only the first element is held.
    assert seen.events == ["1", "1", "2", "3"]
    assert seen.result == "([1, 2, 3], [1])"
    assert seen.holds == 1


def test_cells_that_a_comprehension_has_put_aside(tmp_path: Path) -> None:
    result = run(tmp_path, CELLS, "pass\n---\n" * 40 + "pass\n")
    assert result.stdout.splitlines() == [
        "([('in', 1), ('in', 2)], ('behind', 2))",
        "(2, [1, 2], 7, 7)",
        "([3, 4], [3, 4])",
        "((2, '/dev/null'), {1: ('dict', 1), 2: ('dict', 2)})",
        "[('class', 0), ('class', 1)] [1, 1] 1",
    ], result.stderr
    # Each was held where it happened, and not in the module that had called an unvaccinated function.
    held = re.findall(r"> \d+ +(\S+) .*<- held", result.stderr)
    assert set(held) == {"merged", "argument", "parameter", "both", "Body"}


def test_an_element_that_cannot_be_unpacked_is_said(tmp_path: Path) -> None:
    result = run(tmp_path, ELEMENTS, "pass\n")
    assert (
        "the loop has taken its next element, which could not be assigned to its variables" in result.stderr
    )
    assert "Or set the variables by an action, and `goto 7`." in result.stderr
    assert result.returncode == 1


def test_surgery_from_disk_after_a_look(tmp_path: Path) -> None:
    (tmp_path / "edit.py").write_text(
        "import pathlib\n"
        "file = pathlib.Path('program.py')\n"
        "file.write_text('# one line more\\n' + file.read_text().replace('bais', 'bias'))\n"
    )
    program = (
        "class Model:\n"
        "    bias = 10\n"
        "    def forward(self, x):\n"
        "        y = x * 2\n"
        "        if x == 1:\n"
        "            y = y + self.bais\n"
        "        return y\n"
        "model = Model()\n"
        "for i in range(3):\n"
        "    print(model.forward(i))\n"
    )
    playbook = (
        "surgery --check\n"
        "action import subprocess, sys; subprocess.run([sys.executable, 'edit.py'], check=True)\n"
        "surgery --check\n"
        "surgery\n"
        "pass\n"
    )
    result = run(tmp_path, program, playbook)
    assert result.stdout == "0\n12\n4\n", result.stderr
    assert "would replace Model.forward (1 function)" in result.stderr
