"""The cells that an edited body needs of the functions around it: they are found where the old code or its neighbours have them."""

from __future__ import annotations

import ctypes
import functools
import gc
import operator
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any, TypeVar

from daifu_bc.errors import Refusal
from daifu_bc.recovery.bodies import body_of
from daifu_bc.recovery.capture import Capture

_Kind = TypeVar("_Kind")
_CLASS = "__class__"
_set_closure = ctypes.pythonapi.PyFunction_SetClosure
_set_closure.argtypes = (ctypes.py_object, ctypes.py_object)
_set_closure.restype = ctypes.c_int


def closure_for(
    function: FunctionType, code: CodeType, frames: Sequence[FrameType], names: Mapping[str, str]
) -> tuple[CellType, ...]:
    """The closure of a function when it has got other code.

    Args:
        function: a function that runs the old code.
        code: the new code.
        frames: frames on the stack; one may be that in which the function was made.
        names: variables of the functions around it that have another name in the new text, old name -> new name.

    Raises:
        Refusal: a cell cannot be had.
    """
    known = {names.get(name, name): cell for name, cell in cells_of(function).items()}
    # Not out of a generator: the search among all objects must not see a tuple that is being built.
    cells = [known[name] if name in known else _found(function, name, frames) for name in code.co_freevars]
    return tuple(cells)


def cells_of(function: FunctionType) -> dict[str, CellType]:
    """The cells of a function by the names of its free variables."""
    return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


def cells_for_frame(
    captured: Capture, code: CodeType, functions: Iterable[FunctionType], frames: Sequence[FrameType]
) -> dict[str, CellType]:
    """The cells that a frame needs for a new body and has not.

    Args:
        captured: the frame.
        code: the new code.
        functions: those that run its code, one of which the frame may be a call of.
        frames: as for `closure_for`.

    Raises:
        Refusal: a cell cannot be had.
    """
    running = captured.code
    missing = [
        name
        for name in code.co_freevars
        if name not in running.co_freevars and name not in running.co_cellvars
    ]
    if not missing:
        return {}
    values = captured.frame.f_locals
    own = [function for function in functions if _may_run(function, values)]
    result: dict[str, CellType] = {}
    for name in missing:
        found = {id(cell): cell for function in own for cell in [_found(function, name, frames)]}
        if len(found) != 1:
            raise _no_cell(code.co_qualname, name)
        result[name] = next(iter(found.values()))
    return result


def _may_run(function: FunctionType, values: Any) -> bool:
    """Whether a frame with these variables may be a call of a function."""
    for name, cell in cells_of(function).items():
        try:
            content = cell.cell_contents
        except ValueError:
            continue
        if name in values and values[name] is not content:
            return False
    return True


def _found(function: FunctionType, name: str, frames: Sequence[FrameType]) -> CellType:
    """The cell of a variable that a function had no need of before.

    Raises:
        Refusal: nothing that belongs to the same call of the function around it has one.
    """
    if name == _CLASS:
        owner = _class_of(function)
        if owner is not None:
            cells = (cells_of(other).get(name) for other in _methods(owner))
            return next(filter(None, cells), None) or CellType(owner)
    head, locals_, _ = function.__code__.co_qualname.rpartition(".<locals>.")
    around = head + locals_
    for other in _siblings(function, around) if around else ():
        cell = cells_of(other).get(name)
        if cell is not None and _made_together(function, other, around, frames):
            return cell
    raise _no_cell(function.__qualname__, name)


def _no_cell(function: str, name: str) -> Refusal:
    return Refusal(
        f"the new body of {function} uses {name} of the function around it, which the running one does not",
        why="no function that is alive and was made in the same call shares that variable",
        remedy="Pass the value in another way, for example as an attribute or a global.",
    )


def _siblings(function: FunctionType, around: str) -> Iterator[FunctionType]:
    """The functions that are defined next to a function, and are alive."""
    for thing in _alive(FunctionType):
        qualname = thing.__code__.co_qualname
        beside = qualname.startswith(around) and "<locals>" not in qualname[len(around) :]
        if beside and thing.__globals__ is function.__globals__ and thing is not function:
            yield thing


def _made_together(
    function: FunctionType, other: FunctionType, around: str, frames: Sequence[FrameType]
) -> bool:
    """Whether two functions were made in the same call of the function around them."""
    mine, others = set(map(id, function.__closure__ or ())), set(map(id, other.__closure__ or ()))
    if mine & others or _holds(function, other) or _holds(other, function):
        return True
    outer = around.removesuffix(".<locals>.")
    for frame in frames:
        if body_of(frame.f_code).co_qualname == outer:
            held = set(map(id, frame.f_locals.values()))
            if {id(function), id(other)} <= held:
                return True
    return False


def _holds(function: FunctionType, other: FunctionType) -> bool:
    for cell in function.__closure__ or ():
        try:
            if cell.cell_contents is other:
                return True
        except ValueError:
            continue
    return False


def _class_of(function: FunctionType) -> type | None:
    """The class whose body a method was defined in."""
    name = function.__code__.co_qualname.rpartition(".")[0]
    for thing in _alive(type):
        if thing.__qualname__ == name and function in _methods(thing):
            return thing
    return None


def _alive(kind: type[_Kind]) -> list[_Kind]:
    """All objects of a kind. The list of all objects is gone by then: nobody may hold a tuple that is being built."""
    return [thing for thing in gc.get_objects() if issubclass(type(thing), kind)]


def _methods(owner: type) -> Iterator[FunctionType]:
    """The functions in the body of a class."""
    for thing in list(type.__dict__["__dict__"].__get__(owner).values()):
        yield from functions_in(thing)


def functions_in(thing: object) -> Iterator[FunctionType]:
    """The functions behind something that stands in a class: a method, a property, what a decorator has made of them."""
    work = [thing]
    while work:
        one = work.pop()
        if type(one) is FunctionType:
            yield one
            work.append(one.__dict__.get("__wrapped__"))
        elif isinstance(one, staticmethod | classmethod):
            work.append(one.__func__)
        elif isinstance(one, property):
            work += [one.fget, one.fset, one.fdel]


def give(function: FunctionType, code: CodeType, closure: tuple[CellType, ...] | None) -> None:
    """Gives a function code and the cells for it, with nothing run in between: neither fits the other's former one.

    Args:
        function: the function.
        code: the code.
        closure: as many cells as it has free variables; None for none.
    """
    steps = [
        functools.partial(_set_closure, function, closure or None),
        functools.partial(FunctionType.__code__.__set__, function, code),  # type: ignore[attr-defined]
    ]
    collects = gc.isenabled()
    gc.disable()  # a finaliser may call the function
    try:
        deque(map(operator.call, steps), maxlen=0)
    finally:
        if collects:
            gc.enable()
