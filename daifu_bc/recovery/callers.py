"""Python that was called from C: what the C code makes of an exception.

`hasattr` takes an AttributeError, a loop over an object with only `__getitem__` ends with an IndexError, and so on.
"""

from __future__ import annotations

import opcode
import operator
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Final, NamedTuple

from daifu_bc.analysis.expressions import Attribute, Call, Expression, Name, call
from daifu_bc.analysis.flow import Flow, op_set
from daifu_bc.recovery.lookups import UNKNOWN, evaluate, find_in_class, frame_scope, is_a, local_value, text

_OP: Final = opcode.opmap


def _ops(*names: str) -> frozenset[int]:
    return frozenset(_OP[name] for name in names if name in _OP)


_CALLS: Final = op_set("CALL", "CALL_KW", "CALL_FUNCTION_EX", "PRECALL")
_LOADS: Final = op_set("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR")
_ITERATES: Final = op_set(
    "FOR_ITER", "UNPACK_SEQUENCE", "UNPACK_EX", "CONTAINS_OP", "LIST_EXTEND", "SET_UPDATE", "SEND", "GET_ITER"
) | _ops("GET_YIELD_FROM_ITER", "LIST_TO_TUPLE")
_NAMES: Final = op_set("LOAD_NAME") | _ops(
    "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_FROM_DICT_OR_DEREF", "LOAD_CLASSDEREF", "LOAD_BUILD_CLASS"
)
_LOAD_GLOBAL: Final = _OP["LOAD_GLOBAL"]
_IMPORT_FROM: Final = _OP["IMPORT_FROM"]
_MATCH_CLASS: Final = _OP["MATCH_CLASS"]
#: No Python runs in these but what the interpreter itself calls when an object dies; its exceptions are only printed.
_SILENT: Final = op_set("STORE_FAST", "DELETE_FAST", "POP_TOP", "STORE_DEREF", "DELETE_DEREF") | _ops(
    "POP_ITER", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST", "END_FOR", "POP_EXCEPT", "SWAP"
)
_DELEGATES: Final = _ops(
    "SEND", "YIELD_VALUE", "RESUME", "JUMP_BACKWARD_NO_INTERRUPT", "YIELD_FROM", "END_SEND"
)

#: How C code may take one of these; no other kind of exception needs a look.
EXPECTED: Final = (AttributeError, IndexError, KeyError, TypeError)

#: Functions that are called to ask something, which an EXPECTED exception but AttributeError may be an answer to.
ASKED: Final = frozenset({"__getitem__", "__len__", "__length_hint__"})


class Site(NamedTuple):
    """What a frame is doing at an offset.

    Attributes:
        opcode: the instruction.
        call: what it calls, if it is a call and that can be told.
        name: the last name in what it calls.
        is_silent: whether only the end of an object's life can run Python code here.
        delegates: whether the frame awaits, or yields from, the one inside it.
    """

    opcode: int
    call: Call | None = None
    name: str = ""
    is_silent: bool = False
    delegates: bool = False


def site(flow: Flow, place: int) -> Site:
    """What the instruction at `place` does to those whom it calls."""
    number = flow.instructions[place].opcode
    made = call(flow, place) if number in _CALLS else None
    function = made.function if made is not None else None
    name = function.name if isinstance(function, Name | Attribute) else ""
    return Site(number, made, name, number in _SILENT, number in _DELEGATES)


def swallowed(inner: FrameType, outer: FrameType, where: Site, kind: type[BaseException]) -> str:
    """How the C code between two frames takes an exception of one of the EXPECTED kinds; empty if it does not."""
    name = inner.f_code.co_name
    number = where.opcode
    if issubclass(kind, AttributeError):
        return _attribute_error(inner, outer, where, name)
    if name == "__getitem__":
        if issubclass(kind, KeyError) and (number in _NAMES or number == _LOAD_GLOBAL):
            return "it means to the interpreter that a name is not in this namespace"
        if issubclass(kind, IndexError) and _iterates(inner, outer, where):
            return "it ends an iteration by `__getitem__`"
    if issubclass(kind, TypeError) and name in ASKED:
        function = _callable(outer, where)
        if number == _OP["LIST_EXTEND"] or (number in _CALLS and is_a(function, type)):
            return "it means that a length cannot be told beforehand"
    return ""


