"""Where the exception of a whole program is held and where it is not: in tasks, jobs, threads, hooks, groups, holds."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.running import run


class Case(NamedTuple):
    """A program.

    Attributes:
        program: its text.
        words: what is said at its holds.
        holds: how often it is held.
        printed: what it prints.
        thread: the thread of the first hold.
    """

    program: str
    words: str
    holds: int
    printed: str
    thread: str = ""


TASKS = """
import asyncio
seen = []
async def work(number, delay):
    await asyncio.sleep(delay)
    seen.append(('begin', number))
    value = {0: 'a', 2: 'c'}[number]
    await asyncio.sleep(0)
    seen.append(('end', number))
    return value
async def main():
    BODY
asyncio.run(main())
print(seen)
"""

GROUP = """async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work(number, number / 50)) for number in range(3)]
    print([task.result() for task in tasks])"""

GATHER = "print(await asyncio.gather(*(work(number, number / 50) for number in range(3))))"
RETURNED = """found = await asyncio.gather(*(work(number, number / 50) for number in range(3)), return_exceptions=True)
    print([repr(one) for one in found])"""
WAIT_FOR = "print([await asyncio.wait_for(work(number, 0), 5) for number in range(3)])"
WAITED_FOR = """for number in range(3):
        try: print(await asyncio.wait_for(work(number, 0), 5))
        except KeyError: print('handled')"""
BACKGROUND = """task = asyncio.create_task(work(1, 0))
    await asyncio.sleep(0.05)
    print('main', task.done() and task.exception())"""

ALL = "[('begin', 0), ('end', 0), ('begin', 1), ('end', 1), ('begin', 2), ('end', 2)]\n"
REPAIR = "value = 'b'\nskip\n"

TIMEOUT = """
import asyncio
async def main():
    try:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(5)
    finally:
        print('finally')
    print('behind')
async def patient():
    try:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(5)
    except TimeoutError:
        print('handled')
asyncio.run(patient())
asyncio.run(main())
"""

CANCELLED = """
import asyncio
async def work():
    try:
        await asyncio.sleep(5)
    finally:
        print('cancelled')
async def main():
    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print('end')
    other = asyncio.create_task(work())
    await asyncio.sleep(0)
    other.cancel('again')
    await other
try:
    asyncio.run(main())
except asyncio.CancelledError:
    print('out')
"""

EXECUTOR = """
import asyncio
def job(number):
    print('job', number)
    return {0: 'a'}[number]
async def main():
    loop = asyncio.get_running_loop()
    try:
        print(await loop.run_in_executor(None, job, 1))
    except KeyError:
        print('handled')
    print(await loop.run_in_executor(None, job, 2))
asyncio.run(main())
"""

FUTURES = """
import time
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
def job(number):
    time.sleep(0.05)
    return 10 // number
with ThreadPoolExecutor(1) as pool:
    BODY
