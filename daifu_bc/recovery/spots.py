"""What matters about one place in a code object to an exception that comes by there; worked out once and remembered."""

from __future__ import annotations

import inspect
import weakref
from types import CodeType, FrameType
from typing import Final, NamedTuple

from daifu_bc.analysis.flow import Flow
from daifu_bc.analysis.handlers import (
    PLUMBING,
    WITH_EXIT,
    Clause,
    Handler,
    chain,
    chain_from,
    is_broad,
    thrown_in,
)
from daifu_bc.errors import CannotVaccinate
from daifu_bc.recovery.bodies import flow_of
from daifu_bc.recovery.callers import ASKED, Site, site
from daifu_bc.recovery.carriers import carrier
from daifu_bc.recovery.flight import meetings_of
from daifu_bc.recovery.lookups import text
from daifu_bc.recovery.places import around_prefix, comes_again, displaced, locate, place_at


class Where(NamedTuple):
    """A place in a program."""

    function: str
    filename: str
    line: int

    def __str__(self) -> str:
        return f"line {self.line} of `{self.function}` ({self.filename})"


class Verdict(NamedTuple):
    """The answer.

    Attributes:
        hold: whether nobody is going to handle the exception.
        reasons: what was found on the way outward, sentences.
        handler: where it is going to be handled, if a handler in Python is known.
    """

    hold: bool
    reasons: tuple[str, ...]
    handler: Where | None = None


_MOST_VERDICTS: Final = 64


class Step:
    """One handler that an exception meets."""

    __slots__ = ("_verdicts", "handler", "is_with", "lines", "meetings", "narrow", "passes", "where")

    def __init__(self, handler: Handler, where: Where, lines: dict[int, int]) -> None:
        self.handler = handler
        self.where = where
        self.is_with = handler.kind == WITH_EXIT
        self.lines = lines
        self.meetings = meetings_of(handler)
        #: Without the clauses that take whatever comes.
        self.narrow = tuple(one for one in self.meetings if not is_broad(one.clause))
        what = f"with {text(handler.manager)}" if self.is_with else "finally"
        self._verdicts: dict[tuple[int, str, tuple[str, ...]], Verdict] = {}
        self.passes = f"The `{what}` in {where} passes it on."

    def verdict(self, clause: Clause, how: str, before: tuple[str, ...] = ()) -> Verdict:
        """The verdict where this clause takes the exception.

        Args:
            clause: one of the handler's.
            how: "handles", "may handle"; empty if the clause raises it again.
            before: sentences about what was met before.
        """
        key = (clause.offset, how, before)
        known = self._verdicts.get(key)
        if known is None:
            if len(self._verdicts) > _MOST_VERDICTS:
                self._verdicts.clear()
            where = self.where._replace(line=self.lines.get(clause.offset, self.where.line))
            star = "*" if clause.group else ""
            what = f"except{star}" if clause.bare else f"except{star} {text(clause.types)}"
            sentence = f"The `{what}` in {where} {how or 'raises it again'}{' it' if how else ''}."
            known = self._verdicts[key] = Verdict(False, (*before, sentence), where)
        return known


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
        again: whether what has arrived here has been judged at another barrier of the frame; not told of frames that
            may have been suspended since, and go on elsewhere.
        asks: whether the interpreter may call it to ask for something, and take an error for an answer.
    """

    __slots__ = (
        "_targets",
        "again",
        "asks",
        "ends_specially",
        "is_del",
        "matters",
        "policy",
        "site",
        "steps",
        "thrown_in",
        "where",
    )

    def __init__(self, where: Where, steps: tuple[Step, ...], policy: str | None, site: Site) -> None:
        self.where = where
        self.steps = steps
        self.policy = policy
        self.site = site
        self.matters = bool(steps) or policy is not None
        self.thrown_in = False
        self.again = False
        self.asks = True
        self.is_del = False
        self._targets: frozenset[int] | None = None
        self.ends_specially = False

    @property
    def targets(self) -> frozenset[int]:
        """Where the handlers of the steps begin."""
        if self._targets is None:
            self._targets = frozenset(step.handler.target for step in self.steps)
        return self._targets

    def without(self, count: int) -> Spot:
        """The same place without its innermost handlers."""
        copy = Spot(self.where, self.steps[count:], self.policy, self.site)
        copy.is_del, copy.ends_specially, copy.asks = self.is_del, self.ends_specially, self.asks
        return copy


_COROUTINES: Final = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR
_SUSPENDED: Final = _COROUTINES | inspect.CO_GENERATOR
#: By offset; for what has arrived by where the frame is and where the exception came from.
_Table = dict[int | tuple[int, int], Spot]
#: By id of a code object. An entry goes when its code object does, before the id can be another's.
tables: dict[int, _Table] = {}
_guards: dict[int, weakref.ref[CodeType]] = {}

#: Functions, by module and qualified name, that put an exception of what they call elsewhere; see verdict.deliveries.
DELIVERING: Final = {("concurrent.futures.thread", "_WorkItem.run")}


def forget_spots() -> None:
    """Works everything out again when it is asked for."""
    tables.clear()
    _guards.clear()


def spot_at(frame: FrameType, offset: int) -> Spot:
    """What matters at an offset of a frame's code."""
    code = frame.f_code
    table = tables.get(id(code))
    if table is None:
        table = _new_table(code)
    try:
        return table[offset]
    except KeyError:
        spot = table[offset] = _make(code, offset, frame.f_globals.get("__name__"))
        return spot


