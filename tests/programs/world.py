"""What a test program can call: an event list, and calls that fail when the plan of the run says so.

Nothing in here is vaccinated, so a crash in here is held at the statement of the program that called it.
Each side effect of a program is an event; the event lists of two runs are compared as they are.
"""

from __future__ import annotations

import re
import sys
import threading
import types
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

EVENT_LIMIT = 3000
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


class Fault(Exception):
    """The crash that a plan asks for; no program names it in an ``except`` clause."""


class Expected(Exception):
    """An exception that belongs to a program: most programs handle it themselves."""


class Overflow(BaseException):
    """A program wrote more events than any test program should: it would not end."""


def is_injected(error: BaseException | None) -> bool:
    """Tell whether a plan made this exception (division by zero is kept for the crash that C code raises)."""
    return isinstance(error, (Fault, ZeroDivisionError)) or bool(getattr(error, "injected", False))


@dataclass
class Plan:
    """When the failing calls of a run fail.

    Attributes:
        mode: ``off``; ``at`` (the calls numbered in ``at``); ``always`` (each call from number ``at[0]`` on);
            ``unmended`` (the same, until the program's ``mend()`` was called); ``knob`` (each call that was
            given a knob of 0); ``every`` (each ``period``-th call, at most ``limit`` times for one key);
            ``keyed`` (for each key, the calls of that key that are numbered in ``keys``); ``broken`` (for each
            key, each call of that key from the number on that stands first in ``keys``); ``line`` (each call
            from number ``at[0]`` on that line ``line`` of the program makes).
        at: numbers of calls, from 1.
        line: see ``line``.
        period, limit: see ``every``.
        keys: see ``keyed``.
    """

    mode: str = "off"
    at: list[int] = field(default_factory=lambda: [1])
    period: int = 0
    limit: int = 2
    keys: dict[str, list[int]] = field(default_factory=dict)
    line: int = 0


def show(value: object) -> str:
    """Write a value the same way in every run."""
    if isinstance(value, BaseException):
        return f"{type(value).__name__}({', '.join(show(argument) for argument in value.args)})"
    if isinstance(value, type):
        return value.__name__
    return _ADDRESS.sub("0x", repr(value))


