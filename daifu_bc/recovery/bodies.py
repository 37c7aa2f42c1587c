"""What is known of the code that runs: the analysis of its pristine body, and which code has a prefix before it."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import CodeType, FrameType

from daifu_bc.analysis.flow import Flow
from daifu_bc.analysis.identity import ByIdentity
from daifu_bc.recovery import observers
from daifu_bc.rewrite.barrier import is_vaccinated, pristine
from daifu_bc.rewrite.continuation import Continuation, Located, Start, build_continuation
from daifu_bc.rewrite.first_call import build_first_call

_located: ByIdentity[Located] = ByIdentity()
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_DEMO = os.path.join(_PACKAGE, "demo", "")
_LAUNCH = os.path.join(_PACKAGE, "install", "launch.py")
#: Code that has started the program, beside our own launcher.
outermost: set[CodeType] = set()
_KEPT_FLOWS = 64
_KEPT_CONTINUATIONS = 128
_built: dict[tuple[int, Start, bool], Continuation] = {}
_kept: dict[int, Flow] = {}


def flow_of(code: CodeType) -> Flow:
    """The analysis of a pristine code object; the most recent ones are kept."""
    known = _kept.get(id(code))
    if known is not None and known.code is code:
        return known
    flow = Flow(code)
    if len(_kept) >= _KEPT_FLOWS:
        _kept.pop(next(iter(_kept)))
    _kept[id(code)] = flow
    return flow


def forget(code: CodeType) -> None:
    """Drops what is kept of a pristine code object; it is worked out again if somebody asks."""
    _kept.pop(id(code), None)
    for key in [key for key, known in _built.items() if known.located.flow.code is code]:
        del _built[key]


def continuation_from(flow: Flow, start: Start, *, runs: bool) -> Continuation:
    """The continuation of a body from a start; the same one for the same start, as long as it is among the recent.

    Args:
        flow: the analysis of the body.
        start: where it goes on.
        runs: whether its frame has to run the continuations of its crashes; see `runs_none`.

    Raises:
        NoPoint, VerificationError: as `build_continuation`.
    """
    key = (id(flow), start, runs)
    known = _built.get(key)
    if known is None or known.located.flow is not flow:
        if len(_built) >= _KEPT_CONTINUATIONS:
            _built.pop(next(iter(_built)))
        known = _built[key] = build_continuation(flow, start, runs=runs)
        _located.put(known.code, known.located)
        observers.continuation(known.code)
    return known


def with_first_call(code: CodeType, callback: Callable[..., None]) -> CodeType:
    """Code that does what vaccinated code does, and calls back before, the first time that it is called.

    Args:
        code: a function's code, vaccinated or not.
        callback: called once, in the frame of the function, before its body.

    Raises:
        CannotVaccinate, VerificationError: as `build_first_call`.
    """
    built, located = build_first_call(flow_of(pristine(code)), callback)
    _located.put(built, located)
    return built


def located(code: CodeType) -> Located | None:
    """The body and layout of code with a prefix: a continuation, or what notices a first call."""
    return _located.get(code)


def continuation_of(code: CodeType) -> Located | None:
    """The body and layout of the continuation whose code this is, if it is one."""
    known = _located.get(code)
    return known if known is not None and known.continues else None


def runs_none(frame: FrameType) -> bool:
    """Whether the frame of vaccinated code runs no continuation but the first, which then has to run the next ones."""
    return _located.get(frame.f_code) is None


def body_of(code: CodeType) -> CodeType:
    """The pristine code object behind any code object."""
    known = _located.get(code)
    return pristine(code) if known is None else known.flow.code


def running(code: CodeType) -> list[CodeType]:
    """The code objects that frames of a function run which has, or had, this code: it and continuations of its body."""
    body = body_of(code)
    return [code, *(known for known, located in _located.items() if located.flow.code is body)]


def locate(frame: FrameType) -> tuple[CodeType, int]:
    """The pristine code of a frame and the offset at which it is; -1 in code of ours."""
    return body_of(frame.f_code), pristine_offset(frame.f_code, frame.f_lasti)


def pristine_offset(code: CodeType, offset: int) -> int:
    """The offset in the pristine code that one of `code` stands for; -1 in code of ours."""
    known = _located.get(code)
    if known is not None:
        return known.pristine_offset(offset)
    return offset if not is_vaccinated(code) or offset < len(pristine(code).co_code) else -1


def has_barriers(code: CodeType) -> bool:
    """Whether frames of this code can be held and go on."""
    return is_vaccinated(code) or _located.get(code) is not None


def is_ours(frame: FrameType) -> bool:
    """Whether a frame belongs to daifu_bc itself (the demonstration's programs are a user's)."""
    filename = frame.f_code.co_filename
    return filename.startswith(_PACKAGE) and not filename.startswith(_DEMO)


def is_launch(frame: FrameType) -> bool:
    """Whether a frame is the one that started the program: what is further out is not the user's."""
    return frame.f_code.co_filename == _LAUNCH or frame.f_code in outermost
