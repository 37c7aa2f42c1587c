"""Answers to "is it a crash?", and what is remembered of them between two frames: numbers, no objects of the program."""

from __future__ import annotations

import sys
import weakref
from threading import get_ident
from types import FrameType, TracebackType
from typing import Final, NamedTuple

from daifu_bc.recovery.attributes import traceback_of
from daifu_bc.recovery.spots import Verdict

__all__ = [
    "Memory",
    "Route",
    "Verdict",
    "leave_alone",
    "memories",
    "new_memory",
    "recall",
    "remember",
    "was_let_go",
]


class Route(NamedTuple):
    """One way that an exception takes from the end of a task or of a thread's work to those who wait for it.

    Attributes:
        frames: the suspended or waiting frames that it will arrive in, inner to outer.
        outward: whether the frames around the last one come next.
        group: whether it arrives in an exception group.
        handled: a sentence, if somebody takes it without raising it again.
        reason: a sentence on who waits.
        skipped: how many of the handlers in the first frame it does not meet.
    """

    frames: tuple[FrameType, ...]
    outward: bool
    group: bool
    handled: str = ""
    reason: str = ""
    skipped: int = 0


_MOST_STEPS: Final = 64
_MOST_LET_GO: Final = 8
#: After so many new threads, what belonged to those that have ended is dropped.
_THREADS: Final = 64

_NONE: Final = Verdict(False, ())
_LET_GO: Final = Verdict(False, ("It has been let go.",))


class _LetGo:
    """An exception that was let go. Few built-in exceptions can be referred to weakly; the others are told by ids.

    Those may be another exception's at the same place, in the next round of a loop. But an exception comes by each
    barrier only once.

    Attributes:
        weak: a reference to it, if it allows one.
        entry: the id of its traceback's entry where it was last seen, with what that entry has.
        barrier: where in that entry's frame it was seen.
    """

    __slots__ = ("barrier", "entry", "weak")

    def __init__(self) -> None:
        self.weak: weakref.ref[BaseException] | None = None
        self.entry: tuple[int, int, int, int] = (0, 0, 0, 0)
        self.barrier = -1


class Memory:
    """The last answer in a thread, told again while the same exception goes on outward to the same handler.

    Each exception that a frame with a barrier lets out was judged there, and each judgement writes or wipes the memory.
    So a memory of an id that is this exception's now is about it, if it has been judged at all; the id could be that of
    a dead one otherwise. That is why an entry of the traceback has to agree with where the last answer was given.

    Attributes:
        exception: its id, or 0.
        entry: the id of the traceback's entry where it was, and of that entry ...
        frame: ... the id of the frame,
        code: the id of the frame's code
        lasti: and the offset.
        holder: the id of the frame that is to handle it, or 0.
        target: where in the code of that frame the handler begins, or -1.
        verdict: the answer.
        let_go: exceptions that are left alone, by their ids.
    """

    __slots__ = ("code", "entry", "exception", "frame", "holder", "lasti", "let_go", "target", "verdict")

    def __init__(self) -> None:
        self.exception = self.entry = self.frame = self.code = self.holder = 0
        self.lasti = self.target = -1
        self.verdict = _NONE
        self.let_go: dict[int, _LetGo] = {}


#: By the threads' numbers; reading it is faster than a threading.local.
memories: dict[int, Memory] = {}


def new_memory(thread: int) -> Memory:
    """The memory of a thread that has none."""
    if memories and len(memories) % _THREADS == 0:
        running = sys._current_frames()
        for other in list(memories):
            if other not in running:
                memories.pop(other, None)
    memory = memories[thread] = Memory()
    return memory


def leave_alone(exception: BaseException) -> None:
    """Lets the exception pass from now on, wherever it comes by in this thread."""
    # The stack may be almost full: no more calls of Python functions than there must be.
    thread = get_ident()
    memory = memories.get(thread)
    if memory is None:
        memory = new_memory(thread)
    let_go = memory.let_go
    key = id(exception)
    if len(let_go) >= _MOST_LET_GO and key not in let_go:
        del let_go[next(iter(let_go))]
    mark = let_go[key] = _LetGo()
    try:
        mark.weak = weakref.ref(exception)
    except TypeError:
        pass
    traceback = traceback_of(exception)
    if traceback is None:
        memory.exception = 0
        return
    frame = traceback.tb_frame
    mark.entry = id(traceback), id(frame), id(frame.f_code), traceback.tb_lasti
    mark.barrier = frame.f_lasti
    memory.exception = key
    memory.entry, memory.frame, memory.code, memory.lasti = mark.entry
    memory.holder = 0
    memory.verdict = _LET_GO


def hold_again(exception: BaseException) -> None:
    """Takes `leave_alone` back."""
    memory = memories.get(get_ident())
    if memory is not None:
        memory.let_go.pop(id(exception), None)
        memory.exception = 0


def was_let_go(
    memory: Memory, exception: BaseException, frame: FrameType, traceback: TracebackType | None
) -> Verdict | None:
    """The answer to an exception that was let go in this thread."""
    mark = memory.let_go.get(id(exception))
    if mark is None:
        return None
    key = id(exception)
    entry = mark.entry
    if mark.weak is not None:
        if mark.weak() is not exception:
            del memory.let_go[key]
            return None
    else:
        past = traceback
        while past is not None and id(past) != entry[0]:
            past = past.tb_next
        if past is None or (past is traceback and past.tb_frame.f_lasti == mark.barrier):
            del memory.let_go[key]
            return None
        there = past.tb_frame
        if entry != (id(past), id(there), id(there.f_code), past.tb_lasti):
            del memory.let_go[key]
            return None
    if traceback is not None and traceback.tb_frame is frame and id(traceback) != entry[0]:
        mark.entry = id(traceback), id(frame), id(frame.f_code), traceback.tb_lasti
        mark.barrier = frame.f_lasti
    remember(memory, exception, frame, traceback, 0, -1, _LET_GO)
    return _LET_GO


def recall(memory: Memory, frame: FrameType, traceback: TracebackType | None) -> Verdict | None:
    """The last answer, if it was given further inside, and the exception has not yet come to who was to handle it.

    Args:
        memory: what is remembered of an exception with this id.
        frame: where the exception is.
        traceback: its traceback.
    """
    if traceback is None:
        return None
    if memory.holder == id(frame):
        return None
    entry, holder = memory.entry, memory.holder
    past = traceback.tb_next
    for _ in range(_MOST_STEPS):
        if past is None:
            return None
        there = past.tb_frame
        if id(past) == entry:
            if memory.frame != id(there) or memory.code != id(there.f_code) or memory.lasti != past.tb_lasti:
                return None
            memory.entry = id(traceback)
            memory.frame, memory.code, memory.lasti = id(frame), id(frame.f_code), traceback.tb_lasti
            return memory.verdict
        if id(there) == holder:
            return None
        past = past.tb_next
    return None


def remember(
    memory: Memory,
    exception: BaseException,
    frame: FrameType,
    traceback: TracebackType | None,
    holder: int,
    target: int,
    verdict: Verdict,
) -> None:
    """Remembers an answer for the frames further out."""
    if traceback is None or traceback.tb_frame is not frame:
        memory.exception = 0
        return
    memory.exception = id(exception)
    memory.entry = id(traceback)
    memory.frame = id(frame)
    memory.code = id(frame.f_code)
    memory.lasti = traceback.tb_lasti
    memory.holder = holder
    memory.target = target
    memory.verdict = verdict
