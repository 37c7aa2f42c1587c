"""Finding the functions that belong to an object, a module or a scope, without running any code of the program."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Iterator
from types import (
    CellType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, cast

from daifu_bc.install.scope import Scope

# Objects that hold functions in attributes of their own type's making, so that reading these runs C code only.
_HOLDERS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (staticmethod, ("__func__",)),
    (classmethod, ("__func__",)),
    (MethodType, ("__func__",)),
    (property, ("fget", "fset", "fdel")),
    (functools.partial, ("func",)),
)
# The same for types that are written in Python: their attributes lie in the instance.
_PYTHON_HOLDERS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (functools.cached_property, ("func",)),
    (functools.partialmethod, ("func",)),
    (functools.singledispatchmethod, ("func", "dispatcher")),
)


# What the interpreter itself puts under the name `__dict__` into a class; anything else there is the program's.
_DICTIONARY_GETTERS = (GetSetDescriptorType, MemberDescriptorType)


def namespace(thing: object) -> dict[str, object]:
    """Return the attributes that lie in the object itself; none if it keeps none or they cannot be had safely.

    Args:
        thing: any object but a class.
    """
    # Not `vars`: a class may say what that gives, by code of its own.
    for base in type.__dict__["__mro__"].__get__(type(thing)):
        getter = _class_namespace(base).get("__dict__")
        if getter is None:
            continue
        if type(getter) not in _DICTIONARY_GETTERS:
            return {}
        try:
            found = getter.__get__(thing)  # type: ignore[attr-defined]
        except (AttributeError, TypeError):
            return {}
        return found if type(found) is dict else {}
    return {}


def _class_namespace(kind: type) -> dict[str, object]:
    return dict(type.__dict__["__dict__"].__get__(kind))


def _members(kind: type) -> Iterator[object]:
    """Yield what lies in a class, but for classes from elsewhere that it only names."""
    attributes = _class_namespace(kind)
    for value in attributes.values():
        foreign = issubclass(type(value), type) and (
            _class_namespace(cast("type", value)).get("__module__") != attributes.get("__module__")
        )
        if not foreign:
            yield value


def parts(thing: object) -> Iterator[object]:
    """Yield what an object consists of as far as functions are concerned: accessors, wrapped functions, members.

    Args:
        thing: any object.
    """
    kind = type(thing)
    # Not `isinstance`: that may ask the object for its `__class__`, by code of the program.
    if issubclass(kind, type):
        yield from _members(cast("type", thing))
        return
    for holder, names in _HOLDERS:
        if issubclass(kind, holder):
            for name in names:
                yield getattr(holder, name).__get__(thing)
    if kind is FunctionType:
        yield from _captured(thing)
    attributes = namespace(thing)
    for holder, names in _PYTHON_HOLDERS:
        if issubclass(kind, holder):
            yield from (attributes[name] for name in names if name in attributes)
    if "__wrapped__" in attributes:
        yield attributes["__wrapped__"]


def _captured(function: Any) -> Iterator[object]:
    """Yield the functions in a function's closure: a decorator that does not set `__wrapped__` keeps them there."""
    for cell in function.__closure__ or ():
        try:
            content = CellType.cell_contents.__get__(cell)
        except ValueError:
            continue
        if type(content) is FunctionType:
            yield content


def functions(things: Iterator[object]) -> Iterator[FunctionType]:
    """Yield the functions that objects consist of, each once.

    Args:
        things: functions, classes, methods, properties, partials, wrappers; anything else has no part.
    """
    seen: set[int] = set()
    waiting = list(things)
    keep = []  # so that no identity is given out twice
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or issubclass(type(thing), ModuleType):
            continue
        seen.add(id(thing))
        keep.append(thing)
        if type(thing) is FunctionType:
            yield thing
        waiting.extend(parts(thing))


class _Coverage:
    """Remembers for which files and modules a scope was asked already: functions come in the thousands."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.answers: dict[tuple[str, str], bool] = {}

    def __call__(self, function: FunctionType) -> bool:
        module = function.__module__
        question = (module if type(module) is str else "", function.__code__.co_filename)
        answer = self.answers.get(question)
        if answer is None:
            answer = self.answers[question] = self.scope.covers(*question)
        return answer


def modules(scope: Scope) -> Iterator[dict[str, object]]:
    """Yield the namespaces of the loaded modules that a scope covers.

    Args:
        scope: the code that is meant.
    """
    for name, module in list(sys.modules.items()):
        if not issubclass(type(module), ModuleType):
            continue
        attributes = namespace(module)
        filename = attributes.get("__file__")
        if type(filename) is str and scope.covers(name, filename):
            yield attributes


def loaded_functions(scope: Scope) -> Iterator[FunctionType]:
    """Yield the functions that exist now and come from code that a scope covers, each once.

    The modules are walked, and then the garbage collector is asked for all functions: registries, closures and
    instances hold functions that no walk gets at, and a walk finds those that `gc.freeze` has hidden.

    Args:
        scope: the code that is meant.
    """
    covered = _Coverage(scope)
    seen: set[int] = set()
    walked = functions(iter([value for attributes in modules(scope) for value in list(attributes.values())]))
    for function in [*walked, *(thing for thing in gc.get_objects() if type(thing) is FunctionType)]:
        if id(function) not in seen and covered(function):
            seen.add(id(function))
            yield function
