"""What matters about one place in a code object to an exception that comes by there; worked out once and remembered."""

from __future__ import annotations

import inspect
import weakref
from types import CodeType, FrameType
from typing import Final, NamedTuple

from daifu_bc.analysis.code import ExceptionEntry
from daifu_bc.analysis.handlers import (
    CLAUSES,
    FINALLY,
    PLUMBING,
    WITH_EXIT,
    Clause,
    Handler,
    chain,
    thrown_in,
)
from daifu_bc.errors import CannotVaccinate
from daifu_bc.recovery.bodies import flow_of
from daifu_bc.recovery.callers import Site, site
from daifu_bc.recovery.carriers import carrier
from daifu_bc.recovery.lookups import text
from daifu_bc.recovery.managers import stops
from daifu_bc.recovery.places import locate, place_at


class Where(NamedTuple):
    """A place in a program."""

    function: str
    filename: str
    line: int

    def __str__(self) -> str:
        return f"line {self.line} of `{self.function}` ({self.filename})"


class Step:
    """One handler that an exception meets."""

    __slots__ = ("handler", "is_with", "lines", "passes", "where")

    def __init__(self, handler: Handler, where: Where, lines: dict[int, int]) -> None:
        self.handler = handler
        self.where = where
        self.is_with = handler.kind == WITH_EXIT
        self.lines = lines
        what = f"with {text(handler.manager)}" if self.is_with else "finally"
        self.passes = f"The `{what}` in {where} passes it on."

    def stops(self, frame: FrameType, kind: type[BaseException]) -> tuple[bool, str]:
        """Whether this `with` stops an exception."""
        return stops(self.handler, frame, kind)

    def clause_where(self, clause: Clause) -> Where:
        """Where a clause stands."""
        return self.where._replace(line=self.lines.get(clause.offset, self.where.line))

    def sentence(self, clause: Clause, how: str) -> str:
        """What a clause does to the exception."""
        star = "*" if clause.group else ""
        what = f"except{star}" if clause.bare else f"except{star} {text(clause.types)}"
        return (
            f"The `{what}` in {self.clause_where(clause)} {how or 'raises it again'}{' it' if how else ''}."
        )


class Spot:
    """A place in a code object.

    Attributes:
        where: the place, for people.
        steps: the handlers around it that do not belong to the interpreter, inner to outer.
        policy: how the frame counts if it is a carrier.
        site: what it does to those whom it calls.
        thrown_in: whether an exception here was thrown into a generator.
        is_del: whether it is in a `__del__`.
        ends_specially: whether an exception that leaves the frame may not go to its caller.
        matters: whether there are steps or a policy.
    """

    __slots__ = ("ends_specially", "is_del", "matters", "policy", "site", "steps", "thrown_in", "where")

    def __init__(self, where: Where, steps: tuple[Step, ...], policy: str | None, site: Site) -> None:
        self.where = where
        self.steps = steps
        self.policy = policy
        self.site = site
        self.matters = bool(steps) or policy is not None
        self.thrown_in = False
        self.is_del = False
        self.ends_specially = False

    def beyond(self, entry: ExceptionEntry | None) -> Spot:
        """The same place for an exception that would reach the handler of `entry` next."""
        steps = self.steps
        if entry is None:
            steps = ()
        else:
            for number, step in enumerate(steps):
                if step.handler.target == entry.target:
                    steps = steps[number:]
                    break
        copy = Spot(self.where, steps, self.policy, self.site)
        copy.is_del, copy.ends_specially = self.is_del, self.ends_specially
        return copy


_COROUTINES: Final = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE
#: By id of a code object, then by offset. An entry goes when its code object does, before the id can be another's.
_tables: dict[int, dict[int, Spot | None]] = {}
_guards: dict[int, weakref.ref[CodeType]] = {}

#: Functions, by module and qualified name, that put an exception of what they call elsewhere; see verdict.deliveries.
DELIVERING: Final = {("concurrent.futures.thread", "_WorkItem.run")}


def forget_spots() -> None:
    """Works everything out again when it is asked for."""
    _tables.clear()
    _guards.clear()


def spot_at(frame: FrameType, offset: int) -> Spot | None:
    """What matters at an offset of a frame's code; None if nothing can be told."""
    code = frame.f_code
    table = _tables.get(id(code))
    if table is None:
        table = _new_table(code)
    try:
        return table[offset]
    except KeyError:
        spot = table[offset] = _make(code, offset, frame.f_globals.get("__name__"))
        return spot


def _new_table(code: CodeType) -> dict[int, Spot | None]:
    key = id(code)

    def forget(
        _: object,
        tables: dict[int, dict[int, Spot | None]] = _tables,
        guards: dict[int, weakref.ref[CodeType]] = _guards,
    ) -> None:
        tables.pop(key, None)
        guards.pop(key, None)

    _guards[key] = weakref.ref(code, forget)
    table = _tables[key] = {}
    return table


def _make(code: CodeType, offset: int, module: object) -> Spot | None:
    original, there = locate(code, offset)
    policy = carrier(original, module)
    name = original.co_qualname
    if there < 0:
        return (
            None if policy is None else Spot(Where(name, original.co_filename, 0), (), policy, Site(-1, None))
        )
    try:
        flow = flow_of(original)
    except CannotVaccinate:
        return None
    place = place_at(flow, there)

    def line_at(at: int) -> int:
        best = original.co_firstlineno
        for start, stop, line in original.co_lines():
            if start <= at < stop and line is not None:
                best = line
        return best

    steps = []
    for handler in chain(flow, flow.instructions[place].offset):
        if handler.kind == PLUMBING:
            continue
        assert handler.kind in (CLAUSES, FINALLY, WITH_EXIT)
        lines = {clause.offset: line_at(clause.offset) for clause in handler.clauses}
        first = flow.instructions[min(flow.index[handler.target] + 1, len(flow.instructions) - 1)].offset
        steps.append(Step(handler, Where(name, original.co_filename, line_at(first)), lines))
    spot = Spot(Where(name, original.co_filename, line_at(there)), tuple(steps), policy, site(flow, place))
    generator = original.co_flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR)
    spot.thrown_in = bool(generator) and thrown_in(flow, place)
    spot.is_del = original.co_name == "__del__"
    delivers = type(module) is str and (module, name) in DELIVERING
    spot.ends_specially = spot.is_del or delivers or bool(original.co_flags & _COROUTINES)
    return spot
