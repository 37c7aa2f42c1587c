"""Code that the interpreter calls and whose errors it only prints: nobody up the stack ever sees them."""

from __future__ import annotations

import gc
import sys
import threading
from types import CodeType, FrameType, FunctionType, MethodType

from daifu_bc.recovery.callers import called_by_name
from daifu_bc.recovery.lookups import UNKNOWN, evaluate, frame_scope
from daifu_bc.recovery.spots import spot_at


def printed_in(frame: FrameType) -> str:
    """What it is that runs in a frame, or in one around it, if its errors are only printed; else empty.

    Args:
        frame: where an exception has arrived that nobody handles.
    """
    hooks, callbacks = _hooks(), {id(_code_of(callback)) for callback in gc.callbacks}
    inner: FrameType = frame
    while True:
        code, outer = id(inner.f_code), inner.f_back
        found = hooks.get(code)
        if found:
            return f"`{found}`"
        if outer is None:
            return "a function that runs at exit" if _ends() else ""
        if code in callbacks and not called_by_name(inner, outer, spot_at(outer, outer.f_lasti).site):
            return "a callback of the garbage collector"
        if _is_foreign(outer) and not called_by_name(inner, outer, spot_at(outer, outer.f_lasti).site):
            return "a callback of ctypes"
        inner = outer


def _code_of(function: object) -> CodeType | None:
    if type(function) is MethodType:
        function = function.__func__
    return function.__code__ if type(function) is FunctionType else None


def _hooks() -> dict[int, str]:
    """The hooks for errors, by the ids of their code objects."""
    found = {}
    for module, name in ((sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook")):
        code = _code_of(vars(module).get(name))  # a program may have deleted it
        if code is not None:
            found[id(code)] = f"{module.__name__}.{name}"
    return found


def _is_foreign(frame: FrameType) -> bool:
    """Whether a frame calls a function of a library in C by ctypes, which takes no exception from its callbacks."""
    foreign = sys.modules.get("_ctypes")
    call = spot_at(frame, frame.f_lasti).site.call
    if foreign is None or call is None:
        return False
    function = evaluate(call.function, frame_scope(frame))
    return function is not UNKNOWN and issubclass(type(function), foreign.CFuncPtr)


def _ends() -> bool:
    """Whether this is the main thread behind its end, where only functions that were registered for it run."""
    main = threading.main_thread()
    return threading.get_ident() == main.ident and not main.is_alive()
