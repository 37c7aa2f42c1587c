"""A decorated function notices its own first call, and that call can be held like any other."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import traceback
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, cast

import pytest

from daifu_bc.recovery.bodies import body_of, continuation_of, has_barriers, with_first_call
from daifu_bc.rewrite import first_call
from daifu_bc.rewrite.barrier import is_vaccinated, pristine, vaccinate_code


def watched(function: object, callback: Callable[[], None] | None = None) -> list[str]:
    """Give a function code that notices its first call, and return the list in which the call will be noted."""
    target = cast("FunctionType", function)
    calm = vaccinate_code(target.__code__)
    notes: list[str] = []

    def note() -> None:
        target.__code__ = calm
        frame = sys._getframe(2)
        notes.append(f"{frame.f_code.co_name} {frame.f_lineno - frame.f_code.co_firstlineno}")
        traceback.extract_stack()
        if callback is not None:
            callback()

    target.__code__ = with_first_call(calm, note)
    assert is_vaccinated(target.__code__)
    assert has_barriers(target.__code__)
    assert continuation_of(target.__code__) is None
    assert pristine(target.__code__) is body_of(target.__code__) is pristine(calm)
    return notes


def function(a: int, /, b: int = 2, *rest: int, key: int = 4, **others: int) -> list[object]:
    with open(os.devnull):
        return [a, b, rest, key, others]


def generator(count: int) -> Generator[int, int, None]:
    for number in range(count):
        got = yield number
        if got:
            yield got


async def coroutine(value: int) -> int:
    await asyncio.sleep(0)
    return value


async def asynchronous(count: int) -> AsyncIterator[int]:
    for number in range(count):
        await asyncio.sleep(0)
        yield number


def closures() -> list[object]:
    free = 7

    def inner(a: int) -> list[int]:
        own = a + free

        def innermost() -> int:
            nonlocal own
            own += 1
            return own + free + a

        return [innermost(), innermost(), own]

    notes = watched(inner)
    return [inner(1), inner(1), notes]


def test_functions() -> None:
    notes = watched(function)
    for _ in range(2):
        assert function(1, 3, 5, x=6) == [1, 3, (5,), 4, {"x": 6}]
    assert notes == ["function 0"]


def test_closures() -> None:
    assert closures() == [[17, 18, 10], [17, 18, 10], ["inner 0"]]


def test_generators() -> None:
    notes = watched(generator)
    first, second = generator(2), generator(3)
    assert not notes, "a generator's body has not begun yet"
    assert next(first) == 0
    assert notes == ["generator 0"]
    assert first.send(5) == 5
    assert list(first) == [1]
    assert list(second) == [0, 1, 2] == list(generator(3))
    assert notes == ["generator 0"]


def test_something_is_thrown_into_a_generator_that_has_not_begun() -> None:
    def thrown(code: Any) -> str:
        made = FunctionType(code, globals())()
        try:
            made.throw(StopIteration(3))
        except BaseException as error:
            return repr(error)
        return ""

    def plain() -> Iterator[int]:
        yield 1

    expected = thrown(plain.__code__)
    assert thrown(with_first_call(plain.__code__, lambda: None)) == expected


def test_coroutines() -> None:
    notes = watched(coroutine)

    async def main() -> list[int]:
        return [await coroutine(1), await coroutine(2)]

    assert asyncio.run(main()) == [1, 2]
    assert notes == ["coroutine 0"]


def test_asynchronous_generators() -> None:
    notes = watched(asynchronous)

    async def main() -> list[int]:
        return [number async for number in asynchronous(2)] + [number async for number in asynchronous(1)]

    assert asyncio.run(main()) == [0, 1, 0]
    assert notes == ["asynchronous 0"]


def test_nothing_remains() -> None:
    def target() -> int:
        return len("abc")

    before = len(first_call._waiting)
    watched(target)
    waiting = weakref.ref(target.__code__)
    assert len(first_call._waiting) == before + 1
    assert target() == 3
    assert waiting() is None
    assert len(first_call._waiting) == before


def test_what_is_never_called_is_forgotten() -> None:
    before = len(first_call._waiting)

    def target() -> int:
        return len("abc")

    with_first_call(target.__code__, lambda: None)
    gc.collect()
    assert len(first_call._waiting) == before


def test_a_failure_of_ours_is_none_of_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    def target() -> int:
        return len("abc")

    def fail() -> None:
        raise ValueError

    notes = watched(target, fail)
    assert target() == 3
    assert len(notes) == 1
    notes = watched(target)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "daifu_bc", None)
        assert target() == 3
    assert not notes
    assert target() == 3
    assert len(notes) == 1


def test_ctrl_c_is_the_programs() -> None:
    def target() -> int:
        return len("abc")

    def interrupt() -> None:
        raise KeyboardInterrupt

    watched(target, interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        target()
    assert [entry.name for entry in caught.traceback][-1] == "target"
    assert target() == 3


def test_two_threads_at_once() -> None:
    start = threading.Barrier(8)
    results: list[int] = []

    def target() -> int:
        return len("abc")

    def dawdle() -> None:
        for number in range(2000):
            str(number)

    notes = watched(target, dawdle)

    def call() -> None:
        start.wait(5)
        results.append(target())

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert results == [3] * 8
    assert len(notes) == 1


PROGRAM = """
import daifu_bc, helper
state = []
@daifu_bc.vaccinate
def main():
    code = main.__code__
    result = below() + helper.double(3)
    return result, code is main.__code__, b"daifu" in below.__code__.co_consts[-1]
