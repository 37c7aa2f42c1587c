"""Frames that still run a replaced body go on in the new one, at their next statement that both have.

They are further out on a stack, run in other threads, or are generators and coroutines that wait. Their code is watched
until they come to such a statement; there the frame is taken to its barrier, as from a pause, and goes on elsewhere.
What is watched belongs to the old body alone, so nothing else is slower for it.
"""

from __future__ import annotations

import gc
import inspect
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import AsyncGeneratorType, CodeType, CoroutineType, FrameType, GeneratorType
from typing import Final

from daifu_bc.errors import DaifuError
from daifu_bc.recovery import unwinding
from daifu_bc.recovery.between import Paused, at_statement
from daifu_bc.recovery.bodies import body_of, flow_of, has_barriers, running
from daifu_bc.recovery.capture import Capture
from daifu_bc.recovery.correspondence import counterpart, further_variables
from daifu_bc.recovery.decision import Decision, Unwinding
from daifu_bc.recovery.frames import is_running_continuation
from daifu_bc.recovery.reach import taken_at
from daifu_bc.recovery.restarts import statements_of
from daifu_bc.recovery.transfer import Transfer
from daifu_bc.recovery.watching import CodeWatch, code_watch
from daifu_bc.recovery.ways import Moved, Ways
from daifu_bc.recovery.working import working
from daifu_bc.rewrite.barrier import pristine


@dataclass(frozen=True)
class Replaced:
    """A body that was replaced.

    Attributes:
        old: the code object that functions had.
        new: the pristine code object in its place.
        values: values of parameters that only the new one has.
    """

    old: CodeType
    new: CodeType
    values: dict[str, object] = field(default_factory=dict)


_RESUMABLE: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

_lock = threading.Lock()
#: By the id of the old pristine code.
_moves: dict[int, Replaced] = {}
_watch: CodeWatch | None = None


def follow(bodies: Iterable[Replaced], *, but: FrameType | None = None) -> tuple[int, int]:
    """Lets the frames that run old bodies go on in the new ones.

    Args:
        bodies: what was replaced.
        but: a frame that goes on in another way.

    Returns:
        How many frames are waited for, and how many others cannot be: on 3.11 those that are suspended.
    """
    global _watch
    known = {
        id(pristine(body.old)): body
        for body in bodies
        # Without source it cannot be told where they go on.
        if all(statements_of(flow_of(code)).function for code in (pristine(body.old), body.new))
    }
    if not known:
        return 0, 0
    with _lock:
        for body in known.values():
            for key, before in list(_moves.items()):
                if before.new is not pristine(body.old):
                    continue
                # What has not moved yet need not go by way of this body.
                if pristine(before.old) is body.new:
                    del _moves[key]
                else:
                    _moves[key] = Replaced(before.old, body.new, before.values | body.values)
    codes = [code for body in known.values() for code in running(body.old)]
    frames = [
        frame
        for frame in _active(codes)
        if frame is not but and has_barriers(frame.f_code) and not is_running_continuation(frame)
    ]
    if not frames:
        return 0, 0
    with _lock:
        _moves.update(known)
        if _watch is None:
            _watch = code_watch(_reached)
        count = _watch.add(frames)
        return count, len(frames) - count


def follow_sentence(bodies: Iterable[Replaced], but: FrameType | None) -> list[str]:
    """The same, and a sentence that says so if there are any frames."""
    known = list(bodies)
    notes = []
    further = {id(body): further_variables(pristine(body.old), body.new) for body in known}
    count, staying = follow([body for body in known if not further[id(body)]], but=but)
    if count:
        frames = "another active frame goes" if count == 1 else f"{count} other active frames go"
        notes.append(f"{frames} on in the new body at the next statement")
    if staying:
        frames = "an active frame keeps" if staying == 1 else f"{staying} active frames keep"
        notes.append(f"{frames} the old body: what waits cannot be watched by this Python")
    for body in known:
        names = ", ".join(sorted(further[id(body)]))
        if names and any(frame is not but for frame in _active(running(body.old))):
            notes.append(
                f"{body.new.co_qualname} uses {names} of the function around it now: a frame that runs it keeps the old "
                "body, the next call has the new one"
            )
    plain = [body.old for body in known if not has_barriers(body.old)]
    left = {frame.f_code.co_qualname for frame in _active(plain) if frame is not but} if plain else ()
    notes += [
        f"{name} was not vaccinated: a frame that runs it now keeps the old body, the next call has the new one"
        for name in sorted(left)
    ]
    return notes


def goes_on(body: CodeType, code: CodeType) -> None:
    """Takes note that a frame is going to run a body that was replaced, in a continuation of it."""
    if _watch is not None and id(body) in _moves:
        _watch.add_code(code)


def _active(codes: list[CodeType]) -> list[FrameType]:
    """The frames that run one of these code objects: on the stacks of all threads, and suspended ones."""
    wanted = {id(code) for code in codes}
    found: list[FrameType] = []
    frame: FrameType | None = None
    for inner in sys._current_frames().values():
        frame = inner
        while frame is not None:
            if id(frame.f_code) in wanted:
                found.append(frame)
            frame = frame.f_back
    # This function's own frame was among them: a frame that refers to itself keeps all frames around it alive.
    del frame, inner
    # All objects of the process are passed: not for code that can never be suspended.
    resumable = [code for code in codes if code.co_flags & _RESUMABLE]
    for thing in gc.get_referrers(*resumable) if resumable else ():
        kind = type(thing)
        waiting: FrameType | None = None
        if kind is GeneratorType:
            waiting = thing.gi_frame
        elif kind is CoroutineType:
            waiting = thing.cr_frame
        elif kind is AsyncGeneratorType:
            waiting = thing.ag_frame
        if waiting is not None and waiting not in found:
            found.append(waiting)
    return found


def _reached(frame: FrameType) -> bool:
    """Takes a frame to its barrier, if it can go on in the new body from here.

    Returns:
        Whether to ask again at this instruction.

    Raises:
        Paused: it goes on.
    """
    if working.busy or unwinding.under_way() is not None:
        return True
    known = _moves.get(id(body_of(frame.f_code)))
    captured = at_statement(frame) if known is not None else None
    if known is None or captured is None:
        return False
    flow = flow_of(known.new)
    moving = Paused("a surgery")
    try:
        place = counterpart(captured, flow)
    except DaifuError:
        return False
    if taken_at(frame, moving):
        return False
    moved = Moved(Transfer(flow, place), known.values)

    def decide(arrived: Capture, exception: BaseException) -> Decision:
        decision, _ = Ways(arrived, exception, None, moved).retry()
        if _watch is not None:
            _watch.moved(frame)
        return decision

    try:
        # Whatever speaks against it is to be known before the frame is touched.
        Ways(captured, moving, None, moved).retry()
    except DaifuError:
        return False
    unwinding.begin(Unwinding(frame, moving, decide))
    raise moving
