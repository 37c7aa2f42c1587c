"""`python -m fuzz.soak --rounds N`: crash, hold, pass, again and again in one process; nothing may grow.

Each round runs a program of one kind, one of whose calls fails and is repeated. What is watched: memory, allocated
blocks, objects, code objects, what the engine keeps, how deep the stack is where the call fails, and how far the
process's stack has grown.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import os
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

from daifu_bc.recovery import bodies, restarts
from daifu_bc.rewrite import barrier
from tests.grid.systematic import systematic_programs
from tests.programs import engine
from tests.programs.run import MODULE_NAME
from tests.programs.world import Plan, World

#: Every so many calls one fails. A statement with so many calls could never be repeated with success.
PERIOD = 3
#: More holds than any program needs.
MOST_HOLDS = 500

#: A program of each kind.
KINDS: dict[str, str] = {
    "function": "def main():\n    x = 1\n    x = crash(x) + 1\n    return x\n",
    "method": (
        "class Thing:\n    def run(self):\n        self.x = crash(3)\n        return super().__repr__() and 3\n"
        "def main():\n    return Thing().run()\n"
    ),
    "generator": (
        "def steps():\n    for i in range(3):\n        got = yield crash(i)\n"
        "def main():\n    return sum(steps())\n"
    ),
    "delegation": (
        "def inner():\n    x = yield 1\n    crash(x)\n    return 2\n"
        "def outer():\n    y = yield from inner()\n    yield crash(y)\n"
        "def main():\n    return list(outer())\n"
    ),
    "coroutine": (
        "async def inner(x):\n    await later()\n    return crash(x)\n"
        "async def outer():\n    y = await inner(2)\n    async with Sound('a') as m:\n        y += crash(y)\n"
        "    async for z in Calm(2):\n        y += crash(z)\n    return y\n"
        "def main():\n    return drive(outer())\n"
    ),
    "asynchronous generator": (
        "async def source():\n    for i in (1, 2):\n        x = crash(i)\n        yield x\n"
        "async def use():\n    return [x async for x in source()]\n"
        "def main():\n    return drive(use())\n"
    ),
    "with": (
        "def main():\n    with Sound('a') as m, Sound('b'):\n        x = crash(1)\n"
        "        with Sound('c'):\n            x += crash(x)\n    return x\n"
    ),
    "loops": (
        "def main():\n    total = 0\n    for i in range(2):\n        for j in [1, 2]:\n"
        "            total += crash(j)\n        n = 0\n        while n < 2:\n            n += 1\n"
        "            total += crash(n)\n    return total\n"
    ),
    "closure": (
        "def make():\n    count = 0\n    def step(by):\n        nonlocal count\n        count += by\n"
        "        crash(count)\n        return count\n    return step\n"
        "def main():\n    step = make()\n    return step(1) + step(2)\n"
    ),
    "nested": (
        "def low(x):\n    return crash(x)\n"
        "def middle(x):\n    y = low(x)\n    y += crash(y)\n    return y\n"
        "def main():\n    z = middle(1)\n    z += crash(z)\n    return z\n"
    ),
    "recursion": (
        "def run(n):\n    below = run(n - 1) if n else 0\n    return crash(n) + below\ndef main():\n    return run(5)\n"
    ),
    "try": (
        "def main():\n    x = 0\n    try:\n        x = crash(1)\n        try:\n            expected()\n"
        "        except Expected as error:\n            x += crash(2)\n            say_context('handling')\n"
        "    finally:\n        x += crash(3)\n    return x\n"
    ),
    "comprehension": "def main():\n    a = len([crash(v) for v in (1, 2)])\n    return a\n",
    "class body": "def main():\n    class Body:\n        x = crash(1)\n        y = x\n    return Body.y\n",
    "generator expression": "def main():\n    return sum(crash(v) for v in (1, 2))\n",
}

STACK_OF_PROCESS = Path("/proc/self/status")


@dataclass(frozen=True)
class Sizes:
    """How much there is of what must not grow.

    Attributes:
        memory: resident memory, in KiB; 0 where it is not known.
        blocks: allocated blocks of CPython's allocator.
        objects: objects that the garbage collector knows.
        codes: code objects that can be reached.
        kept: entries of what the engine keeps.
        stack: how far the process's stack has grown, in KiB.
    """

    memory: int
    blocks: int
    objects: int
    codes: int
    kept: int
    stack: int

    def __str__(self) -> str:
        return (
            f"{self.memory} KiB resident, {self.blocks} blocks, {self.objects} objects, {self.codes} code objects, "
            f"{self.kept} kept by the engine, stack {self.stack} KiB"
        )


def sizes() -> Sizes:
    """Measure, after a collection."""
    gc.collect()
    kept = sum(len(table) for table in (bodies._built, bodies._kept, restarts._tables, barrier._pristine))
    return Sizes(
        _of_process("VmRSS"),
        sys.getallocatedblocks(),
        len(gc.get_objects()),
        _count_codes(),
        kept,
        _of_process("VmStk"),
    )


def _of_process(name: str) -> int:
    with contextlib.suppress(OSError):
        for line in STACK_OF_PROCESS.read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1])
    return 0


def _count_codes() -> int:
    """Code objects are not known to the collector: they are looked for in what functions, frames and tuples hold."""
    seen: set[int] = set()
    work: list[Any] = [
        item
        for item in gc.get_referents(*gc.get_objects())
        if isinstance(item, CodeType) or type(item) is tuple
    ]
    while work:
        item = work.pop()
        if type(item) is tuple:
            work += [part for part in item if isinstance(part, CodeType)]
        elif id(item) not in seen:
            seen.add(id(item))
            work += [part for part in item.co_consts if isinstance(part, CodeType)]
    return len(seen)


@dataclass
class Program:
    """A program that was loaded, and what it gives when nothing fails.

    Attributes:
        name: its kind.
        main: what runs it.
        world: its event list and failing calls.
        expected: its result and events.
    """

    name: str
    main: Callable[[], object]
    world: World
    expected: tuple[str, list[str]] = ("", [])
    depths: set[int] = field(default_factory=set)


def load(name: str, source: str, *, vaccinated: bool = True) -> Program:
    """Compile, vaccinate and load a program."""
    world = World(Plan("off"))
    module = types.ModuleType(MODULE_NAME)
    module.__dict__.update(world.names())
    code = compile(source, f"<{name}>", "exec", dont_inherit=True)
    exec(engine.vaccinated(code) if vaccinated else code, module.__dict__)
    program = Program(name, module.__dict__["main"], world)
    _watch_depth(program, module.__dict__)
    program.expected = _once(program)
    return program


def _watch_depth(program: Program, namespace: dict[str, Any]) -> None:
    crash = namespace["crash"]

    def watched(*arguments: Any, **named: Any) -> Any:
        try:
            return crash(*arguments, **named)
        finally:
            depth = 0
            frame: types.FrameType | None = sys._getframe(1)
            while frame is not None:
                depth, frame = depth + 1, frame.f_back
            program.depths.add(depth)

    namespace["crash"] = watched


def _once(program: Program) -> tuple[str, list[str]]:
    program.world.events.clear()
    result = repr(program.main())
    return result, list(program.world.events)


def programs(*, grid: bool = True) -> list[Program]:
    """A program of each kind, and some of the grid."""
    loaded = [load(name, source) for name, source in KINDS.items()]
    if grid:
        known = {program.name: program for program in systematic_programs()}
        chosen = list(known.values())[::40]
        for program in chosen:
            if "thread" in program.name or "asyncio" in program.name or "import" in program.name:
                continue
            if "\ndef main(" in program.source and program.runs_here() and not program.handled:
                with contextlib.suppress(Exception):
                    loaded.append(load(program.name, program.source))
    return loaded


class Soak:
    """Runs rounds.

    Args:
        loaded: what is run, in turn.
    """

    def __init__(self, loaded: list[Program]) -> None:
        self._programs = loaded
        self.rounds = 0
        self.failures: list[str] = []
        self._held = 0

    def run(self, rounds: int) -> None:
        """Crash, hold and pass so many times more."""
        end = self.rounds + rounds
        with engine.responding(self._respond):
            while self.rounds < end and not self.failures:
                before = self.rounds
                for program in self._programs:
                    self._round(program)
                if self.rounds == before:
                    self.failures.append("nothing was held")

    def _round(self, program: Program) -> None:
        program.world.plan = Plan("every", period=PERIOD, limit=1 << 60)
        self._held = 0
        seen = _once(program)
        program.world.plan = Plan("off")
        if seen != program.expected:
            self.failures.append(f"{program.name}: expected {program.expected}, seen {seen}")

    def _respond(self, hold: Any) -> None:
        self.rounds += 1
        self._held += 1
        if self._held > MOST_HOLDS:
            self.failures.append(f"held {self._held} times in {hold.selected.name}")
            hold.let_go()
            return
        hold.retry()


def repeated(times: int) -> list[str]:
    """Repeat one call that fails again and again; what grew with it."""
    found = []
    # What the process makes once, it makes before anything is measured.
    warm = load("warm", KINDS["function"])
    with engine.responding(Counting().respond):
        warm.world.plan = Plan("every", period=1, limit=800)
        _once(warm)
    for name, source in KINDS.items():
        program = load(name, source)
        first = Counting()
        with engine.responding(first.respond):
            program.world.plan = Plan("every", period=1, limit=100)
            _once(program)
            program.depths.clear()
            before = sizes()
            program.world.plan.limit = times + 100
            seen = _once(program)
            after = sizes()
        if seen != program.expected:
            found.append(f"{name}: expected {program.expected}, seen {seen}")
        if first.held != times + 100:
            found.append(f"{name}: {first.held} holds")
        # One depth for each place that calls, and one more for each that was continued.
        if len(program.depths) > 12:
            found.append(f"{name}: depths {sorted(program.depths)}")
        if after.stack > before.stack:
            found.append(f"{name}: the stack grew from {before.stack} to {after.stack} KiB")
        if after.blocks - before.blocks > times // 10 + 300:  # some settle late
            found.append(f"{name}: blocks {before.blocks} to {after.blocks}")
    return found


class Counting:
    """Passes, and counts."""

    def __init__(self) -> None:
        self.held = 0

    def respond(self, hold: Any) -> None:
        """Answers a hold."""
        self.held += 1
        hold.retry()


def grown(before: Sizes, after: Sizes, rounds: int) -> list[str]:
    """What has grown, beyond what caches and the allocator may take once."""
    found = []
    if after.blocks - before.blocks > max(500, rounds // 20):
        found.append(f"allocated blocks: {before.blocks} to {after.blocks}")
    if after.objects - before.objects > max(200, rounds // 50):
        found.append(f"objects: {before.objects} to {after.objects}")
    if after.codes - before.codes > 20:
        found.append(f"code objects: {before.codes} to {after.codes}")
    if after.memory - before.memory > 4096:
        found.append(f"resident memory: {before.memory} to {after.memory} KiB")
    if after.stack - before.stack > 256:
        found.append(f"stack: {before.stack} to {after.stack} KiB")
    return found


@contextlib.contextmanager
def without_journal() -> Iterator[None]:
    """A hundred thousand rounds are not to be journalled."""
    known = os.environ.get("DAIFU_JOURNAL")
    os.environ["DAIFU_JOURNAL"] = os.devnull
    try:
        yield
    finally:
        if known is None:
            del os.environ["DAIFU_JOURNAL"]
        else:
            os.environ["DAIFU_JOURNAL"] = known


def trim_memory() -> None:
    """Give free memory back, so that what is left shows."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.soak", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument(
        "--times", type=int, default=1000, help="how often one call is repeated in a row (default 1000)"
    )
    options = parser.parse_args()
    found: list[str] = []
    with without_journal():
        if options.rounds:
            found += soak(options.rounds)
        if options.times:
            found += repeated(options.times)
    for text in found:
        print(f"FAILED: {text}")
    return bool(found)


def soak(rounds: int) -> list[str]:
    """Run so many rounds and say what was seen; what failed or grew."""
    loaded = programs()
    runs = Soak(loaded)
    print(f"{len(loaded)} programs, {rounds} rounds, CPython {sys.version.split()[0]}", flush=True)
    runs.run(max(rounds // 20, 600))
    trim_memory()
    before, started, first = sizes(), time.monotonic(), runs.rounds
    print(f"{runs.rounds:8} rounds: {before}", flush=True)
    after = before
    for _ in range(10):
        if runs.failures:
            break
        runs.run(rounds // 10)
        trim_memory()
        after = sizes()
        print(f"{runs.rounds:8} rounds: {after}", flush=True)
    seconds = time.monotonic() - started
    print(f"{1000 * seconds / max(1, runs.rounds - first):.2f} ms a round")
    return [*runs.failures[:5], *grown(before, after, runs.rounds - first)]


if __name__ == "__main__":
    sys.exit(main())
