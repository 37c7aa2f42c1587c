"""How often in a row a rule has decided about the same statement, with the same variables.

A row ends when the statement has come to its end: the run has gone on with other variables, or in another call. What
is remembered are numbers and weak references: nothing of the program's is kept alive.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Final

from daifu_bc.recovery import retries
from daifu_bc.recovery.bodies import continuation_of
from daifu_bc.recovery.interface import FrameLike

#: Decisions that are remembered, the latest ones.
_KEPT: Final = 256


@dataclass
class _Decision:
    rule: str
    thread: int
    code: weakref.ref[CodeType]
    offset: int
    state: retries.State | None
    count: int


_decisions: Final[list[_Decision]] = []
_lock: Final = threading.Lock()


def _state(frame: FrameType) -> retries.State:
    """What the variables of a frame are; what is in a container does not count: a statement that failed may have begun."""
    return {
        name: trace[:2] if type(trace) is tuple else trace for name, trace in retries.state_of(frame).items()
    }


def count(rule: str, frame: FrameLike) -> int:
    """Return how often in a row a rule has decided about what a frame is at; that row is counted on from here.

    Args:
        rule: its name.
        frame: the frame.
    """
    if continuation_of(frame.frame.f_code) is None:  # it has not gone on after a hold: this is another call
        return 0
    state, thread, offset = _state(frame.frame), threading.get_ident(), _offset(frame)
    with _lock:
        for number, known in enumerate(_decisions):
            if (
                (known.rule, known.thread, known.offset) == (rule, thread, offset)
                and known.code() is frame.code
                and known.state in (None, state)
            ):
                del _decisions[number]
                return known.count
    return 0


def note(rule: str, frame: FrameLike, number: int, *, anew: bool) -> None:
    """Take note that a rule has decided about what a frame is at.

    Args:
        rule: its name.
        frame: the frame.
        number: for the how many-th time in a row.
        anew: whether statements before it run again, which may give variables other values.
    """
    made = _Decision(
        rule,
        threading.get_ident(),
        weakref.ref(frame.code),
        _offset(frame),
        None if anew else _state(frame.frame),
        number,
    )
    with _lock:
        _decisions.append(made)
        del _decisions[:-_KEPT]


def _offset(frame: FrameLike) -> int:
    offset = getattr(frame, "offset", -1)
    return offset if isinstance(offset, int) else -1
