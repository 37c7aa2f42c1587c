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
    """The functions of a module that can be reached from its globals, those in classes and closures included.

    Args:
        scope: the module's globals.
        is_wanted: whether functions are whose code is from a file.
    """
    seen: set[int] = set()
    result: list[FunctionType] = []
    work: list[object] = list(scope.values())
    while work:
        thing = work.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, FunctionType):
            if thing.__globals__ is scope and is_wanted(thing.__code__.co_filename):
                result.append(thing)
            work += [cell.cell_contents for cell in thing.__closure__ or () if _is_filled(cell)]
            wrapped = thing.__dict__.get("__wrapped__")
            if wrapped is not None:
                work.append(wrapped)
        elif isinstance(thing, type):
            if thing.__module__ == scope.get("__name__"):
                work += list(vars(thing).values())
        elif isinstance(thing, staticmethod | classmethod):
            work.append(thing.__func__)
        elif isinstance(thing, property):
            work += [thing.fget, thing.fset, thing.fdel]
    return result


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


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
