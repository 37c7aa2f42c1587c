"""The ways on from one frame: the one that crashed, or one further out that waits for what it called."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass, field, replace
from types import CellType, FrameType
from typing import Any, NamedTuple

from daifu_bc.analysis import editions
from daifu_bc.analysis.code import cells_at_start
from daifu_bc.analysis.flow import EXIT, Flow
from daifu_bc.analysis.handlers import chain
from daifu_bc.errors import BlocksFirst, NoPoint
from daifu_bc.recovery.attributes import context_of
from daifu_bc.recovery.bodies import continuation_from, runs_none
from daifu_bc.recovery.capture import Capture
from daifu_bc.recovery.correspondence import counterpart
from daifu_bc.recovery.decision import Decision
from daifu_bc.recovery.frames import failed_exit
from daifu_bc.recovery.giving import VALUE_NAME, return_through
from daifu_bc.recovery.restarts import Restarts, parameters, statements_of
from daifu_bc.recovery.skips import Skip
from daifu_bc.recovery.transfer import Transfer
from daifu_bc.rewrite.continuation import Start

#: How a frame goes on, and a sentence that says so.
Way = tuple[Decision, str]


class Place(NamedTuple):
    """A line at which a run would go on.

    Attributes:
        path: its file.
        line: its number.
        text: what stands there, as far as that is known.
        new: whether a surgery has put it in.
    """

    path: str
    line: int
    text: str
    new: bool


@dataclass
class Moved:
    """The body that a surgery has given to a frame.

    Attributes:
        to: where the frame goes on in it.
        values: parameters that it has and the running body has not.
    """

    to: Transfer
    values: dict[str, object] = field(default_factory=dict)


class Ways:
    """The ways on from one frame.

    Args:
        captured: the frame, as its barrier has caught it or will.
        exception: what arrives there.
        inner: the frame that it had called, if that was Python code.
        moved: the body that a surgery has given to it.
    """

    def __init__(
        self,
        captured: Capture,
        exception: BaseException,
        inner: FrameType | None,
        moved: Moved | None = None,
    ) -> None:
        self.captured = captured
        self.exception = exception
        self.moved = moved
        self._inner = inner

    @property
    def flow(self) -> Flow:
        """The body in which the frame goes on."""
        return self.captured.flow if self.moved is None else self.moved.to.flow

    def begin(self) -> int:
        """Where the present statement begins in that body, or the present instruction if that cannot be told."""
        if self.moved is not None:
            return self.moved.to.place
        begin = statements_of(self.flow).begin_of(self.captured.place)
        return self.captured.place if begin is None else begin.place

    def _restarts(self) -> Restarts:
        captured = self.captured
        names = frozenset(captured.frame.f_locals) if captured.code.co_varnames else frozenset[str]()
        moved = self.moved
        if moved is not None and moved.to.flow is not captured.flow:
            stack = moved.to.flow.stacks[moved.to.place] or ()
            names = frozenset(moved.to.renamed.get(name, name) for name in names)
            return Restarts(moved.to.flow, moved.to.place, stack, names | frozenset(moved.values))
        if self._ended_generator():
            return Restarts(captured.flow, captured.place, captured.items, names, ended=True)
        lost = failed_exit(self._inner)
        return Restarts(captured.flow, captured.place, captured.items, names, lost, left=captured.left)

    def _ended_generator(self) -> bool:
        """Whether a loop asked a generator for its next element, and that generator has ended by the exception."""
        if self._inner is None:
            return False
        flow, place = self.captured.flow, self.captured.place
        if self._inner.f_code.co_flags & inspect.CO_ASYNC_GENERATOR:
            statement = statements_of(flow).of[place]
            return statement is not None and isinstance(statement.node, ast.AsyncFor)
        generator = bool(self._inner.f_code.co_flags & inspect.CO_GENERATOR)
        return generator and flow.instructions[place].name == "FOR_ITER"

    def _decided(
        self,
        word: str,
        start: Start,
        last: list[Any] | None = None,
        flow: Flow | None = None,
        extra: dict[str, object] | None = None,
    ) -> Decision:
        flow = flow or self.flow
        # Built and verified now, so that a refusal is told here, and the hold stays.
        continuation_from(flow, start, runs=runs_none(self.captured.frame))
        values: dict[str, object] = {}
        renamed: dict[str, str] = {}
        cells: dict[str, CellType] = {}
        if self.moved is not None and flow is self.moved.to.flow:
            self._leave_first(self.moved.to, start)
            values, renamed, cells = self.moved.values, self.moved.to.renamed, self.moved.to.cells
        return Decision(
            word, start, flow, last or [], values | (extra or {}), renamed=renamed, cells=dict(cells)
        )

    def _leave_first(self, to: Transfer, start: Start) -> None:
        """Sees to it that blocks which the new body has not are left by the running one.

        Raises:
            BlocksFirst: they are open.
            NoPoint: more than these have been left.
        """
        if not to.leaves:
            return
        captured, kept = self.captured, len(to.flow.stacks[to.place] or ())
        flow, place = captured.flow, captured.place
        here = {handler.target for handler in chain(flow, flow.instructions[place].offset)}
        still_open = Restarts(flow, place, captured.items, frozenset()).open[kept:]
        if here & to.first or any(flow.kind(item) == EXIT for item in still_open):
            raise BlocksFirst(self._going_on(start))
        if len(captured.kinds) < kept:
            raise NoPoint("the block in which the run would go on has been left")

    def _retry_start(self) -> Start:
        moved = self.moved
        if moved is None:
            return self._restarts().retry()
        restarts = self._restarts()
        lost = len(restarts.held) > len(self.captured.items) and not moved.to.leaves
        return Start(moved.to.place, restarts.held, restarts.bound, supplied=int(lost))

    def where_next(self) -> str:
        """What `pass` would run, in a line.

        Raises:
            NoPoint: it cannot run anything.
        """
        line = self.line_next()
        new = " of the new code" if self.flow is not self.captured.flow else ""
        return f"at line {line}{new}{_text(self.flow, line)}"

    def line_next(self) -> int:
        """The line at which `pass` would go on, in the body in which the frame goes on.

        Raises:
            NoPoint: it cannot go on.
        """
        return self._restarts().line_of(self._retry_start().place)

    def place_next(self) -> Place:
        """The same, with the line's file and text.

        Raises:
            NoPoint: it cannot go on.
        """
        line, code = self.line_next(), self.flow.code
        new = self.flow is not self.captured.flow
        return Place(code.co_filename, line, _text(self.flow, line).removeprefix(": "), new)

    def move_to(self, flow: Flow, values: dict[str, object] | None = None) -> str:
        """Lets the frame go on in another body at the statement that corresponds to its own; a sentence if it cannot.

        Args:
            flow: the body.
            values: parameters that it has and the running body has not.
        """
        begin = statements_of(self.captured.flow).begin_of(self.captured.place)
        if begin is None:
            return f"{self.captured.code.co_qualname} goes on in the body that it runs"
        kinds = [self.captured.flow.kind(item) for item in begin.stack]
        there = replace(self.captured, place=begin.place, items=begin.stack, kinds=kinds)
        try:
            self.moved = Moved(Transfer(flow, counterpart(there, flow)), values or {})
        except NoPoint as error:
            return f"{self.captured.code.co_qualname} goes on in the body that it runs: {error}"
        return ""

    # -- verbs ---------------------------------------------------------------------------------------------------

    def retry(self) -> Way:
        """The statement again, or where a surgery has set the place."""
        start = self._retry_start()
        last = [failed_exit(self._inner)] if start.supplied else []
        if start.raises:  # what the exit of a `with` was called for
            last = [context_of(self.exception)]
        return self._decided("pass", start, last), f"going on {self.where_next()}"

    def skip(self, what: str = "") -> Way:
        """Behind the statement, or with the next iteration (`body`) or behind the loop (`loop`)."""
        skip = Skip(self._restarts())
        start = skip.body() if what == "body" else skip.loop() if what == "loop" else skip.start()
        if start.returns:
            return self._decided("skip", start, [None]), "going on at the end of the function"
        return self._decided("skip", start), self._going_on(start)

    def goto(self, line: int) -> Way:
        """At the statement of a line."""
        start = self._restarts().goto(line)
        return self._decided("goto", start), self._going_on(start)

    def at(self, place: int) -> Way:
        """At a place that was settled before blocks were left.

        Raises:
            BlocksFirst: some are still open.
        """
        restarts = self._restarts()
        if not restarts.fits(place) or restarts.finally_between(place):
            raise BlocksFirst("going on", place)
        start = restarts.start_at(place)
        return self._decided("goto", start), self._going_on(start)

    def restart(self) -> Way:
        """At the first statement of the function, with its parameters as they are now."""
        start = self._restarts().restart()
        code = self.flow.code
        fresh = frozenset(cells_at_start(code)) - frozenset(code.co_freevars) - parameters(code)
        decision = self._decided("restart", start)
        return replace(decision, fresh=fresh), self._going_on(start)

    def _going_on(self, start: Start) -> str:
        line = self._restarts().line_of(start.place)
        if self.flow.instructions[start.place].name == "RERAISE":
            return f"going on with the exception for which the `finally` around line {line} is run"
        return f"going on at line {line}{_text(self.flow, line)}"

    def give(self, value: object) -> Way:
        """The frame returns a value; its blocks are left properly."""
        text = f"{self.captured.code.co_qualname} returns {type(value).__name__}"
        body = Ways(self.captured, self.exception, self._inner)  # a surgery changes nothing in what is left
        restarts = body._restarts()
        if restarts.returns_at_once():
            return body._decided("return", restarts.give(), [value]), text
        try:
            flow, start = return_through(self.captured, restarts, has_value=value is not None)
        except NoPoint:
            raise BlocksFirst(text) from None
        return body._decided("return", start, flow=flow, extra={VALUE_NAME: value}), text

    def raising(self, word: str, error: BaseException) -> Decision:
        """Another exception in the place of the held one."""
        body = Ways(self.captured, self.exception, self._inner)
        return body._decided(word, body._restarts().raising(), [error])


def _text(flow: Flow, line: int) -> str:
    lines = editions.lines(flow.code)
    if not lines or not 0 < line <= len(lines):
        return ""
    return f": {lines[line - 1].strip()}"