def _new_table(code: CodeType) -> _Table:
    key = id(code)

    def forget(
        _: object,
        tables: dict[int, _Table] = tables,
        guards: dict[int, weakref.ref[CodeType]] = _guards,
    ) -> None:
        tables.pop(key, None)
        guards.pop(key, None)

    _guards[key] = weakref.ref(code, forget)
    table = tables[key] = {}
    return table


def arrival(frame: FrameType, offset: int) -> Spot:
    """What an exception meets next that has arrived in this frame.

    Args:
        frame: the frame, which may be at a barrier.
        offset: where in its code the exception was raised, or came out of a call.
    """
    code = frame.f_code
    table = tables.get(id(code))
    if table is None:
        table = _new_table(code)
    here = frame.f_lasti
    try:
        return table[here, offset]
    except KeyError:
        spot = spot_at(frame, offset)
        if not spot.thrown_in:
            spot = _behind_barrier(frame, here) or spot
            spot.again = not code.co_flags & _SUSPENDED and comes_again(code, offset, here)
        table[here, offset] = spot
        return spot


def _behind_barrier(frame: FrameType, here: int) -> Spot | None:
    """What an exception meets next that has arrived at a barrier of this frame; None if the frame is at none."""
    code = frame.f_code
    original, there = locate(code, here)
    if there >= 0:
        return None
    flow = flow_of(original)
    where = Where(original.co_qualname, original.co_filename, original.co_firstlineno)
    module = frame.f_globals.get("__name__")
    steps = _steps(flow, chain_from(flow, displaced(code, here, flow)), where)
    spot = Spot(where, steps, carrier(original, module), Site(-1, None))
    _mark(spot, original, module)
    return spot


def _make(code: CodeType, offset: int, module: object) -> Spot:
    original, there = locate(code, offset)
    policy = carrier(original, module)
    where = Where(original.co_qualname, original.co_filename, _line_at(original, max(there, 0)))
    try:
        flow = flow_of(original)
    except CannotVaccinate:
        flow = None
    if flow is None:
        spot = Spot(where, (), policy, Site(-1, None))
    elif there < 0:
        steps = _steps(flow, chain_from(flow, around_prefix(code, offset, flow)), where)
        spot = Spot(where, steps, policy, Site(-1, None))
    else:
        place = place_at(flow, there)
        handlers = chain(flow, flow.instructions[place].offset)
        spot = Spot(where, _steps(flow, handlers, where), policy, site(flow, place))
        generator = original.co_flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR)
        spot.thrown_in = bool(generator) and thrown_in(flow, place)
    _mark(spot, original, module)
    return spot


def _mark(spot: Spot, code: CodeType, module: object) -> None:
    spot.asks = code.co_name in ASKED
    spot.is_del = code.co_name == "__del__"
    delivers = type(module) is str and (module, code.co_qualname) in DELIVERING
    spot.ends_specially = spot.is_del or delivers or bool(code.co_flags & _COROUTINES)


def _steps(flow: Flow, handlers: list[Handler], where: Where) -> tuple[Step, ...]:
    steps = []
    for handler in handlers:
        if handler.kind == PLUMBING:
            continue
        lines = {clause.offset: _line_at(flow.code, clause.offset) for clause in handler.clauses}
        first = flow.instructions[min(flow.index[handler.target] + 1, len(flow.instructions) - 1)].offset
        steps.append(Step(handler, where._replace(line=_line_at(flow.code, first)), lines))
    return tuple(steps)


def _line_at(code: CodeType, offset: int) -> int:
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno
