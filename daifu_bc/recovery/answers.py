"""Answers to "is it a crash?", and what is remembered of them between two frames: numbers, no objects of the program."""

from __future__ import annotations

import threading
import weakref
from types import FrameType, TracebackType
from typing import Final, NamedTuple

from daifu_bc.recovery.spots import Verdict

__all__ = ["Route", "Verdict", "leave_alone", "remember", "remembered"]


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


class _LetGo:
    """An exception that was let go. Few built-in exceptions can be referred to weakly; the others are told by ids.

    Those may be another exception's at the same place, in the next round of a loop. But an exception comes by each
    barrier only once.
    """

    __slots__ = ("barrier", "entry", "weak")

    def __init__(self, exception: BaseException) -> None:
        self.weak: weakref.ref[BaseException] | None = None
        self.entry: tuple[int, ...] = ()
        self.barrier = -1
        try:
            self.weak = weakref.ref(exception)
        except TypeError:
            traceback = exception.__traceback__
            if traceback is not None:
                self.entry = _entry_ids(traceback)
                self.barrier = traceback.tb_frame.f_lasti

    def is_of(self, exception: BaseException) -> bool:
        """Whether it was this exception."""
        if self.weak is not None:
            return self.weak() is exception
        traceback = exception.__traceback__
        for _ in range(_MOST_STEPS):
            if traceback is None:
                return False
            if self.entry and id(traceback) == self.entry[0]:
                again = traceback is exception.__traceback__ and traceback.tb_frame.f_lasti == self.barrier
                return not again and _entry_ids(traceback) == self.entry
            traceback = traceback.tb_next
        return False


def _entry_ids(traceback: TracebackType) -> tuple[int, int, int, int]:
    frame = traceback.tb_frame
    return id(traceback), id(frame), id(frame.f_code), traceback.tb_lasti


class _Memory(threading.local):
    """The last answer of a thread, told again while the same exception goes on outward to the same handler."""

    def __init__(self) -> None:
        self.let_go: dict[int, _LetGo] = {}
        #: Ids of the exception, and of the traceback entry, frame and code where it was; its offset; the id of the
        #: frame that is to handle it, or 0.
        self.flight: tuple[int, int, int, int, int, int] = (0, 0, 0, 0, 0, 0)
        self.verdict = _NONE


_NONE: Final = Verdict(False, ())
_memory = _Memory()
_LET_GO: Final = Verdict(False, ("It has been let go.",))


def leave_alone(exception: BaseException) -> None:
    """Lets the exception pass from now on, wherever it comes by in this thread."""
    let_go = _memory.let_go
    if len(let_go) >= _MOST_LET_GO:
        del let_go[next(iter(let_go))]
    let_go[id(exception)] = _LetGo(exception)


def remembered(exception: BaseException, frame: FrameType, traceback: TracebackType | None) -> Verdict | None:
    """The last answer, if this is the same flight and it has not yet come to the frame that was to handle it.

    An id could be that of another object which has taken the place of a dead one. But where an entry of the traceback
    agrees in frame, code and offset with where the last answer was given, this flight was judged there, as each is.
    """
    memory = _memory
    if memory.let_go:
        let_go = memory.let_go.get(id(exception))
        if let_go is not None:
            if let_go.is_of(exception):
                return _LET_GO
            del memory.let_go[id(exception)]
    flight = memory.flight
    if flight[0] != id(exception) or traceback is None or flight[5] == id(frame):
        return None
    past = traceback.tb_next
    for _ in range(_MOST_STEPS):
        if past is None:
            return None
        if id(past) == flight[1]:
            if _entry_ids(past) != flight[1:5]:
                return None
            memory.flight = (flight[0], *_entry_ids(traceback), flight[5])
            return memory.verdict
        if id(past.tb_frame) == flight[5]:
            return None
        past = past.tb_next
    return None


def remember(
    exception: BaseException, frame: FrameType, traceback: TracebackType | None, holder: int, verdict: Verdict
) -> None:
    """Remembers an answer for the frames further out."""
    memory = _memory
    if traceback is not None and traceback.tb_frame is frame:
        memory.flight = (
            id(exception),
            id(traceback),
            id(frame),
            id(frame.f_code),
            traceback.tb_lasti,
            holder,
        )
        memory.verdict = verdict
    else:
        memory.flight = (0, 0, 0, 0, 0, 0)
