"""Replaces function bodies in the running process: every function that has the old code gets the new one."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import CellType, CodeType, FunctionType
from typing import Any, Final

from daifu_bc.recovery import bodies, observers, restarts
from daifu_bc.recovery.history import Step
from daifu_bc.rewrite.barrier import pristine

# The code that was replaced lately. What is known of older code is dropped: hardly anybody asks for it again, and the
# search for functions below passes every object that is kept.
_KEPT_REPLACED: Final = 4
_replaced: Final[deque[CodeType]] = deque()


def functions_with(codes: Iterable[CodeType]) -> dict[int, list[FunctionType]]:
    """The functions that run each of these code objects, by the code's id: aliases, closures, methods alike."""
    every = list(codes)
    found: dict[int, list[FunctionType]] = {id(code): [] for code in every}
    # What runs a continuation is ours, and dies with its frame.
    wanted = [code for code in every if bodies.continuation_of(code) is None]
    if not wanted:
        return found
    for referrer in gc.get_referrers(*wanted):
        if isinstance(referrer, FunctionType):
            known = found.get(id(referrer.__code__))
            if known is not None:
                known.append(referrer)
    return found


def live_functions(scope: dict[str, Any], is_wanted: Callable[[str], bool]) -> list[FunctionType]:
    """The functions of a module, wherever they are kept: also behind caches, partial objects and registered callbacks.

    Args:
        scope: the module's globals.
        is_wanted: whether functions are whose code is from a file.
    """
    return [
        referrer
        for referrer in gc.get_referrers(scope)
        if isinstance(referrer, FunctionType)
        and referrer.__globals__ is scope
        and is_wanted(referrer.__code__.co_filename)
        and bodies.continuation_of(referrer.__code__) is None
    ]


def swap(
    functions: Iterable[FunctionType],
    code: CodeType,
    step: Step,
    closures: Mapping[int, tuple[CellType, ...]] | None = None,
) -> None:
    """Gives functions new code, in one assignment each; the step remembers the old one.

    Args:
        functions: those that get it.
        code: the new code.
        step: what remembers it.
        closures: the cells of functions whose free variables change, by the function's id.
    """
    for function in functions:
        _note_replaced(pristine(function.__code__))
        step.give_code(function, code, (closures or {}).get(id(function)))
    observers.replaced()


def _note_replaced(code: CodeType) -> None:
    if any(code is other for other in _replaced):
        return
    _replaced.append(code)
    if len(_replaced) > _KEPT_REPLACED:
        old = _replaced.popleft()
        bodies.forget(old)
        restarts.forget(old)
