"""Notices that a retry has changed nothing: the same exception at the same place, and no variable is another.

What is remembered of a retry are numbers and weak references: nothing of the program's is kept alive.
"""

from __future__ import annotations

import inspect
import itertools
import re
import threading
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Final

from daifu_bc.recovery.bodies import body_of, continuation_of
from daifu_bc.recovery.capture import Capture
from daifu_bc.recovery.frames import FrameView
from daifu_bc.recovery.lookups import drop_snapshot
from daifu_bc.recovery.repetition import Repetition

#: Retries that are remembered, the latest ones.
_KEPT: Final = 64
#: Of a container as many elements are looked at, of a message as many characters.
_ELEMENTS, _CHARACTERS = 8, 200
#: Frames that are looked at.
_FRAMES: Final = 16
_SCALARS: Final = frozenset({bool, int, float, complex, str, bytes, type(None)})
_NUMBERS: Final = re.compile(r"0x[0-9a-fA-F]+|\d+")
_args: Final[Any] = BaseException.args.__get__  # type: ignore[attr-defined]


State = dict[str, object]


class _Weak:
    """An object, as long as it lives."""

    __slots__ = ("_number", "_reference")

    def __init__(self, value: object) -> None:
        self._reference = weakref.ref(value)
        self._number = id(value)

    def __eq__(self, other: object) -> bool:
        """Whether both are the same object, and alive."""
        if not isinstance(other, _Weak) or self._number != other._number:
            return False
        return self._reference() is not None and other._reference() is not None

    __hash__ = None  # type: ignore[assignment]


def _trace_of(value: object, depth: int = 1) -> object:
    """What tells a value from others without keeping it, or running code of the program's."""
    kind = type(value)
    if kind in _SCALARS:
        return id(kind), hash(value)
    try:
        return _Weak(value)
    except TypeError:
        pass
    elements: Iterable[object] = ()
    length = 0
    if depth and (kind is list or kind is tuple or kind is dict):
        container: Any = value
        length = len(container)
        first = list(itertools.islice(container.values() if kind is dict else container, _ELEMENTS))
        elements = [_trace_of(element, depth - 1) for element in first]
    return id(kind), id(value), length, elements


def state_of(frame: FrameType) -> State:
    """What the variables of a frame are."""
    code, names = body_of(frame.f_code), frame.f_locals
    wanted = code.co_varnames + code.co_cellvars + code.co_freevars
    if not code.co_flags & inspect.CO_OPTIMIZED:
        # A mapping of the program's own would run its code.
        wanted = code.co_names if type(names) is dict else ()
    state = {name: _trace_of(names[name]) for name in wanted if name in names}
    del names
    drop_snapshot(frame, wanted)
    return state


def states_of(frames: Sequence[FrameView]) -> dict[FrameType, State]:
    """The same of the frames that can go on, the innermost ones."""
    return {view.frame: state_of(view.frame) for view in frames[-_FRAMES:] if view.vaccinated}


def _what(exception: BaseException) -> str:
    """An exception's type and, but for numbers, its message."""
    kind = type(exception)
    parts = [part[:_CHARACTERS] for part in _args(exception) if type(part) is str]
    return _NUMBERS.sub("#", " ".join([kind.__module__, kind.__qualname__, *parts]))


@dataclass
class _Retry:
    crashed: weakref.ref[CodeType]
    retried: weakref.ref[CodeType]
    state: State
    repetition: Repetition
    acted: bool


_Key = tuple[int, int, int, str]
_retries: Final[dict[_Key, _Retry]] = {}
_lock: Final = threading.Lock()


def _key(captured: Capture, exception: BaseException) -> _Key:
    return threading.get_ident(), id(captured.code), captured.place, _what(exception)


def look(captured: Capture, exception: BaseException, frames: Sequence[FrameView]) -> Repetition:
    """How often what has crashed now has crashed before in the same way.

    Args:
        captured: where.
        exception: what was raised.
        frames: the frames of the stack.
    """
    with _lock:
        known = _retries.pop(_key(captured, exception), None)
    if known is None or known.crashed() is not captured.code:
        return Repetition()
    retried = known.retried()
    # Where a retry has succeeded, its function has been called anew, or has gone on with other values.
    if not any(
        view.code is retried and continuation_of(view.frame.f_code) and state_of(view.frame) == known.state
        for view in frames
    ):
        return Repetition()
    return Repetition(known.repetition.again + 1, 0 if known.acted else known.repetition.idle + 1)


def remember(
    captured: Capture,
    exception: BaseException,
    retried: CodeType,
    state: State,
    repetition: Repetition,
    *,
    acted: bool,
) -> None:
    """Takes note of a retry.

    Args:
        captured: what has crashed.
        exception: what was raised.
        retried: the body of the frame in which a statement is run again.
        state: the variables of that frame when it crashed.
        repetition: how often that has happened before.
        acted: whether something was done before.
    """
    made = _Retry(weakref.ref(captured.code), weakref.ref(retried), state, repetition, acted)
    with _lock:
        _retries[_key(captured, exception)] = made
        while len(_retries) > _KEPT:
            del _retries[next(iter(_retries))]
