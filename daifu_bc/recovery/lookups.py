"""Evaluates expressions in a frame without running any code of the program: no calls, properties or comparisons.

What cannot be looked up safely is UNKNOWN; so is a class that decides for itself what an attribute is.
"""

from __future__ import annotations

import inspect
import sys
from types import (
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any, Final, cast

from daifu_bc import pyversion
from daifu_bc.analysis.expressions import (
    GLOBAL,
    LOCAL,
    Attribute,
    Call,
    Constant,
    Display,
    Expression,
    Name,
    Sum,
)


class _Unknown:
    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"


#: What an expression has that cannot be evaluated without running code.
UNKNOWN: Final = _Unknown()

# What C code of a class gives for an attribute: slots, and what the interpreter's own classes compute.
_IN_C: Final = (MemberDescriptorType, GetSetDescriptorType)

# The real ones of these are reached past anything that a metaclass or a subclass puts in front of them.
mro: Final = type.__dict__["__mro__"].__get__
is_subclass: Final = type.__subclasscheck__  # is_subclass(of, cls)
_class_dict: Final = type.__dict__["__dict__"].__get__
_module_dict: Final[Any] = vars(ModuleType)["__dict__"].__get__
_function_code: Final = FunctionType.__dict__["__code__"].__get__

# Asked often: one look-up less.
_CO_OPTIMIZED: Final = inspect.CO_OPTIMIZED
_LOCALS_WRITE_THROUGH: Final = pyversion.LOCALS_WRITE_THROUGH

# The first releases of 3.12 keep each class that `getattr_static` has looked at (gh-118013).
_forget_classes: Final[Any] = getattr(
    getattr(inspect, "_shadowed_dict_from_mro_tuple", None), "cache_clear", None
)

# How many references a frame's snapshot of its locals has if only the frame and we hold it.
_ONLY_OURS: Final = 2


def is_a(value: object, cls: type) -> bool:
    """`isinstance` without asking the value, which may pretend to be something by `__class__`."""
    return issubclass(type(value), cls)


class Scope:
    """Where names are looked up: a frame, or a function whose frame is not there yet."""

    __slots__ = ("builtins", "cells", "frame", "globals")

    def __init__(
        self, frame: FrameType | None, globals_: object, builtins: object, cells: dict[str, Any]
    ) -> None:
        self.frame = frame
        self.globals = globals_
        self.builtins = builtins
        self.cells = cells


def frame_scope(frame: FrameType) -> Scope:
    """The names that code in `frame` sees."""
    return Scope(frame, frame.f_globals, frame.f_builtins, {})


def function_scope(function: FunctionType) -> Scope:
    """The names that a function's body will see, apart from its locals."""
    cells = dict(zip(_function_code(function).co_freevars, function.__closure__ or (), strict=False))
    # Not every version of the type checker knows the attribute.
    return Scope(None, function.__globals__, cast(Any, function).__builtins__, cells)


def local_value(frame: FrameType, name: str) -> object:
    """A local, cell or free variable of `frame`; UNKNOWN if it is unbound."""
    names = frame.f_locals
    if type(names) is not dict:
        if not _LOCALS_WRITE_THROUGH or not frame.f_code.co_flags & _CO_OPTIMIZED:
            return UNKNOWN
        try:
            return names[name]
        except KeyError:
            return UNKNOWN
    value = names.get(name, UNKNOWN)
    if frame.f_code.co_flags & _CO_OPTIMIZED and sys.getrefcount(names) <= _ONLY_OURS + 1:
        # The snapshot would keep the locals alive until the frame ends (gh-74929).
        names.clear()
    return value


def drop_snapshot(frame: FrameType, variables: tuple[str, ...]) -> None:
    """Lets a frame's snapshot of its locals keep nothing alive, unless somebody else has it or has put a name in.

    Args:
        frame: a frame whose locals have been read.
        variables: the names that its own code has.
    """
    if _LOCALS_WRITE_THROUGH or not frame.f_code.co_flags & _CO_OPTIMIZED:
        return
    names = frame.f_locals
    if sys.getrefcount(names) <= _ONLY_OURS + 1 and set(variables).issuperset(names):
        names.clear()


def global_value(frame: FrameType, name: str) -> object:
    """A global or builtin name as code in `frame` sees it; UNKNOWN if there is none."""
    names = frame.f_globals
    if type(names) is not dict:
        return UNKNOWN
    value = names.get(name, UNKNOWN)
    if value is UNKNOWN:
        names = frame.f_builtins
        return names.get(name, UNKNOWN) if type(names) is dict else UNKNOWN
    return value


def evaluate(expression: Expression | None, scope: Scope) -> object:
    """The value of an expression, or UNKNOWN."""
    if type(expression) is Name:
        return _variable(expression, scope)
    if type(expression) is Attribute:
        of = evaluate(expression.of, scope)
        return UNKNOWN if of is UNKNOWN else attribute(of, expression.name)
    if type(expression) is Constant:
        return expression.value
    if type(expression) is Display:
        items = tuple(evaluate(item, scope) for item in expression.items)
        return UNKNOWN if any(item is UNKNOWN for item in items) else items
    if type(expression) is Sum:
        left, right = evaluate(expression.left, scope), evaluate(expression.right, scope)
        return left + right if type(left) is tuple and type(right) is tuple else UNKNOWN
    return UNKNOWN


def _variable(expression: Name, scope: Scope) -> object:
    name = expression.name
    if expression.scope != GLOBAL:
        frame = scope.frame
        if frame is not None:
            value = local_value(frame, name)
        else:
            value = _cell(scope.cells.get(name))
        if value is not UNKNOWN or expression.scope == LOCAL:
            return value
        if frame is not None and type(frame.f_locals) is not dict:
            return UNKNOWN
    for names in (scope.globals, scope.builtins):
        if type(names) is not dict:
            return UNKNOWN
        value = names.get(name, UNKNOWN)
        if value is not UNKNOWN:
            return value
    return UNKNOWN


def _cell(cell: Any) -> object:
    try:
        return UNKNOWN if cell is None else cell.cell_contents
    except ValueError:
        return UNKNOWN


def find_in_class(cls: type, name: str) -> object:
    """What the class or a base has under `name` in its namespace, as it stands there; UNKNOWN if none has."""
    for base in mro(cls):
        names: MappingProxyType[str, object] = _class_dict(base)
        if name in names:
            return names[name]
    return UNKNOWN


def has_plain_attributes(value: object) -> bool:
    """Whether attributes of `value` are looked up in the usual way."""
    usual = (object, type, ModuleType)
    found = find_in_class(type(value), "__getattribute__")
    return any(found is _class_dict(cls)["__getattribute__"] for cls in usual)


def names_in_module(module: object) -> dict[str, Any]:
    """What stands in a module, nothing for anything else; no code of its own is run, and a lazy one is not loaded."""
    found: dict[str, Any] = _module_dict(module) if is_a(module, ModuleType) else {}
    return found


def attribute(value: object, name: str) -> object:
    """The attribute of a module, class or instance, if that runs no code; UNKNOWN otherwise."""
    cls = type(value)
    if not has_plain_attributes(value):
        return UNKNOWN
    on_class = find_in_class(cls, name)
    if is_a(value, type):
        if on_class is not UNKNOWN and cls is not type:
            return UNKNOWN
        return _as_it_is(find_in_class(cast(type, value), name))
    if issubclass(cls, ModuleType):
        found = _module_dict(value).get(name, UNKNOWN)
        return found if on_class is UNKNOWN else UNKNOWN
    if type(on_class) in _IN_C:
        try:
            return cast(MemberDescriptorType, on_class).__get__(value)
        except AttributeError:
            return UNKNOWN
    plain = _as_it_is(on_class)
    if on_class is not UNKNOWN and plain is UNKNOWN:
        return UNKNOWN
    return _as_it_is(static_attribute(value, name))


def static_attribute(value: object, name: str) -> object:
    """What an attribute is where it stands, without asking a descriptor; UNKNOWN if there is none."""
    try:
        return inspect.getattr_static(value, name, UNKNOWN)
    finally:
        if _forget_classes is not None:
            _forget_classes()


def _as_it_is(value: object) -> object:
    """What stands in a class's namespace, if looking it up through an instance or the class gives just that."""
    if is_a(value, staticmethod) or is_a(value, classmethod):
        return UNKNOWN
    if type(value) is FunctionType or find_in_class(type(value), "__get__") is UNKNOWN:
        return value
    return UNKNOWN


def matches(kind: type[BaseException], against: object) -> bool | None:
    """Whether an exception of class `kind` matches what stands behind `except`; None if that is not valid there."""
    if type(against) is type and issubclass(against, BaseException):
        return issubclass(kind, against)
    if is_a(against, tuple):
        items = tuple.__iter__(cast(tuple[object, ...], against))
        answers = [None if is_a(item, tuple) else matches(kind, item) for item in items]
        return None if None in answers else True in answers
    if not is_a(against, type):
        return None
    cls = cast(type, against)
    return is_subclass(cls, kind) if is_subclass(BaseException, cls) else None


def text(expression: Expression | None) -> str:
    """The expression as it may stand in the source."""
    if type(expression) is Name:
        return expression.name
    if type(expression) is Attribute:
        return f"{text(expression.of)}.{expression.name}"
    if type(expression) is Constant:
        value = expression.value
        return repr(value) if isinstance(value, int | str | None) else "…"
    if type(expression) is Display:
        return f"({', '.join(map(text, expression.items))})"
    if type(expression) is Sum:
        return f"{text(expression.left)} + {text(expression.right)}"
    if type(expression) is Call:
        given = [*map(text, expression.arguments), *(() if expression.plain else ("…",))]
        return f"{text(expression.function)}({', '.join(given)})"
    return "…"
