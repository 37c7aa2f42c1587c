"""Where a dead frame can go on: the statement again, the one behind it, a line, with a value, with an exception."""

from __future__ import annotations

import ast
import inspect
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Final, NamedTuple

from daifu_bc.analysis.code import cells_at_start
from daifu_bc.analysis.flow import EXIT, EXIT_SELF, ITERATOR, VALUE, Flow, Stack
from daifu_bc.analysis.handlers import FINALLY, WITH_EXIT, chain, chain_from, handler_at
from daifu_bc.analysis.items import INDEX, SAVED
from daifu_bc.analysis.statements import Statement, Statements, parse
from daifu_bc.errors import BlocksFirst, NoPoint
from daifu_bc.recovery.finals import in_finally, in_try
from daifu_bc.rewrite.continuation import Start

_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
_WITHS: Final = (ast.With, ast.AsyncWith)
_KEPT: Final = 64
_tables: dict[int, tuple[weakref.ref[CodeType], Statements]] = {}


def statements_of(flow: Flow) -> Statements:
    """The statements of an analysed body; the most recent ones are kept."""
    known = _tables.get(id(flow.code))
    if known is not None and known[0]() is flow.code:
        return known[1]
    made = Statements(flow, parse(flow.code))
    if len(_tables) >= _KEPT:
        _tables.pop(next(iter(_tables)))
    _tables[id(flow.code)] = (weakref.ref(flow.code), made)
    return made


def forget(code: CodeType) -> None:
    """Drops what is kept of a pristine code object; it is worked out again if somebody asks."""
    _tables.pop(id(code), None)


def reached(place: int, ways: Callable[[int], Iterable[int]]) -> set[int]:
    """All places to which a way leads from one, itself included."""
    seen = {place}
    work = [place]
    while work:
        for following in ways(work.pop()):
            if following not in seen:
                seen.add(following)
                work.append(following)
    return seen


class _Covering(NamedTuple):
    kind: str
    target: int
    depth: int


def calls_exit(flow: Flow, place: int, held: Stack) -> bool:
    """Whether the exit of a `with`, which is all that is missing on the stack, is called from a place."""
    stack = flow.stacks[place] or ()
    lost = [flow.kind(item) for item in stack[len(held) :]]
    names = [instruction.name for instruction in flow.instructions[place : place + 3]]
    return (
        stack[: len(held)] == held
        and lost in ([EXIT], [EXIT, EXIT_SELF])
        and all("CONST" in name for name in names)
    )


