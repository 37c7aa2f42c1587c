"""Hypothesis writes programs: they end, they do the same in every run, and each side effect is an event.

A statement that can crash has no side effect before the crash, so that running it again does nothing twice.
A failing call carries a key: the plan of a run says which calls of which key fail, and surgery mends the calls
of one key. `tests.programs.world` says what the programs can call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.vendor.pretty import RepresentationPrinter

from tests.grid.program import mended

Value = TypeVar("Value")

# In the template of a program a failing call is written ⟨key⟩crash(...), so that one key's calls can be mended.
_FAILING = re.compile(r"⟨(\d+)⟩(\w+\()")

NAMES = ("a", "b", "c")
MAX_DEPTH = 4


@dataclass(frozen=True)
class WrittenProgram:
    """A generated program.

    Attributes:
        template: the text with its failing calls marked.
        keys: the keys of the failing calls.
        mendable: those of them that an edit of their line can mend when they have failed.
    """

    template: str
    keys: tuple[int, ...]
    mendable: tuple[int, ...]

    @property
    def source(self) -> str:
        """The text of the program."""
        return _FAILING.sub(r"\2", self.template)

    def with_mended(self, key: int) -> str:
        """The text with the failing calls of one key replaced by ones that cannot fail."""
        return _FAILING.sub(
            lambda match: mended(match[2]) if match[1] == str(key) else match[2],
            self.template,
        )

    def __repr__(self) -> str:
        return f"<program with the failing calls {self.keys}>\n{self.source}"

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        # Hypothesis would write the fields of a dataclass, the text in one long line.
        printer.text(repr(self))


@dataclass(frozen=True)
class Options:
    """What the programs of a property may contain.

    Attributes:
        crashes: failing calls.
        crashes_without_statement: failing calls in lambdas, generator expressions and second items of a ``with``,
            for which skipping the statement is not defined.
        async_exits: context managers of ``async with`` that fail while they are left, and cannot be asked again.
        leaves_finally: ``break``, ``continue`` and ``return`` in a ``finally`` body: whether the program handles
            an exception that they end is for nobody to say.
    """

    crashes: bool = True
    crashes_without_statement: bool = True
    async_exits: bool = True
    leaves_finally: bool = False


@dataclass(frozen=True)
class Scope:
    """Where a statement stands.

    Attributes:
        kind: ``module``, ``function``, ``generator``, ``coroutine``, ``async generator`` or ``class``.
        callees: the functions that it may call, by name, with their kinds.
        loop: whether ``break`` and ``continue`` are allowed.
        leave: whether ``return``, ``break`` and ``continue`` may leave the block.
        handled: whether the program's own exception is handled further out.
        handling: whether an exception is being handled.
        depth: number of blocks around it.
    """

    kind: str
    callees: tuple[tuple[str, str], ...] = ()
    loop: bool = False
    leave: bool = True
    handled: bool = False
    handling: bool = False
    depth: int = 0

    @property
    def returns(self) -> bool:
        """Whether ``return`` is allowed."""
        return self.kind not in ("module", "class") and self.leave

    @property
    def awaits(self) -> bool:
        """Whether ``await`` is allowed."""
        return self.kind in ("coroutine", "async generator")

    @property
    def yields(self) -> bool:
        """Whether ``yield`` is allowed."""
        return self.kind in ("generator", "async generator")

    def inner(self) -> Scope:
        """The scope of a block in it."""
        return replace(self, depth=self.depth + 1)

    def callees_of(self, *kinds: str) -> list[str]:
        """The names of the functions of these kinds that it may call."""
        return [name for name, kind in self.callees if kind in kinds]


class Writer:
    """Writes one program, choice by choice."""

    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int], options: Options) -> None:
        self._draw = draw
        self._options = options
        self._lines: list[str] = []
        self._level = 0
        self._identifier = 0
        self.keys: list[int] = []
        self.live_keys: list[int] = []

    # choices and text

    def number(self, most: int) -> int:
        """Choose a number from 0 to `most`."""
        return self._draw(st.integers(0, most))

    def one_of(self, choices: list[Value]) -> Value:
        """Choose one of these; the first is the simplest."""
        return choices[self.number(len(choices) - 1)]

    def chance(self, percent: int) -> bool:
        """Choose whether; no is simpler."""
        return self.number(99) >= 100 - percent

    def out(self, line: str) -> None:
        """Write a line."""
        self._lines.append("    " * self._level + line)

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Write what follows one level deeper."""
        self._level += 1
        yield
        self._level -= 1

    def fresh(self) -> int:
        """A number that no other call of this gives."""
        self._identifier += 1
        return self._identifier

    def text(self) -> str:
        """All that was written."""
        return "\n".join(self._lines) + "\n"

    def _key(self, *, live: bool = False) -> int:
        """A key for a failing call, or for a live object that fails, which an edit does not replace."""
        key = self.fresh()
        self.keys.append(key)
        if live:
            self.live_keys.append(key)
        return key

    # expressions, all of them of whole numbers

    def name(self) -> str:
        """Choose a variable."""
        return self.one_of(list(NAMES))

    def atom(self) -> str:
        """A variable or a constant."""
        return self.one_of([self.name(), str(self.number(3))])

    def crashing(self, inner: str) -> str:
        """The value itself, or a call that may fail and else gives it."""
        if not self._options.crashes or not self.chance(60):
            return inner
        key = self._key()
        forms = [f"⟨{key}⟩crash({inner}, key={key})", f"({inner} // ⟨{key}⟩unit(key={key}))"]
        if self._options.crashes_without_statement:
            forms.append(f"(lambda v: ⟨{key}⟩crash(v, key={key}) + 1)({inner})")
            forms.append(f"sum(⟨{key}⟩crash(v, key={key}) for v in (1, {inner}))")
        forms.append(f"[⟨{key}⟩crash(v, key={key}) for v in range(2)][-1]")
        forms.append(f"(sum([v + 1 for v in ⟨{key}⟩Stream(2, key={key})]) + {inner})")
        forms.append(f"len({{v: ⟨{key}⟩crash(v, key={key}) for v in ({inner}, 5)}})")
        return self.one_of(forms)

    def value(self, scope: Scope) -> str:
        """An expression in which calls may fail; nothing in it has a side effect."""
        del scope
        inner = self.crashing(self.atom())
        forms: list[Callable[[], str]] = [
            lambda: inner,
            lambda: f"{inner} + {self.atom()}",
            lambda: f"{self.atom()} - {inner}",
            lambda: f"({inner} & 7) * {self.number(3)}",
            lambda: f"({inner} if {self.atom()} > 1 else {self.crashing(self.atom())})",
            lambda: f"({self.atom()} or {inner})",
            lambda: f"({self.atom()} and {inner} and {self.crashing(self.atom())})",
            lambda: f"int({self.atom()} < {inner} <= {self.crashing(self.atom())} + 2)",
            lambda: f"int(not {inner})",
            lambda: f"len(f'{{{inner}!r:>{{{self.number(4) + 1}}}}}|{{{self.atom()}}}')",
            lambda: f"max(*[{inner}, 1], {self.crashing(self.atom())}, *(2,))",
            lambda: f"{{'k': {inner}, **{{'l': 1}}}}['k']",
            lambda: f"[0, 1, 2, 3][{inner} % 4]",
            lambda: f"(w := {inner}) + 1",
            lambda: f"work({inner}, key={self.atom()})",
            lambda: (
                f"work(\n{'    ' * (self._level + 2)}{self.atom()} +\n{'    ' * (self._level + 2)}{inner})"
            ),
        ]
        return self.one_of(forms)()

    def call(self, scope: Scope) -> str:
        """A call of one of the program's functions; it may do anything, so nothing in it fails by itself."""
        forms = [f"{name}({self.atom()}, {self.atom()})" for name in scope.callees_of("function")]
        for name in scope.callees_of("generator"):
            forms.append(f"sum({name}({self.atom()}, {self.atom()}))")
            forms.append(f"next({name}({self.atom()}, {self.atom()}), 0)")
            forms.append(f"sum([v * 2 for v in {name}({self.atom()}, 1)])")
        for name in scope.callees_of("coroutine"):
            forms.append(
                f"await {name}({self.atom()}, 1)" if scope.awaits else f"drive({name}({self.atom()}, 1))"
            )
        if scope.awaits:
            for name in scope.callees_of("async generator"):
                forms.append(f"sum([v async for v in {name}({self.atom()}, 1)])")
        return self.one_of(forms) if forms else f"say({self.fresh()}, {self.atom()})"

    # statements

    def block(self, scope: Scope, most: int = 3) -> None:
        """One statement or more."""
        with self.indented():
            for _ in range(1 + self.number(most - 1)):
                self.statement(scope.inner())

    def statement(self, scope: Scope) -> None:
        """Any statement."""
        if scope.depth >= MAX_DEPTH or self.chance(55):
            self.simple_line(scope)
        else:
            self.compound(scope)

    def simple_line(self, scope: Scope) -> None:
        """A line with one simple statement or several."""
        parts = [self.simple(scope)]
        if self.chance(20):
            parts.append(self.simple(scope))
        if self.chance(70):
            parts.append(f"say({self.fresh()}, a, b, c)")
        if "\n" not in "".join(parts) and self.chance(25):
            self.out("; ".join(parts))
        else:
            for part in parts:
                self.out(part)

    def simple(self, scope: Scope) -> str:
        """A simple statement."""
        target = self.name()
        forms: list[Callable[[], str]] = [
            lambda: f"say({self.fresh()}, {self.value(scope)})",
            lambda: f"{target} = {self.value(scope)}",
            lambda: f"{target} += {self.value(scope)}",
            lambda: f"d: int = {self.value(scope)}; {target} = d",
            lambda: f"{target} = {self.call(scope)}",
            lambda: f"table[{self.atom()}] = {self.value(scope)}",
            lambda: f"table[{self.number(2)}] += {self.value(scope)}",
            lambda: f"table[({self.value(scope)}) % 3] ^= {self.atom()}",
            lambda: f"box.x += {self.value(scope)}",
            lambda: f"a, b = {self.value(scope)}, {self.atom()}",
            lambda: f"(a, [b, *c]), box.x = ({self.value(scope)}, [1, 2]), {self.atom()}; c = len(c)",
            lambda: f"{target} = box.x = {self.value(scope)}",
            lambda: f"b = {self.value(scope)}; c = b",
            lambda: f"d = {self.value(scope)}; del d",
            lambda: f"items.append({self.value(scope)}); del items[0]",
            lambda: f"del table[({self.value(scope)}) * 0 + 9]; table[9] = {self.number(5)}",
            lambda: f"assert {self.value(scope)} is not None, 'text'",
            lambda: "import math, os.path as path; from math import floor",
            lambda: f"say_context({self.fresh()})",
        ]
        if scope.yields:
            forms.append(lambda: f"yield {self.value(scope)}")
            forms.append(lambda: f"{target} = (yield {self.value(scope)}) or 1")
        if scope.awaits:
            forms.append(lambda: f"await later({self.value(scope)})")
            forms.append(lambda: f"{target} = await later({self.value(scope)})")
        generators = scope.callees_of("generator")
        if scope.kind == "generator" and generators:
            forms.append(lambda: f"{target} = (yield from {self.one_of(generators)}({self.atom()}, 2)) or 0")
        if scope.handled and scope.leave:
            forms.append(lambda: f"expected({self.fresh()})")
            forms.append(lambda: f"{self.atom()} > 1 and expected({self.fresh()})")
        return self.one_of(forms)()

    def compound(self, scope: Scope) -> None:
        """A statement with blocks."""
        forms: list[Callable[[Scope], None]] = [
            self.branch,
            self.loop,
            self.counted_while,
            self.guarded,
            self.attempt,
            self.attempt_and_clean_up,
            self.matching,
            self.group,
            self.local_function,
            self.local_class,
            self.leaving,
        ]
        if scope.awaits:
            forms += [self.async_loop, self.async_guarded]
        self.one_of(forms)(scope)

    def branch(self, scope: Scope) -> None:
        """If, with elif and else."""
        self.out(f"if {self.value(scope)} > {self.number(2)}:")
        self.block(scope)
        if self.chance(40):
            self.out(f"elif {self.value(scope)}:")
            self.block(scope)
        if self.chance(40):
            self.out("else:")
            self.block(scope)

    def iterable(self, scope: Scope) -> tuple[str, str]:
        """A target and what it runs over."""
        target = self.name()
        key = self._key(live=True) if self._options.crashes else 0
        forms = [
            (target, f"range({self.number(2) + 1})"),
            (target, f"[{self.value(scope)}, 2]"),
            (target, f"(1, {self.value(scope)})"),
            (target, "sorted({2, 1})"),
            (target, "list(items)"),
            ("b, (c, *_)", f"[({self.value(scope)}, (1, 2)), (3, (4,))]"),
            (f"table[{self.number(2)}]", "range(2)"),
            ("box.x", "iter([1, 2])"),
            (target, f"(v + 1 for v in range({self.number(2)}))"),
            ("a, b", f"enumerate([{self.value(scope)}])"),
            ("_", "'xy'"),
            ("_", "b'x'"),
            (target, "{4: 5, 6: 7}"),
        ]
        if key:
            forms.append((target, f"⟨{key}⟩Stream(2, key={key})"))
        forms += [(target, f"{name}({self.atom()}, 2)") for name in scope.callees_of("generator")]
        return self.one_of(forms)

    def loop(self, scope: Scope) -> None:
        """For, with else."""
        target, iterable = self.iterable(scope)
        self.out(f"for {target} in {iterable}:")
        self.block(replace(scope, loop=True, leave=scope.leave or not scope.loop))
        self.loop_else(scope)

    def loop_else(self, scope: Scope) -> None:
        """The else of a loop."""
        if self.chance(30):
            self.out("else:")
            self.block(scope, 2)

    def async_loop(self, scope: Scope) -> None:
        """Async for, with else."""
        key = self._key(live=True) if self._options.crashes else 0
        forms = ["Calm(2)"]
        if key:
            forms.append(f"⟨{key}⟩Stream(2, key={key})")
        forms += [f"{name}({self.atom()}, 2)" for name in scope.callees_of("async generator")]
        self.out(f"async for {self.name()} in {self.one_of(forms)}:")
        self.block(replace(scope, loop=True))
        self.loop_else(scope)

    def counted_while(self, scope: Scope) -> None:
        """While, with a counter of its own that is counted first."""
        counter = f"n{self.fresh()}"
        self.out(f"{counter} = 0")
        condition = f"{counter} < {self.number(2) + 1}"
        if self.chance(40):
            condition += f" and {self.value(scope)} is not None"
        forever = self.chance(15)
        self.out("while True:" if forever else f"while {condition}:")
        with self.indented():
            self.out(f"{counter} += 1")
            if forever:
                self.out(f"if {counter} > 2:")
                self.out("    break")
        self.block(replace(scope, loop=True))
        self.loop_else(scope)

    def manager(self, scope: Scope, *, crashes: bool, exits: bool = True) -> str:
        """A context manager, entered with a failing call or not."""
        name = self.fresh()
        if crashes and self._options.crashes and self.chance(40):
            where = self.one_of(["enter", "exit"]) if exits else "enter"
            key = self._key(live=where == "exit")
            return f"⟨{key}⟩Guard({name}, {where!r}, key={key})"
        argument = f"({name}, {self.value(scope)})" if crashes else str(name)
        return f"Sound({argument})"

    def guarded(self, scope: Scope) -> None:
        """With, of one manager or two, or one that swallows the program's own exception."""
        if self.chance(15):
            self.out(f"with Swallow({self.fresh()}):")
            self.block(replace(scope, handled=True))
            return
        second = self.chance(30)
        header = f"{self.manager(scope, crashes=True)} as m"
        if second:
            header += f", {self.manager(scope, crashes=self._options.crashes_without_statement)}"
        self.out(f"with {header}:")
        self.block(scope)

    def async_guarded(self, scope: Scope) -> None:
        """Async with."""
        manager = self.manager(scope, crashes=True, exits=self._options.async_exits)
        self.out(f"async with {manager} as m:")
        self.block(scope)

    def attempt(self, scope: Scope) -> None:
        """Try with a clause that handles the program's own exception, with else and finally."""
        self.out("try:")
        self.block(replace(scope, handled=True))
        if self.chance(30):
            self.out("except KeyError:")
            self.block(scope, 1)
        clause = self.one_of(["Expected", "Expected as error", "(ValueError, Expected) as error"])
        self.out(f"except {clause}:")
        self.block(replace(scope, handling=True))
        if self.chance(30):
            self.out("else:")
            self.block(scope, 2)
        if self.chance(40):
            self.final(scope)

    def final(self, scope: Scope) -> None:
        """A finally body."""
        self.out("finally:")
        leaves = self._options.leaves_finally
        inner = replace(scope, leave=scope.leave and leaves, loop=scope.loop and leaves, handled=False)
        self.block(inner, 2)

    def attempt_and_clean_up(self, scope: Scope) -> None:
        """Try with clauses that match nothing or raise again, or with finally only."""
        self.out("try:")
        self.block(scope)
        form = self.number(3)
        if form == 0:
            self.final(scope)
            return
        if form == 1:
            self.out("except (KeyError, LookupError):")
            self.block(scope, 1)
        elif form == 2:
            self.out("except BaseException as error:")
            with self.indented():
                self.out(f"say({self.fresh()}, error)")
                self.out("raise")
        else:
            self.out("except:")
            with self.indented():
                self.out(f"say_context({self.fresh()})")
                self.out("raise")
        if self.chance(40):
            self.final(scope)

    def matching(self, scope: Scope) -> None:
        """Match."""
        forms: list[tuple[str, list[str]]] = [
            (self.value(scope), ["0 | 1", f"int(d) if {self.value(scope)} > 1", "_"]),
            (f"[{self.value(scope)}, b]", ["[0, *_]", "[a, b] if b", "[a, _]"]),
            (f"{{'k': {self.value(scope)}, 'l': a}}", ["{'m': _}", "{'k': b, **d} if d"]),
            ("box", ["Box(x=0)", "Box(x=a)"]),
        ]
        subject, cases = self.one_of(forms)
        self.out(f"match {subject}:")
        with self.indented():
            for case in cases:
                self.out(f"case {case}:")
                self.block(scope, 2)

    def group(self, scope: Scope) -> None:
        """Try with except*."""
        inner = replace(scope, leave=False, loop=False)
        self.out("try:")
        self.block(replace(inner, handled=True), 2)
        if self.chance(50):
            with self.indented():
                self.out(f"raise ExceptionGroup('g', [Expected({self.fresh()}), KeyError({self.fresh()})])")
        self.out("except* KeyError:")
        self.block(replace(inner, handled=False, handling=True), 1)
        self.out("except* Expected as error:")
        self.block(replace(inner, handled=False, handling=True), 2)

    def local_function(self, scope: Scope) -> None:
        """A closure, or a lambda, that is called at once or later."""
        name = f"local{self.fresh()}"
        if scope.kind in ("module", "class"):
            self.out(f"{name} = lambda v=a: say({self.fresh()}, v)")
            self.out(f"b = {name}()")
            return
        own = self.one_of(["function", "generator"])
        self.out(f"def {name}(p, q=a):")
        with self.indented():
            self.out("nonlocal a, b" if self.chance(60) else "a = b = q")
            self.out("c = p; w = 0")
            if own == "generator":
                self.out(f"yield {self.fresh()}")
        self.block(Scope(own, scope.callees, depth=scope.depth + 1), 2)
        with self.indented():
            self.out(f"{'yield' if own == 'generator' else 'return'} c")
        inner = replace(scope, callees=(*scope.callees, (name, own)))
        for _ in range(1 + self.number(1)):
            self.out(f"c = {self.call(replace(inner, callees=((name, own),)))}")
            self.out(f"say({self.fresh()}, a, b, c)")

    def local_class(self, scope: Scope) -> None:
        """A class whose body has statements, and a method."""
        number = self.fresh()
        self.out(f"class Local{number}:")
        with self.indented():
            self.out("a = b = c = 1; w = 0; table = {0: 0, 1: 1, 2: 2, 9: 9}; items = [3]; box = Box(x=2)")
        self.block(Scope("class", scope.callees, handled=scope.handled, depth=scope.depth + 1), 2)
        with self.indented():
            self.out("def method(self, a, b=2):")
            with self.indented():
                self.out("c = w = 0; table = {0: 0, 1: 1, 2: 2, 9: 9}; items = [3]; box = self")
                self.out("self.x = self.__class__.a")
        self._level += 1
        self.block(Scope("function", scope.callees, depth=scope.depth + 2), 2)
        self._level -= 1
        self.out(f"say({self.fresh()}, Local{number}().method(1))")

    def leaving(self, scope: Scope) -> None:
        """Break, continue, return, or raise."""
        forms = [f"say({self.fresh()}, 'stay')"]
        if scope.loop and (scope.leave or self._options.leaves_finally):
            forms += ["break", "continue"]
        if scope.returns:
            forms.append("return" if scope.kind == "async generator" else f"return {self.value(scope)}")
        if scope.handled:
            forms.append(f"raise Expected({self.fresh()})")
            if scope.handling and scope.leave:
                forms.append("raise")
        condition = self.one_of([f"{self.atom()} > 1", f"{self.value(scope)} != 1", "a == a"])
        self.out(f"if {condition}:")
        with self.indented():
            self.out(self.one_of(forms))
        self.out(f"say({self.fresh()})")

    # whole programs

    SETUP = "table = {0: 0, 1: 1, 2: 2, 9: 9}; items = [3]; box = Box(x=2); w = 0"

    def function(self, name: str, kind: str, callees: tuple[tuple[str, str], ...]) -> None:
        """A function of the module."""
        keyword = "async def" if kind in ("coroutine", "async generator") else "def"
        self.out(f"{keyword} {name}(a, b):")
        with self.indented():
            if self.chance(15):
                self.out('"""A docstring."""')
            if self.chance(20):
                self.out("global g; g += 1")
            self.out(f"c = {self.number(2)}; {self.SETUP}; say({self.fresh()}, a, b)")
            if kind in ("generator", "async generator") and self.chance(70):
                self.out("yield a")
        self.block(Scope(kind, callees, handled=self.chance(10)), 4)
        with self.indented():
            if kind in ("generator", "async generator"):
                self.out("yield c")
            self.out(f"say({self.fresh()}, a, b, c, table, box.x, items)")
            if kind != "async generator":
                self.out("return a + c")
        self.out("")

    def program(self) -> None:
        """A whole module."""
        self.out("import asyncio; g = 0")
        callees: tuple[tuple[str, str], ...] = ()
        for number in range(self.number(3)):
            kind = self.one_of(["function", "generator", "coroutine", "async generator"])
            self.function(f"f{number}", kind, callees)
            callees = (*callees, (f"f{number}", kind))
        if self.chance(40):
            self.out(f"a = b = c = 1; {self.SETUP}")
            self._level -= 1
            self.block(Scope("module", callees, depth=0), 3)
            self._level += 1
        self.function("main_function", "function", callees)
        self.out("def main():")
        with self.indented():
            self.out(f"say({self.fresh()}, main_function(1, 2), g)")
            for name, kind in callees:
                if kind == "coroutine":
                    self.out(f"say({self.fresh()}, asyncio.run({name}(2, 1)))")
            self.out("return g")


@st.composite
def programs(draw: st.DrawFn, options: Options = Options()) -> WrittenProgram:
    """Programs; see the module's description."""
    writer = Writer(lambda numbers: draw(numbers), options)
    writer.program()
    template = writer.text()
    keys = tuple(key for key in writer.keys if f"⟨{key}⟩" in template)
    return WrittenProgram(template, keys, tuple(key for key in keys if key not in writer.live_keys))