def below():
    return 10 // len(state)
if __name__ == "__main__":
    print(main())
"""

HELPER = """
state = []
def double(x):
    return x * 2 // len(state)
"""

#: Every kind of frame crashes in its first call, and again in the continuation.
KINDS = """
import asyncio, daifu_bc
state = []
def again():
    state.clear()
@daifu_bc.vaccinate
def function(a, free=3):
    cell = [free]
    def inner(): return cell + [a]
    with open("x") as file:
        for i in iter(range(2)):
            b = 10 // (len(state) // 2)
            cell.append(file.read() + str(b))
    return inner()
@daifu_bc.vaccinate
def generator(n):
    for i in range(n):
        yield 10 // (len(state) // 2) + i
@daifu_bc.vaccinate
async def coroutine(n):
    await asyncio.sleep(0)
    x = 10 // (len(state) // 2)
    await asyncio.sleep(0)
    return x + n
@daifu_bc.vaccinate
async def asynchronous(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield 10 // (len(state) // 2) + i
async def collect():
    return [i async for i in asynchronous(2)]
class A:
    @daifu_bc.vaccinate
    def method(self, /, *, key):
        return key, 10 // (len(state) // 2), __class__.__name__
for kind in (lambda: function(4), lambda: list(generator(2)), lambda: asyncio.run(coroutine(2)),
             lambda: asyncio.run(collect()), lambda: A().method(key=3)):
    again()
    print(kind())
    state[:] = [1, 2]
    print(kind())
"""

SURGERY = """
import daifu_bc
@daifu_bc.vaccinate
def main(a):
    total = a
    for i in iter(range(3)):
        total += wrong + i
    return total
print(main(1))
print(main(1))
"""


def run(folder: Path, program: str, playbook: str) -> subprocess.CompletedProcess[str]:
    """Run a program as ``python program.py``."""
    (folder / "pyproject.toml").touch()
    (folder / "x").write_text("x")
    (folder / "program.py").write_text(program)
    (folder / "playbook").write_text(playbook)
    environment = os.environ | {"DAIFU_PLAYBOOK": str(folder / "playbook")}
    command = [sys.executable, "program.py"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_what_is_defined_below_and_elsewhere_is_held(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER)
    ended = run(tmp_path, PROGRAM, "state.append(1)\npass\n---\nstate.append(1)\npass\n")
    assert ended.stdout == "(16, True, True)\n", ended.stderr
    assert ended.stderr.count("daifu> pass") == 2


def test_the_first_call_is_held_and_goes_on(tmp_path: Path) -> None:
    ended = run(tmp_path, KINDS, "\n---\n".join(["state.append(1)\npass"] * 10))
    assert ended.stdout.splitlines() == [
        *["[3, 'x10', '10', 4]"] * 2,
        *["[10, 11]"] * 2,
        *["12"] * 2,
        *["[10, 11]"] * 2,
        *["(3, 10, 'A')"] * 2,
    ], ended.stderr
    assert ended.stderr.count("daifu> pass") == 10


def test_surgery_in_the_first_call(tmp_path: Path) -> None:
    (tmp_path / "edited.py").write_text(SURGERY.replace("wrong", "10"))
    ended = run(tmp_path, SURGERY, f"surgery {tmp_path / 'edited.py'}\npass\n")
    assert ended.stdout == "34\n34\n", ended.stderr


def test_the_exception_of_a_first_call_goes_on(tmp_path: Path) -> None:
    ended = run(tmp_path, SURGERY, "raise\n")
    traces = ended.stderr[ended.stderr.index("Traceback") :]
    assert [line.strip() for line in traces.splitlines() if "File" in line] == [
        f'File "{tmp_path}/program.py", line 9, in <module>',
        f'File "{tmp_path}/program.py", line 7, in main',
    ]
    assert "NameError: name 'wrong' is not defined" in traces