def _callable(outer: FrameType, where: Site) -> object:
    if where.call is None:
        return UNKNOWN
    return evaluate(where.call.function, frame_scope(outer))


def calls_directly(function: object, expression: Expression | None, code: CodeType) -> bool:
    """Whether a call of `function` runs `code` itself."""
    if type(function) is MethodType:
        function = function.__func__
    if type(function) is FunctionType:
        return function.__code__ is code or function.__code__.co_name == code.co_name
    return isinstance(expression, Attribute) and expression.name == code.co_name


def called_by_name(inner: FrameType, outer: FrameType, where: Site) -> bool:
    """Whether the frame is called from the program, and not by the interpreter."""
    if where.call is None:
        return False
    function = evaluate(where.call.function, frame_scope(outer))
    return calls_directly(None if function is UNKNOWN else function, where.call.function, inner.f_code)


def _iterates(inner: FrameType, outer: FrameType, where: Site) -> bool:
    if where.opcode in _ITERATES:
        return True
    if where.opcode not in _CALLS:
        return False
    function = _callable(outer, where)
    expression = where.call.function if where.call is not None else None
    if calls_directly(function, expression, inner.f_code):
        return False
    return function is not operator.getitem and type(function) is not operator.itemgetter


def _attribute_error(inner: FrameType, outer: FrameType, where: Site, name: str) -> str:
    number = where.opcode
    if number in _CALLS:
        if where.name == inner.f_code.co_name:
            return ""  # Python calls Python
        function = _callable(outer, where)
        if function is hasattr:
            return "`hasattr` takes it for an answer"
        if function is getattr:
            plain = where.call is not None and where.call.plain
            if not plain or (where.call is not None and len(where.call.arguments) == 3):
                return "`getattr` has a default for it"
            return _falls_back(inner, name)
        # Other C code that asks for an optional attribute, of numpy, pickle, copy and the like.
        if name in ("__getattr__", "__getattribute__") and type(function) not in (FunctionType, MethodType):
            expression = where.call.function if where.call is not None else None
            asked = inner.f_code.co_varnames[1] if inner.f_code.co_argcount == 2 else ""
            wanted = local_value(inner, asked) if asked else UNKNOWN
            if (
                type(wanted) is str
                and wanted[:2] == "__"
                and not calls_directly(function, expression, inner.f_code)
            ):
                return f"code in C asks whether there is `{wanted}`"
            return ""
    if number in _LOADS:
        return _falls_back(inner, name)
    if number == _IMPORT_FROM:
        return "`from … import` looks for a submodule then"
    if number == _MATCH_CLASS:
        return "the pattern does not match then"
    return ""


def _falls_back(inner: FrameType, name: str) -> str:
    """Whether `__getattr__` is asked next: the frame is a property or `__getattribute__` of an object that has one."""
    code = inner.f_code
    if name == "__getattr__" or not code.co_argcount:
        return ""
    position = 1 if name == "__get__" and code.co_argcount > 1 else 0
    owner = local_value(inner, code.co_varnames[position])
    if owner is UNKNOWN or find_in_class(type(owner), "__getattr__") is UNKNOWN:
        return ""
    if name != "__getattribute__" and name != "__get__" and not _is_getter(type(owner), code):
        return ""
    return "`__getattr__` is asked next"


def _is_getter(cls: type, code: CodeType) -> bool:
    """Whether `code` is the getter of a property of the class, or called by a descriptor of it."""
    found = find_in_class(cls, code.co_name)
    return found is not UNKNOWN and type(found) is not FunctionType


def describe(where: Site) -> str:
    """The call as it may stand in the source."""
    return text(where.call) if where.call is not None else ""