def parameters(code: CodeType) -> frozenset[str]:
    """The names of a function's parameters."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return frozenset(code.co_varnames[:count])


class Restarts:
    """The ways on from one crash.

    Args:
        flow: the pristine body of the frame.
        place: the instruction that crashed.
        held: the structural items that are still there.
        bound: names that have a value.
        lost_exit: the `__exit__` that failed in this frame, if it can be told: it is no longer on the stack.
        left: whether the block in which it was raised has been left already.
        ended: whether it is a loop over a generator that has ended by the exception.
    """

    def __init__(
        self,
        flow: Flow,
        place: int,
        held: Stack,
        bound: frozenset[str],
        lost_exit: object | None = None,
        *,
        ended: bool = False,
        left: bool = False,
    ) -> None:
        self.lost_exit = lost_exit
        self.ended = ended
        self.left = left
        self.flow = flow
        self.place = place
        self.held = held
        # The locals of a module or a class are those of its comprehensions (3.12+), and none has a value between
        # statements, whatever the namespace says of their names.
        names = flow.code.co_varnames if flow.code.co_flags & inspect.CO_OPTIMIZED else ()
        self.bound = frozenset(name for name in names if name in bound) - set(cells_at_start(flow.code))
        self.statements = statements_of(flow)
        self.statement = self.statements.of[place]
        #: What there is to leave: a `with` whose __enter__ has failed has no exit to be called.
        self.open = held[: self._entered()]

    def line_of(self, place: int) -> int:
        """The line of the instruction at a place."""
        statement = self.statements.of[place]
        return statement.first if statement is not None else self.flow.code.co_firstlineno

    def start_at(self, place: int) -> Start:
        """The way on at a place, the blocks that are open there left if they do not reach so far."""
        return Start(place, self.open, self.bound)

    def _entered(self) -> int:
        """How many of the held items belong to blocks that have been entered."""
        flow = self.flow
        armed = {handler.depth for handler in self._covering() if handler.kind == WITH_EXIT}
        for index, item in enumerate(self.held):
            if flow.kind(item) == EXIT:
                after = index + (2 if self.held[index + 1 : index + 2] == ((EXIT_SELF, item[1]),) else 1)
                if after not in armed:
                    return index
        return len(self.held)

    def _covering(self) -> list[_Covering]:
        """The handlers around the crash, inner to outer, with the depth of the stack that they begin at."""
        found: list[_Covering] = []
        entry = self.flow.entry(self.place)
        while entry is not None and all(entry.target != other.target for other in found):
            handler = handler_at(self.flow, entry)
            found.append(_Covering(handler.kind, entry.target, entry.depth))
            entry = handler.outer
        return found

    def fits(self, place: int) -> bool:
        """Whether all that lies on the stack at a place has been kept."""
        stack = self.flow.stacks[place]
        return stack is not None and len(stack) <= len(self.held) and stack == self.held[: len(stack)]

    # -- pass --------------------------------------------------------------------------------------------------

    def retry(self) -> Start:
        """Where the crashed statement is repeated.

        Raises:
            NoPoint: it cannot be repeated exactly.
        """
        if self.ended:
            raise NoPoint(
                "the generator that the loop takes its elements from has ended by the exception, and would give no more",
                remedy="Hold inside it instead (vaccinate its module), `skip` the loop, or `goto` its line to begin anew.",
            )
        if self.left:
            raise NoPoint(
                "the statement cannot be repeated: its block has been left before the exception arrived here",
                remedy="Use `skip` to go on after that block, or `goto`.",
            )
        begin = self.statements.begin_of(self.place)
        if begin is not None and begin.stack == self.held[: len(begin.stack)]:
            return Start(begin.place, begin.stack, self.bound, half=begin.half)
        again = self._exit_again()
        if again is not None:
            return again
        stack = begin.stack if begin is not None else ()
        lost = stack[len(self.held) :]
        if begin is not None and calls_exit(self.flow, begin.place, self.held) and self.lost_exit is not None:
            # Handed over in its place, it is called again.
            return Start(begin.place, stack, self.bound, supplied=1)
        if any(self.flow.kind(item) == EXIT for item in lost):
            raise NoPoint(
                "the statement cannot be repeated: the `with` has already called its exit, and that failed",
                remedy="Use `skip` to go on after the `with`.",
            )
        if self.element() is not None:
            body = getattr(self.statement.node, "body", None) if self.statement is not None else None
            there = f" Or set the variables by an action, and `goto {body[0].lineno}`." if body else ""
            raise NoPoint(
                "the statement cannot be repeated: the loop has taken its next element, which could not be assigned to "
                "its variables, and Python has dropped it",
                remedy=f"Use `skip` to go on with the element behind it.{there}",
            )
        raise NoPoint(
            "there is no point at which this statement could be repeated exactly", remedy="Use `goto`."
        )

    def element(self) -> Stack | None:
        """What lies below a loop's next element, if the crash was in assigning that to the loop's variables."""
        begin = self.statements.begin_of(self.place)
        if begin is None or self.statements.of[begin.place] is not self.statement:
            return None
        kinds = [self.flow.kind(item) for item in begin.stack]
        below = begin.stack[:-1]
        in_loop = kinds[-2:-1] in ([ITERATOR], [INDEX]) and kinds[-1] == VALUE
        return below if in_loop and below == self.held[: len(below)] else None

    def _exit_again(self) -> Start | None:
        """The exit of a `with` that failed on an exception is called again with that exception."""
        flow = self.flow
        for entry in flow.entries:
            if handler_at(flow, entry).kind == WITH_EXIT and entry.depth == len(self.held):
                first = flow.index[entry.target]
                if first <= self.place <= first + 8 and flow.stacks[first][: entry.depth] == self.held:  # type: ignore[index]
                    return Start(self.place, self.held, self.bound, raises=True, entry=entry)
        return None

    # -- what the others need -----------------------------------------------------------------------------------------

    def base(self) -> Stack:
        """The stack before the crashed statement."""
        found = self.statements.base_of(self.place)
        statement = self.statement
        if statement is not None and isinstance(statement.node, ast.For | ast.AsyncFor):
            # What follows a clause in the loop's body leads to its head, too, so that nothing dominates that.
            for place in self.copy_that_crashed(set(self.region(statement))):
                if self.statements.of[place] is statement and self.statements.is_start(place):
                    stack = self.flow.stacks[place] or ()
                    found = stack if found is None or len(stack) < len(found) else found
        return found if found is not None and found == self.held[: len(found)] else self.held

    def region(self, statement: Statement) -> list[int]:
        """The places of a statement, those of the statements in it included."""
        return [
            place
            for place, owner in enumerate(self.statements.of)
            if owner is not None and owner.within(statement) and self.flow.stacks[place] is not None
        ]

    def copy_that_crashed(self, region: set[int]) -> set[int]:
        """The places of a region that hang together with the crash; empty if that is not in the region.

        The body of a `finally` stands in the bytecode once for each way into it.
        """
        ways: dict[int, set[int]] = {place: set() for place in region}
        for place in region:
            for after in self.flow.successors(place):
                if after in region:
                    ways[place].add(after)
                    ways[after].add(place)
        return reached(self.place, ways.__getitem__) if self.place in region else set()

    def copies(self) -> Iterator[set[int]]:
        """For each `finally` around the crash, the inner one first: the places of the copy of its body that is run."""
        statement = self.statement
        while statement is not None and statement.parent is not None:
            block = getattr(statement.parent.node, "finalbody", [])
            if statement.node in block:
                mine = [other for other in self.statements.all() if other.node in block]
                yield self.copy_that_crashed({place for other in mine for place in self.region(other)})
            statement = statement.parent

    def _in_same_copy(self, places: list[int]) -> list[int]:
        """Those of some places that lie in the copy of a `finally` that is being run; all if none do."""
        for copy in self.copies():
            if found := [place for place in places if place in copy]:
                return found
        return places

    def finally_between(self, target: int | None) -> set[int]:
        """Handlers of `finally` blocks that cover the crash, and not the target (None: leaving the function)."""
        flow = self.flow
        here = {
            handler.target
            for handler in chain(flow, flow.instructions[self.place].offset)
            if handler.kind == FINALLY
        }
        if target:
            here = {handler for handler in here if not in_finally(flow, self.statements, target, handler)}
        if target and flow.instructions[target].name == "NOP" and flow.entry(target) is None:
            # The table leaves out what cannot raise, such as the beginning of a `try` and a `pass`.
            return {handler for handler in here if not in_try(flow, self.statements, target, handler)}
        if target:
            here -= {
                handler.target for handler in chain_from(flow, flow.entry(target)) if handler.kind == FINALLY
            }
        return here

    # -- goto --------------------------------------------------------------------------------------------------------

    def goto(self, line: int) -> Start:
        """Where the statement of a line begins.

        Raises:
            NoPoint: there is none, or it lies in a block that is not open.
        """
        starts = [
            place
            for place, owner in enumerate(self.statements.of)
            if owner is not None and owner.first == line and self.statements.is_start(place)
        ]
        if not starts:
            lines = sorted(
                {owner.first for place, owner in enumerate(self.statements.of) if owner and self._open(place)}
            )
            some = ", ".join(map(str, lines[:12])) + (", ..." if len(lines) > 12 else "")
            raise NoPoint(
                f"no statement of {self.flow.code.co_name} begins on line {line}", remedy=f"Lines: {some}."
            )
        fitting = [place for place in starts if self.fits(place)]
        if not fitting:
            raise NoPoint(
                f"line {line} lies inside a loop, a `with`, an `except` or a `finally` that is not being run now",
                remedy="Choose the line where that block begins.",
            )
        # First those that keep an exception that is on its way through a `finally`.
        kinds = self.flow.kinds
        for place in sorted(self._in_same_copy(fitting), key=lambda place: -kinds(place).count(SAVED)):
            if not self.finally_between(place):
                return self.start_at(place)
        raise BlocksFirst(f"going on at line {line}")

    def restart(self) -> Start:
        """Where the function begins, with its parameters alone.

        Raises:
            NoPoint: it has no first statement.
        """
        starts = [
            place
            for place, stack in enumerate(self.flow.stacks)
            if stack == () and self.statements.is_start(place)
        ]
        if not starts:
            raise NoPoint(f"{self.flow.code.co_name} has no first statement", remedy="Use `goto`.")
        if self.finally_between(starts[0]):
            raise BlocksFirst(f"going on at line {self.line_of(starts[0])}")
        return Start(starts[0], self.open, self.bound & parameters(self.flow.code))

    def _open(self, place: int) -> bool:
        return self.statements.is_start(place) and self.fits(place) and not self.finally_between(place)

    # -- return, raise -------------------------------------------------------------------------------------------

    def returns_at_once(self) -> bool:
        """Whether no `finally` has to run on the way out of a function."""
        return self._is_body() or not self.finally_between(None)

    def _is_body(self) -> bool:
        return not self.flow.code.co_flags & inspect.CO_OPTIMIZED

    def give(self) -> Start:
        """Where the frame returns a value, its blocks left properly; no `finally` stands in the way.

        Raises:
            NoPoint: there is nobody to return to.
        """
        if self._is_body():
            raise NoPoint(
                "this is no function: nothing waits for its value", remedy="Use `skip`, `goto` or `exit`."
            )
        return Start(self.place, self.open, self.bound, returns=True)

    def raising(self) -> Start:
        """Where another exception is raised in the place of the held one."""
        entry = self.flow.entry(self.place)
        if entry is not None and entry.depth > len(self.held):
            entry = None
        return Start(self.place, self.held, self.bound, raises=True, entry=entry)
