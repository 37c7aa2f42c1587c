"""How often in a row a rule has decided about the same statement, with the same variables.

A row ends when the statement has come to its end: the run has gone on with other variables, or in another call. Where
statements before it run again, variables get other values without that, and do not count. What is remembered are numbers
and weak references: nothing of the program's is kept alive.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Final

from daifu_bc.recovery import retries
from daifu_bc.recovery.bodies import continuation_of, is_ours
from daifu_bc.recovery.frames import is_running_continuation
from daifu_bc.recovery.interface import FrameLike

#: Decisions that are remembered, the latest ones.
_KEPT: Final = 256


@dataclass
class _Decision:
    rule: str
    call: int
    code: weakref.ref[CodeType]
    offset: int
    state: retries.State | None
    count: int


_decisions: Final[list[_Decision]] = []
_lock: Final = threading.Lock()


def _call(frame: FrameType) -> int:
    """A number that a call has as long as it lasts: that of the frame that it began in, which waits for its continuation."""
    base, outward = frame, frame.f_back
    while outward is not None and (is_ours(outward) or is_running_continuation(outward)):
        if not is_ours(outward):
            base = outward
        outward = outward.f_back
    return id(base)


def _same(before: Any, now: Any) -> bool:
    """Whether a variable is as it was. What was put into a container since does not count: the statement may have begun."""
    if type(before) is tuple and type(now) is tuple and len(before) == len(now) == 4:
        kind, number, length, elements = before
        return bool((kind, number) == now[:2] and length <= now[2] and elements == now[3][: len(elements)])
    return bool(before == now)


def _all_same(before: retries.State, now: retries.State) -> bool:
    return before.keys() == now.keys() and all(_same(trace, now[name]) for name, trace in before.items())


def begin(frames: Sequence[FrameLike]) -> None:
    """Forget calls that have ended: others have their numbers now, those that have not gone on after a hold.

    Args:
        frames: those of a hold.
    """
    if not _decisions:
        return
    new = {id(view.frame) for view in frames if continuation_of(view.frame.f_code) is None}
    with _lock:
        _decisions[:] = [one for one in _decisions if one.call not in new]


def count(rule: str, frame: FrameLike) -> int:
    """Return how often in a row a rule has decided about what a frame is at; that row is counted on from here.

    Args:
        rule: its name.
        frame: the frame.
    """
    if continuation_of(frame.frame.f_code) is None:  # it has not gone on after a hold: this is another call
        return 0
    call, offset, state = _call(frame.frame), _offset(frame), retries.state_of(frame.frame)
    with _lock:
        for number, known in enumerate(_decisions):
            if (
                (known.rule, known.call, known.offset) == (rule, call, offset)
                and known.code() is frame.code
                and (known.state is None or _all_same(known.state, state))
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
    state = None if anew else retries.state_of(frame.frame)
    made = _Decision(rule, _call(frame.frame), weakref.ref(frame.code), _offset(frame), state, number)
    with _lock:
        _decisions.append(made)
        del _decisions[:-_KEPT]


def _offset(frame: FrameLike) -> int:
    offset = getattr(frame, "offset", -1)
    return offset if isinstance(offset, int) else -1