"""

THREAD = """
import threading
class Worker(threading.Thread):
    def run(self):
        for number in (2, 0, 5):
            print('worker', 10 // number)
def hook(arguments):
    print('hook', arguments.exc_type.__name__)
threading.excepthook = hook
worker = Worker(name='worker')
worker.start()
worker.join()
print('joined')
"""

UNRAISABLE = """
import atexit, gc, sys, weakref
seen = []
def note(unraisable):
    seen.append(unraisable.exc_type.__name__)
sys.unraisablehook = note
def fail(*_):
    {}['x']
class Cycle:
    def __init__(self):
        self.own = self
    def __del__(self):
        fail()
class Plain:
    pass
def run():
    Cycle()
    gc.collect()
    one = Plain()
    weakref.finalize(one, fail)
    del one
    two = Plain()
    reference = weakref.ref(two, fail)
    two = None
    gc.callbacks.append(fail)
    gc.collect()
    gc.callbacks.remove(fail)
    print(len(seen), set(seen))
run()
atexit.register(print, 'end')
atexit.register(fail)
"""

EXCEPTHOOK = """
import sys
def hook(kind, error, traceback):
    print('hook', kind.__name__)
    {}['in the hook']
sys.excepthook = hook
print(1 // 0)
"""

CTYPES = """
import ctypes, sys
sys.unraisablehook = lambda unraisable: print('unraisable', unraisable.exc_type.__name__)
def compare(one, other):
    return {}['x']
kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int)
callback = kind(compare)
print(type(callback(1, 2)).__name__)
"""

CALLERS = """
class Item:
    def __init__(self, value):
        self.value = value
    def __lt__(self, other):
        return self.value['key'] < other.value['key']
    def __hash__(self):
        return self.value['hash']
    def __len__(self):
        return self.value['length']
    def __missing__(self, key):
        raise KeyError(key)
items = [Item({'key': 2, 'hash': 1, 'length': 1}), Item({'key': 1, 'length': 2}), Item({'hash': 3})]
for name, run in {
    'sorted': lambda: len(sorted(items)),
    'hash': lambda: len({*items}),
    'len': lambda: sum(map(len, items)),
    'min': lambda: items.index(min(items, key=lambda item: item.value['length'])),
}.items():
    print(name, run())
"""

GROUPS = """
def several():
    raise ExceptionGroup('several', [KeyError('a'), ExceptionGroup('inner', [ValueError('b')])])
def all_handled():
    try:
        several()
    except* KeyError:
        print('key')
    except* ValueError:
        print('value')
    return 'all'
def some_handled():
    try:
        several()
    except* KeyError:
        print('key')
    finally:
        print('finally')
    return 'some'
print(all_handled())
print(some_handled())
"""

DEEP = """
import sys
def depth(number):
    return number if number == goal else depth(number + 1)
def many(number):
    return number and many(number - 1) + 1
goal = 10**9
def main():
    print(depth(0) > 500)
main()
print(many(400))
"""

NO_MEMORY = """
def allocate(size):
    return bytearray(size)
size = 2**62
for attempt in range(2):
    print(len(allocate(size)))
"""

IN_HANDLER = """
table = {'a': 1}
def work(key):
    try:
        return table[key]
    except KeyError as error:
        print('handling', error)
        message = 'unknown: ' + error.args
        print(message)
        return 0
    finally:
        print('finally', key)
        table['calls'] = table['calls'] + 1
print(work('a'), work('b'), table)
"""

IN_EXIT = """
class Manager:
    def __init__(self, name):
        self.name = name
    def __enter__(self):
        print('enter', self.name)
        return self
    def __exit__(self, kind, error, traceback):
        print('exit', self.name, kind and kind.__name__)
        self.log[0]
def work():
    with Manager('one'):
        with Manager('two') as manager:
            print(manager.nothing)
    print('behind')
work()
"""

IN_ACTION = """
def helper(value):
    try:
        return 10 // value
    finally:
        print('helper', value)
def work(value):
    return helper(value)
print(work(0))
"""

TWICE = """
import threading
ready = threading.Barrier(2)
def work(name):
    ready.wait()
    values = {'name': name}
    results.append(values['value'])
results = []
threads = [threading.Thread(target=work, args=(name,), name=name) for name in 'ab']
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(results))
"""


def tasks(body: str) -> str:
    return TASKS.replace("BODY", body)


def futures(body: str) -> str:
    return FUTURES.replace("BODY", body)


CASES = {
    "a task of a group": Case(tasks(GROUP), REPAIR, 1, "['a', 'b', 'c']\n" + ALL),
    "a task of gather": Case(tasks(GATHER), REPAIR, 1, "['a', 'b', 'c']\n" + ALL),
    "gather gives exceptions back": Case(
        tasks(RETURNED), REPAIR, 0, "[\"'a'\", 'KeyError(1)', \"'c'\"]\n" + ALL.replace("('end', 1), ", "")
    ),
    "a task that is waited for": Case(tasks(WAIT_FOR), REPAIR, 1, "['a', 'b', 'c']\n" + ALL),
    "a task that is waited for, and handled": Case(
        tasks(WAITED_FOR), REPAIR, 0, "a\nhandled\nc\n" + ALL.replace("('end', 1), ", "")
    ),
    "a task that nobody awaits": Case(
        tasks(BACKGROUND), REPAIR, 1, "main None\n[('begin', 1), ('end', 1)]\n"
    ),
    "a time limit of asyncio": Case(TIMEOUT, "frame main\ngoto 9\n", 1, "handled\nfinally\nbehind\n"),
    "cancelled tasks": Case(CANCELLED, "skip\n", 0, "cancelled\nend\ncancelled\nout\n"),
    "a job of the loop's executor": Case(
        EXECUTOR, "return 'given'\n", 1, "job 1\nhandled\njob 2\ngiven\n", "asyncio_"
    ),
    "a job whose result is asked for": Case(
        futures("print(pool.submit(job, 0).result())"), "return 7\n", 1, "7\n", "ThreadPoolExecutor-0_0"
    ),
    "a job whose exception is asked for": Case(
        futures("print(type(pool.submit(job, 0).exception()).__name__)"),
        "return 7\n",
        0,
        "ZeroDivisionError\n",
    ),
    "a job whose result is handled": Case(
        futures(
            "future = pool.submit(job, 0)\n    try: future.result()\n    except ArithmeticError: print('handled')"
        ),
        "return 7\n",
        0,
        "handled\n",
    ),
    "jobs as they are completed": Case(
        futures(
            "jobs = [pool.submit(job, number) for number in (5, 0)]\n"
            "    print([one.result() for one in as_completed(jobs)])"
        ),
        "return 7\n",
        1,
        "[2, 7]\n",
    ),
    "jobs that are only waited for": Case(
        futures("print(len(wait([pool.submit(job, 0)]).done))"), "return 7\n", 1, "1\n"
    ),
    "a result that does not come in time": Case(
        futures("print(pool.submit(job, 5).result(timeout=0.001))"), "skip\n", 1, "", "MainThread"
    ),
    "a thread of its own class": Case(
        THREAD, "action number = 1\npass\n", 1, "worker 5\nworker 10\nworker 2\njoined\n", "worker"
    ),
    "what is only printed": Case(UNRAISABLE, "skip\n", 0, "5 {'KeyError'}\nend\n"),
    "a hook": Case(EXCEPTHOOK, "raise\n", 1, "hook ZeroDivisionError\n"),
    "a callback of ctypes": Case(CTYPES, "skip\n", 0, "unraisable KeyError\nint\n"),
    "called from C": Case(
        CALLERS,
        "return False\n---\nreturn False\n---\nreturn 5\n---\nreturn 7\n---\nreturn 0\n",
        5,
        "sorted 3\nhash 3\nlen 10\nmin 2\n",
    ),
    "a group of exceptions": Case(GROUPS, "frame several\nskip\n", 1, "key\nvalue\nall\nfinally\nsome\n"),
    "the limit of the stack": Case(
        DEEP, "p many(300)\naction print(many(300))\naction goal = 700\nreturn 800\n", 1, "True\n400\n"
    ),
    "no memory": Case(NO_MEMORY, "action size = 10\npass\n---\naction size = 20\npass\n", 2, "10\n20\n"),
    "in a clause and in a finally": Case(
        IN_HANDLER,
        "action table['calls'] = 0\npass\n---\naction message = 'mended'\nskip\n",
        2,
        "finally a\nhandling 'b'\nmended\nfinally b\n1 0 {'a': 1, 'calls': 2}\n",
    ),
    "in the exit of a with": Case(
        IN_EXIT,
        "raise\n---\naction self.log = [1]\npass\n---\nskip\n",
        3,
        "enter one\nenter two\nexit two AttributeError\nexit one AttributeError\n",
    ),
    "in an action": Case(
        IN_ACTION,
        "action <<END\ntry: helper(0)\nexcept ArithmeticError: print('caught')\nEND\naction value = helper(5)\npass\n",
        1,
        "helper 2\n5\n",
    ),
    "two threads at once": Case(TWICE, "action values['value'] = name\npass\n---\n" * 2, 2, "['a', 'b']\n"),
}


@pytest.mark.parametrize("name", CASES)
def test_is_held_where_nobody_handles_it(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    ended = run(tmp_path, case.program, case.words)
    assert ended.stderr.count("-- daifu: hold ") == case.holds, ended.stderr
    assert ended.stdout == case.printed, ended.stderr
    assert f"-- daifu: hold 1, thread {case.thread}" in ended.stderr or not case.thread
    assert "internal error" not in ended.stderr
