"""An exception that is let go on purpose: it takes down frames and blocks until it arrives where a person wants to be.

What lies in between is left by the program's own code: `finally` bodies run, exits of `with` are called with the
exception, clauses that clean up and raise again do so. Nobody there handles it, or it would not have been held.
"""

from __future__ import annotations

import threading
from types import FrameType

from daifu_bc.recovery.attributes import cause_of, context_of, members_of
from daifu_bc.recovery.decision import Unwinding

_MOST_LINKS = 100


class _Thread(threading.local):
    """What is on its way in one thread."""

    unwinding: Unwinding | None = None


_thread = _Thread()


def begin(unwinding: Unwinding) -> None:
    """From now on barriers look for its exception."""
    _thread.unwinding = unwinding


def under_way() -> Unwinding | None:
    """What is on its way in this thread."""
    return _thread.unwinding


def end() -> None:
    """It has arrived, or nobody waits for it any more."""
    _thread.unwinding = None


def carries(exception: BaseException, sought: BaseException) -> bool:
    """Whether an exception is the one sought, or was raised while that was on its way."""
    work = [exception]
    for _ in range(_MOST_LINKS):
        if not work:
            return False
        one = work.pop()
        if is_same(one, sought):
            return True
        work += [other for other in (context_of(one), cause_of(one)) if other is not None]
    return False


def is_same(exception: BaseException, sought: BaseException) -> bool:
    """Whether an exception is the one sought, or a group that `except*` has made of it or of a part of it."""
    if exception is sought:
        return True
    parts = {id(part) for part in _parts(sought)}
    return isinstance(exception, BaseExceptionGroup) and any(id(part) in parts for part in _parts(exception))


def _parts(exception: BaseException) -> list[BaseException]:
    """The exceptions in a group, those in its groups included; the exception itself if it is none."""
    found: list[BaseException] = []
    work = [exception]
    while work:
        one = work.pop()
        if isinstance(one, BaseExceptionGroup):
            work += members_of(one)
        else:
            found.append(one)
    return found


def is_on_stack(frame: FrameType, inner: FrameType) -> bool:
    """Whether a frame is one of those that `inner` was called from."""
    outward: FrameType | None = inner
    while outward is not None:
        if outward is frame:
            return True
        outward = outward.f_back
    return False