class World:
    """The helpers and the event list of one run of one program."""

    def __init__(self, plan: Plan, filename: str = "") -> None:
        self.plan = plan
        self.filename = filename
        self.events: list[str] = []
        self.calls = 0
        self.failures = 0
        self.mended = False
        self.moments = 0
        self.on_moment: Callable[[int], None] | None = None
        self.calls_of: Counter[object] = Counter()
        self._rounds: Counter[int] = Counter()
        self._failures_of: Counter[object] = Counter()

    # events

    def say(self, *values: object) -> Any:
        """Write an event; give back the last value."""
        if len(self.events) >= EVENT_LIMIT:
            raise Overflow(f"more than {EVENT_LIMIT} events")
        self._moment()
        self.events.append(" ".join(show(value) for value in values))
        return values[-1] if values else None

    def say_context(self, *values: object) -> None:
        """Write an event with the exception that is being handled."""
        self.say(*values, sys.exc_info()[1])

    def _moment(self) -> None:
        self.moments += 1
        if self.on_moment is not None:
            self.on_moment(self.moments)

    # failing calls

    def fails(self, key: object = None, knob: int | None = None) -> bool:
        """Count a call and say whether the plan makes it fail."""
        self._moment()
        self.calls += 1
        self.calls_of[key] += 1
        plan = self.plan
        first = plan.at[0] if plan.at else 1
        if plan.mode == "at":
            failing = self.calls in plan.at
        elif plan.mode == "always":
            failing = self.calls >= first
        elif plan.mode == "unmended":
            failing = self.calls >= first and not self.mended
        elif plan.mode == "knob":
            failing = knob == 0
        elif plan.mode == "every":
            failing = self.calls % plan.period == 0 and self._failures_of[key] < plan.limit
        elif plan.mode == "keyed":
            failing = self.calls_of[key] in plan.keys.get(str(key), [])
        elif plan.mode == "line":
            failing = self.calls >= first and self._calling_line() == plan.line
        elif plan.mode == "broken":
            failing = str(key) in plan.keys and self.calls_of[key] >= plan.keys[str(key)][0]
        else:
            failing = False
        if failing:
            self.failures += 1
            self._failures_of[key] += 1
        return failing

    def _calling_line(self) -> int:
        """The line of the program that is running."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self.filename:
            frame = frame.f_back
        return frame.f_lineno if frame is not None else 0

    def crash(
        self,
        value: Any = None,
        knob: int | None = None,
        *,
        key: object = None,
        error: type[BaseException] = Fault,
    ) -> Any:
        """Give the value back, or raise `error` when the plan says so."""
        if self.fails(key, knob):
            exception = error("injected")
            exception.injected = True  # type: ignore[attr-defined]
            raise exception
        return value

    def unit(self, knob: int | None = None, *, key: object = None) -> int:
        """Give 1, or 0 when the plan says so: the division in the program's own frame then fails in C."""
        return 0 if self.fails(key, knob) else 1

    def mend(self) -> None:
        """Repair what ``unmended`` broke; what an action calls."""
        self.mended = True

    def again(self, number: int, most: int) -> bool:
        """Tell the loop of this number to go on, `most` times in a row."""
        self._rounds[number] = (self._rounds[number] + 1) % (most + 1)
        return self._rounds[number] != 0

    def expected(self, text: str = "expected") -> None:
        """Raise the program's own exception."""
        raise Expected(text)

    # library code that calls the program

    def in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call the function in a thread and give its value back; None if an exception ended the thread."""
        values: list[Any] = []

        def target() -> None:
            values.append(function(*arguments))

        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
        return values[0] if values else None

    def names(self) -> dict[str, Any]:
        """The globals that a program starts with."""
        return {
            "say": self.say,
            "say_context": self.say_context,
            "crash": self.crash,
            "work": work,
            "unit": self.unit,
            "one": one,
            "mend": self.mend,
            "again": self.again,
            "expected": self.expected,
            "Expected": Expected,
            "in_thread": self.in_thread,
            "call_it": call_it,
            "attempt": attempt,
            "drive": drive,
            "later": later,
            "Later": Later,
            "Box": Box,
            **self._managers(),
            **self._iterators(),
        }

    def _managers(self) -> dict[str, Any]:
        world = self

        class Guard:
            """A context manager that fails in `where` (``enter`` or ``exit``) when the plan says so."""

            def __init__(
                self, name: object = "guard", where: str = "", value: Any = None, *, key: object = None
            ) -> None:
                self.name, self.where, self.value, self.key = name, where, value, key

            def _fail(self, where: str) -> None:
                if self.where == where:
                    world.crash(key=self.key)

            def __enter__(self) -> Any:
                self._fail("enter")
                world.say("enter", self.name)
                return self

            def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
                self._fail("exit")
                world.say("exit", self.name, error)
                return self.swallows(error)

            def swallows(self, error: BaseException | None) -> bool:
                """Tell whether leaving ends the exception."""
                del error
                return False

            async def __aenter__(self) -> Any:
                await later()
                return self.__enter__()

            async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
                await later()
                return self.__exit__(kind, error, traceback)

        class Sound(Guard):
            """The same without the fault: what surgery puts in its place."""

            def _fail(self, where: str) -> None:
                del where

        class Swallow(Guard):
            """A context manager that swallows the program's own exception."""

            def swallows(self, error: BaseException | None) -> bool:
                return isinstance(error, Expected)

        return {"Guard": Guard, "Sound": Sound, "Swallow": Swallow}

    def _iterators(self) -> dict[str, Any]:
        world = self

        class Stream:
            """An iterator of 0 .. count-1 whose next step fails when the plan says so, and can be taken again."""

            def __init__(self, count: int, *, key: object = None) -> None:
                self.count, self.position, self.key = count, 0, key

            def _fail(self) -> None:
                world.crash(key=self.key)

            def __iter__(self) -> Iterator[int]:
                return self

            def __next__(self) -> int:
                if self.position >= self.count:
                    raise StopIteration
                self._fail()
                self.position += 1
                return self.position - 1

            def __aiter__(self) -> AsyncIterator[int]:
                return self

            async def __anext__(self) -> int:
                await later()
                try:
                    return self.__next__()
                except StopIteration:
                    raise StopAsyncIteration from None

        class Calm(Stream):
            """The same without the fault."""

            def _fail(self) -> None:
                return None

        return {"Stream": Stream, "Calm": Calm}


def work(value: Any = None, knob: int | None = None, *, key: object = None, error: object = None) -> Any:
    """What surgery writes where ``crash`` stood."""
    del knob, key, error
    return value


def one(knob: int | None = None, *, key: object = None) -> int:
    """What surgery writes where ``unit`` stood."""
    del knob, key
    return 1


def call_it(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call the program back through a frame of a library."""
    return function(*arguments)


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call the program back, and handle a missing key for it."""
    try:
        return function(*arguments)
    except KeyError as error:
        return error


class Box:
    """Something with attributes and items."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Later:
    """An awaitable that gives control to the loop once."""

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def __await__(self) -> Generator[Any, Any, Any]:
        yield
        return self.value


def later(value: Any = None) -> Awaitable[Any]:
    """Await this to give control to the loop once."""
    return Later(value)


def drive(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine by the smallest possible loop."""
    while True:
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return stop.value


FLAKY_PREFIX = "flaky_"


class FlakyFinder:
    """Finds modules called ``flaky_...``, empty but for `value`; finding one fails when the plan says so."""

    def __init__(self, world: World) -> None:
        self.world = world

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        """Make the spec of a flaky module."""
        del path, target
        if not name.startswith(FLAKY_PREFIX):
            return None
        if not name.endswith("_sound"):
            self.world.crash()
        import_util = sys.modules["importlib.util"]
        return import_util.spec_from_loader(name, self)

    def create_module(self, spec: Any) -> types.ModuleType:
        """Make the module."""
        module = types.ModuleType(spec.name)
        module.value = 7  # type: ignore[attr-defined]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing is left to do."""
