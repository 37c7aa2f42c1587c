"""An exception that a signal's handler has raised: the statement that it stopped has not failed, it was interrupted.

As long as the handler's frame is alive, all is well: when it returns, the program goes on behind the interrupted
instruction as if nothing had been. A handler that is not vaccinated is dead when its exception is held, and what the
interrupted instruction has done is known only of those that do nothing but jump.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NamedTuple

from daifu_bc.errors import NoPoint
from daifu_bc.recovery.attributes import traceback_of
from daifu_bc.recovery.bodies import body_of, is_ours
from daifu_bc.recovery.callers import called_by_name
from daifu_bc.recovery.capture import Capture
from daifu_bc.recovery.signals import only_interrupts, program_handler
from daifu_bc.recovery.spots import spot_at
from daifu_bc.recovery.working import code_of
from daifu_bc.rewrite.barrier import PART_OF_STATEMENT


class Interruption(NamedTuple):
    """What a signal has interrupted.

    Attributes:
        signal: its name.
        frame: where the program was.
        line: at which line.
        handler: the handler's frame, if it can still return.
    """

    signal: str
    frame: FrameType
    line: int
    handler: FrameType | None

    @property
    def says_nothing(self) -> bool:
        """Whether the handler does nothing but raise KeyboardInterrupt."""
        if self.handler is None:
            return False
        body = body_of(self.handler.f_code)
        return any(code is not None and body_of(code) is body for code in map(code_of, only_interrupts))

    @property
    def sentence(self) -> str:
        """What a person is told."""
        name = self.frame.f_code.co_qualname
        return f"The handler of {self.signal} raised it; line {self.line} of `{name}` was only interrupted."


def interruption(held: FrameType, exception: BaseException) -> Interruption | None:
    """What the handler of a signal has interrupted by this exception, if that is where it comes from.

    Args:
        held: the frame that is held.
        exception: what was raised.
    """
    if threading.current_thread() is not threading.main_thread():
        return None
    handlers = dict(_handlers())
    if not handlers:
        return None
    frame: FrameType | None = held
    while frame is not None:
        name, outer = handlers.get(id(body_of(frame.f_code))), frame.f_back
        by_us = outer is not None and is_ours(outer)  # where we stand before the handler
        while outer is not None and is_ours(outer):
            outer = outer.f_back
        if name and outer is not None and (by_us or not _called(frame, outer, outer.f_lasti)):
            while outer.f_code.co_name in PART_OF_STATEMENT and outer.f_back is not None:
                outer = outer.f_back
            return Interruption(name, outer, outer.f_lineno or 0, frame)
        frame = outer
    entry = traceback_of(exception)
    while entry is not None and entry.tb_frame is not held:
        entry = entry.tb_next
    interrupted = entry
    while entry is not None and entry.tb_next is not None:
        inner, by_us = entry.tb_next.tb_frame, is_ours(entry.tb_frame)
        interrupted = interrupted if by_us else entry
        name = handlers.get(id(body_of(inner.f_code)))
        if name and interrupted and (by_us or not _called(inner, entry.tb_frame, entry.tb_lasti)):
            return Interruption(name, interrupted.tb_frame, interrupted.tb_lineno or 0, None)
        entry = entry.tb_next
    return None


def _handlers() -> Iterator[tuple[int, str]]:
    """The program's handlers by the ids of their pristine code, with the names of their signals."""
    for number in signal.valid_signals():
        code = code_of(program_handler(signal.getsignal(number)))
        if code is not None:
            yield id(body_of(code)), signal.Signals(number).name if number in _NAMED else f"signal {number}"


_NAMED = frozenset(signal.Signals)


def _called(inner: FrameType, outer: FrameType, offset: int) -> bool:
    """Whether the program itself has called a handler."""
    return called_by_name(inner, outer, spot_at(outer, offset).site)


def behind(captured: Capture, found: Interruption) -> int:
    """The place behind the instruction that was interrupted, which the handler's exception has left.

    Args:
        captured: the frame that is held.
        found: what was interrupted.

    Raises:
        NoPoint: nobody knows how far the instruction had come.
    """
    flow, place = captured.flow, captured.place
    instruction = flow.instructions[place]
    jumps = captured.frame is found.frame and not captured.left
    if jumps and instruction.name == "JUMP_BACKWARD" and instruction.target is not None:
        target = flow.index[instruction.target]
        # Up to 3.12 CPython looks up the handler of what comes before the target, so that the loop's iterator is lost.
        if flow.stacks[target] == captured.items:
            return target
    raise NoPoint(
        "the statement was interrupted and has not failed; how far it had come is not known",
        remedy="`skip` goes on behind it, `goto LINE` runs it again.",
    )


def raises_itself(captured: Capture) -> bool:
    """Whether a frame was held at a `raise`, which would only raise again."""
    return captured.flow.instructions[captured.place].name == "RAISE_VARARGS"
