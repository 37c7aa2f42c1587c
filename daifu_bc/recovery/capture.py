"""What the barrier has caught: which instruction crashed, and which structural items are still there."""

from __future__ import annotations

import inspect
import opcode
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Final

from daifu_bc import pyversion
from daifu_bc.analysis.code import ExceptionEntry, entry_at, exception_entries
from daifu_bc.analysis.flow import Flow, Stack
from daifu_bc.errors import InternalError
from daifu_bc.recovery.attributes import traceback_of
from daifu_bc.recovery.bodies import flow_of, located
from daifu_bc.rewrite.barrier import pristine

_RAISE: Final = opcode.opmap["RAISE_VARARGS"]


@dataclass
class Capture:
    """A frame at a barrier.

    Attributes:
        frame: the frame.
        flow: the analysis of its pristine body.
        place: the instruction that crashed.
        items: the structural items that the stub will hand over.
        kinds: their kinds.
        left: whether the block that the exception was raised in has been left already, so that `place` only says where
            the exception went on from.
    """

    frame: FrameType
    flow: Flow
    place: int
    items: Stack
    kinds: list[str]
    left: bool = False

    @property
    def code(self) -> CodeType:
        """The pristine code object."""
        return self.flow.code

    @property
    def in_namespace(self) -> bool:
        """Whether its locals are a mapping of their own (class body, `exec`)."""
        optimized = self.code.co_flags & inspect.CO_OPTIMIZED
        return not optimized and self.frame.f_locals is not self.frame.f_globals

    @property
    def cannot_return_handover(self) -> bool:
        """Whether a continuation of this code, when it crashes again, may not be able to say so by what it returns.

        What a generator returns while it is being closed is thrown away.
        """
        kinds = inspect.CO_ASYNC_GENERATOR | inspect.CO_GENERATOR | inspect.CO_COROUTINE
        return self.in_namespace or bool(self.code.co_flags & kinds)


def capture(frame: FrameType, exception: BaseException, *, left: bool = False) -> Capture:
    """Reads off which stub of `frame` is asking, and for which instruction.

    Args:
        frame: a frame whose current instruction lies in a stub.
        exception: what arrived there.
        left: whether it has come by another barrier of this frame before, so that a block lies behind it.

    Raises:
        InternalError: the frame is not in a stub.
    """
    code = frame.f_code
    known = located(code)
    if known is not None:
        flow = known.flow
        first, behind = known.shift, known.body_end
    else:
        flow = flow_of(pristine(code))
        first, behind = 0, len(flow.code.co_code)
    entries = exception_entries(code.co_exceptiontable)
    here = frame.f_lasti
    # Barriers lead to stubs behind the body; the one that asks begins at the last such target before here.
    stub = max((entry.target for entry in entries if behind <= entry.target <= here), default=-1)
    if stub < 0:
        raise InternalError("a barrier's code runs outside its stub")
    mine = [entry for entry in entries if entry.target == stub and first <= entry.start < behind]
    if not mine:
        raise InternalError("no instruction is covered by the barrier that asks")
    depth = mine[0].depth
    raised = _raised_at(frame, exception)

    def place_of(offset: int) -> int:
        if known is not None:
            offset = known.pristine_offset(offset)
        return flow.place_at(offset) if offset >= 0 else -1

    arrived = place_of(mine[0].start)
    place = place_of(raised) if raised >= 0 and not left else -1
    if place < 0 or not (_asked_for(flow, place, raised, mine) or _same(flow, place, arrived, depth)):
        # A bare `raise`, or a re-raise out of a block whose items are gone.
        place = arrived
        left = left or flow.instructions[place].opcode != _RAISE
    items = (flow.stacks[place] or ())[:depth]
    return Capture(frame, flow, place, items, [flow.kind(item) for item in items], left)


def foresee(frame: FrameType) -> Capture:
    """The capture of an exception that will come out of what a frame with barriers has called.

    Args:
        frame: a frame that is on the stack and not in a stub.

    Raises:
        InternalError: it is in code of ours.
    """
    known = located(frame.f_code)
    flow = known.flow if known is not None else flow_of(pristine(frame.f_code))
    offset = frame.f_lasti if known is None else known.pristine_offset(frame.f_lasti)
    if not 0 <= offset < len(flow.code.co_code):
        raise InternalError(f"{frame.f_code.co_qualname} is not at an instruction of its own")
    place = flow.place_at(offset)
    items = (flow.stacks[place] or ())[: flow.held_depth(place)]
    return Capture(frame, flow, place, items, [flow.kind(item) for item in items])


def leads_to_barrier(code: CodeType, entry: ExceptionEntry) -> bool:
    """Whether an entry of the exception table of code with barriers leads to one of these.

    Args:
        code: the vaccinated code, or a continuation.
        entry: the entry; it covers an instruction of the body.
    """
    known = located(code)
    return entry.target >= (
        known.body_end if known is not None else len(flow_of(pristine(code)).code.co_code)
    )


def _asked_for(flow: Flow, place: int, raised: int, mine: list[ExceptionEntry]) -> bool:
    """Whether these entries cover an instruction: the unit that CPython looks at when that raises."""
    if entry_at(mine, raised) is not None:
        return True
    instruction = flow.instructions[place]
    before = raised - (instruction.offset - instruction.start) - 2
    return pyversion.LOOKS_BEFORE_CALL and before >= 0 and entry_at(mine, before) is not None


def _raised_at(frame: FrameType, exception: BaseException) -> int:
    traceback = traceback_of(exception)
    return traceback.tb_lasti if traceback is not None and traceback.tb_frame is frame else -1


def _same(flow: Flow, place: int, arrived: int, depth: int) -> bool:
    """Whether what is held where the exception arrived is all that the block of the raising instruction keeps.

    What a handler finds on the stack is what lay there at the raise, less what was above: with as many items of the
    same kinds they are the same items (`arrived` may be another place that shares the barrier).
    """
    stack = flow.stacks[place]
    return (
        stack is not None
        and flow.held_depth(place) == depth
        and flow.kinds(place)[:depth] == flow.kinds(arrived)[:depth]
    )
