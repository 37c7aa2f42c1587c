"""The continuation oracle: at each restart point that a run reaches, go on in a continuation.

Nothing in the engine knows of it. Calls stand before the restart points (`instrument`); one that fires raises an
exception that nobody handles, the frame is held like any other, and whoever answers decides to go on behind the
call, in the code with the calls or in the program's own.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from types import CodeType

from daifu_bc.analysis.flow import Flow
from daifu_bc.recovery.bodies import continuation_from, runs_none
from daifu_bc.recovery.decision import Decision
from daifu_bc.recovery.hold import Hold
from daifu_bc.rewrite.barrier import vaccinate_code
from daifu_bc.rewrite.continuation import Start
from fuzz.instrument import Spot, called_at, calls_whose_state_is_kept, with_calls


class Reached(BaseException):
    """Says that a restart point has been reached; no program names it."""

    def __init__(self, call: Call) -> None:
        super().__init__(call.spot.name)
        self.call = call


@dataclass(frozen=True)
class Choice:
    """At which restart points a run goes on in a continuation.

    Attributes:
        seed: chooses with `share`.
        share: at how many of a hundred restart points.
        times: at which executions of each: the first so many.
        only: names of spots; if there are any, at these alone.
        own_code: of how many of a hundred spots the continuation is made from the program's own code.
    """

    seed: int = 0
    share: int = 100
    times: int = 1
    only: tuple[str, ...] = ()
    own_code: int = 25

    def takes(self, spot: Spot) -> bool:
        """Whether the spot is one of them."""
        if self.only:
            return spot.name in self.only
        return self._draw(spot, "share") < self.share

    def in_own_code(self, spot: Spot) -> bool:
        """Whether to go on in the program's own code, without calls."""
        return self._draw(spot, "own") < self.own_code

    def _draw(self, spot: Spot, what: str) -> int:
        return zlib.crc32(f"{self.seed}/{what}/{spot.name}".encode()) % 100


class Call:
    """What is called before a restart point."""

    def __init__(self, observer: Observer, spot: Spot) -> None:
        self.spot = spot
        self._observer = observer
        self.count = 0

    def __call__(self) -> None:
        """Stop here, if this is to be one of the places."""
        self._observer.reached(self)


@dataclass
class Observer:
    """Follows one run.

    Attributes:
        choice: where to go on in a continuation.
        excluded: spots at which this cannot be done.
        gone_on: spots at which it was done.
        pending: a call that was to be held and has not been.
        failed: why going on was refused.
        spoiled: why this run says nothing.
    """

    choice: Choice
    excluded: set[str] = field(default_factory=set)
    gone_on: list[str] = field(default_factory=list)
    pending: Call | None = None
    failed: list[str] = field(default_factory=list)
    spoiled: list[str] = field(default_factory=list)
    _kept: set[object] = field(default_factory=set)

    def prepared(self, code: CodeType) -> CodeType:
        """A module's code with the calls, vaccinated."""
        return with_calls(code, lambda spot: Call(self, spot), self._vaccinated)

    def _vaccinated(self, code: CodeType) -> CodeType:
        self._kept |= calls_whose_state_is_kept(code)
        return vaccinate_code(code, recursive=False)

    def reached(self, call: Call) -> None:
        """Called before each restart point."""
        if self.pending is not None:
            return  # clauses of the program look at the exception on its way to a barrier
        call.count += 1
        spot = call.spot
        if self.spoiled or call.count > self.choice.times or call not in self._kept:
            return
        if spot.name in self.excluded or not self.choice.takes(spot):
            return
        self.pending = call
        raise Reached(call)

    def end(self) -> None:
        """The run is over."""
        if self.pending is not None:
            self.spoiled.append(f"not held: {self.pending.spot}")
            self.excluded.add(self.pending.spot.name)

    def respond(self, hold: Hold) -> None:
        """Answers a hold."""
        exception = hold.exception
        if not isinstance(exception, Reached):
            hold.let_go()
            return
        call = exception.call
        self.pending = None
        captured = hold.captured
        flow, place = captured.flow, captured.place + 2
        elsewhere = called_at(flow, captured.place) is not call
        if elsewhere or captured.items != flow.stacks[place]:
            self.spoiled.append(f"held {'elsewhere' if elsewhere else 'without its state'}: {call.spot}")
            self.excluded.add(call.spot.name)
            hold.let_go()
            return
        if self.choice.in_own_code(call.spot):
            flow, place = call.spot.flow, call.spot.place
        try:
            hold.decision = go_on(hold, flow, place)
        except Exception as error:
            self.failed.append(f"{call.spot}: {type(error).__name__}: {error}")
            hold.let_go()
            return
        self.gone_on.append(call.spot.name)


def go_on(hold: Hold, flow: Flow, place: int) -> Decision:
    """Goes on at a place of a body."""
    frame = hold.captured.frame
    names = frozenset(frame.f_locals) if flow.code.co_varnames else frozenset[str]()
    bound = (names & frozenset(flow.code.co_varnames)) - frozenset(flow.code.co_cellvars)
    start = Start(place, flow.stacks[place] or (), bound)
    continuation_from(flow, start, runs=runs_none(frame))
    return Decision("here", start, flow)
