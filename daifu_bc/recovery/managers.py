"""Whether leaving a `with` stops an exception: `contextlib.suppress`, `pytest.raises` and their like do.

The manager itself lies on the value stack of a running frame, out of reach. So it is told by the expression that gave
it, by the variable after `as`, and by what the code of its `__exit__` can return.
"""

from __future__ import annotations

import contextlib
import functools
import opcode
import weakref
from types import CodeType, FrameType, FunctionType, GeneratorType, MethodType
from typing import Any, Final, NamedTuple, cast

from daifu_bc.analysis.expressions import (
    LOCAL,
    Attribute,
    Call,
    Constant,
    Expression,
    Name,
    expression,
    variable_name,
)
from daifu_bc.analysis.flow import RETURNS, Flow
from daifu_bc.analysis.handlers import CLAUSES, WITH_EXIT, Handler, chain, thrown_in
from daifu_bc.analysis.identity import ByIdentity
from daifu_bc.recovery.bodies import flow_of
from daifu_bc.recovery.lookups import (
    UNKNOWN,
    Scope,
    attribute,
    evaluate,
    find_in_class,
    frame_scope,
    function_scope,
    is_a,
    is_subclass,
    local_value,
    matches,
    mro,
)
from daifu_bc.recovery.places import locate
from daifu_bc.rewrite.barrier import pristine

#: The `__exit__` of a class passes every exception on, may stop some, stops all, or nobody knows.
PASSES: Final = "passes"
MAY_STOP: Final = "may stop"
STOPS: Final = "stops"

#: Functions and classes, by module and qualified name, whose arguments are the exceptions that their manager stops.
_SUPPRESSING: Final = frozenset(
    {
        ("contextlib", "suppress"),
        ("_pytest.python_api", "raises"),
        ("_pytest.raises", "raises"),
        ("_pytest.raises", "RaisesExc"),
        ("unittest.case", "TestCase.assertRaises"),
        ("unittest.case", "TestCase.assertRaisesRegex"),
    }
)
#: ... of which these take only the first.
_FIRST_ONLY: Final = "raises"
_BY_NAME: Final = frozenset({"assertRaises", "assertRaisesRegex"})

_OP: Final = opcode.opmap
_RETURN_CONST: Final = _OP.get("RETURN_CONST", -1)
#: What these compute is a truth value that may be true.
_TRUTHS: Final = frozenset({_OP[name] for name in ("COMPARE_OP", "IS_OP", "CONTAINS_OP", "UNARY_NOT")})
_JUDGING_CALLS: Final = frozenset({"issubclass", "isinstance", "bool", "any", "all"})
_YIELD, _STORE_FAST = _OP["YIELD_VALUE"], _OP["STORE_FAST"]

#: The attribute of these that has what they expect.
_EXPECTED: Final = {
    ("_pytest.raises", "RaisesExc"): "expected_exceptions",
    ("_pytest.python_api", "RaisesContext"): "expected_exception",
    ("unittest.case", "_AssertRaisesContext"): "expected",
}

_class_dict: Final = type.__dict__["__dict__"].__get__
#: Nothing speaks for its stopping an exception.
_NOTHING: Final = (False, "")
#: What the code of an `__exit__` can return.
_exits: ByIdentity[str] = ByIdentity()


class _Facts(NamedTuple):
    """What is known of a class of managers.

    Attributes:
        guard: keeps this from being taken for that of another class.
        is_suppress: whether it is `contextlib.suppress`.
        takes_given: whether the arguments of a call of it are the exceptions that it stops.
        expected: the attribute that has what it stops, if there is one.
        has_generator: whether its exit goes on in a generator, `gen`.
        is_stack: whether it may be an ExitStack.
        is_plain: whether it is none of these, so that only the code of its exit counts.
        place: its module and qualified name.
    """

    guard: weakref.ref[type]
    is_suppress: bool
    takes_given: bool
    expected: str | None
    has_generator: bool
    is_stack: bool
    is_plain: bool
    place: tuple[str, str]


_facts: dict[int, _Facts] = {}


def _facts_of(cls: type) -> _Facts:
    known = _facts.get(id(cls))
    if known is not None:
        return known
    key = id(cls)
    place = _place_of(cls)
    exits = [find_in_class(base, name) for base in mro(cls) for name in ("__exit__", "__aexit__")]
    is_suppress = is_subclass(contextlib.suppress, cls)
    expected = _EXPECTED.get(place)
    has_generator = any(type(exit_) is FunctionType and "gen" in exit_.__code__.co_names for exit_ in exits)
    is_stack = place[0] == "contextlib"
    known = _Facts(
        weakref.ref(cls, lambda _, facts=_facts: facts.pop(key, None)),  # type: ignore[misc]
        is_suppress,
        place in _SUPPRESSING,
        expected,
        has_generator,
        is_stack,
        not (is_suppress or expected is not None or has_generator or is_stack),
        place,
    )
    _facts[key] = known
    return known


def stops(handler: Handler, frame: FrameType, kind: type[BaseException], seen: int = 0) -> tuple[bool, str]:
    """Whether the `with` of `handler` in `frame` may stop an exception of class `kind`.

    Returns:
        The answer, and how it was found; empty if nothing speaks for it.
    """
    made = handler.manager
    if type(made) is Name and made.scope == LOCAL:  # the same as below, faster
        manager = local_value(frame, made.name)
        if manager is not UNKNOWN:
            return manager_stops(manager, kind, seen)
    scope = frame_scope(frame)
    if type(made) is Call:
        return _made_by_call(made, handler.bound, scope, kind, seen)
    manager = evaluate(made, scope)
    if manager is UNKNOWN:
        manager = _bound_manager(handler.bound, scope)
    return (False, "") if manager is UNKNOWN else manager_stops(manager, kind, seen)


def _bound_manager(bound: Name | None, scope: Scope) -> object:
    """The value after `as` if it looks like the manager itself, as with ExitStack."""
    value = evaluate(bound, scope)
    if value is UNKNOWN:
        return UNKNOWN
    usable = any(find_in_class(type(value), name) is not UNKNOWN for name in ("__exit__", "__aexit__"))
    return value if usable else UNKNOWN


def _made_by_call(
    made: Call, bound: Name | None, scope: Scope, kind: type[BaseException], seen: int
) -> tuple[bool, str]:
    function = evaluate(made.function, scope)
    if type(function) is MethodType:
        function = function.__func__
    last = made.function.name if isinstance(made.function, Name | Attribute) else ""
    if is_a(function, type):
        cls = cast(type, function)
        facts = _facts_of(cls)
        if facts.takes_given:
            return _given(made, scope, kind, facts.place[1])
        live = UNKNOWN if bound is None else _bound_manager(bound, scope)
        return manager_stops(live, kind, seen) if type(live) is cls else _class_stops(cls)
    place = _place_of(function)
    if place in _SUPPRESSING or (function is UNKNOWN and last in _BY_NAME):
        return _given(made, scope, kind, last if place == ("", "") else place[1])
    if type(function) is functools.partial:
        function = function.func
    inner = _generator_function(function)
    if inner is not None:
        return _body_catches(inner, kind, seen)
    live = _bound_manager(bound, scope)
    return (False, "") if live is UNKNOWN else manager_stops(live, kind, seen)


def _place_of(function: object) -> tuple[str, str]:
    if is_a(function, type):
        names = type.__dict__["__dict__"].__get__(function)
        module = names.get("__module__")
        return (module if type(module) is str else "", type.__dict__["__qualname__"].__get__(function))
    if type(function) is FunctionType:
        name, qualname = function.__globals__.get("__name__"), function.__qualname__
        return (name, qualname) if type(name) is str and type(qualname) is str else ("", "")
    return ("", "")


def _given(made: Call, scope: Scope, kind: type[BaseException], name: str) -> tuple[bool, str]:
    """Whether one of the arguments of `suppress`, `raises` and the like matches."""
    given = made.arguments[:1] if name.endswith((_FIRST_ONLY, *_BY_NAME)) else made.arguments
    for argument in given:
        value = evaluate(argument, scope)
        if value is UNKNOWN:
            return True, f"`{name}` may stop it; its arguments cannot be told"
        if matches(kind, value):
            return True, f"`{name}` stops it"
    return False, ""


def _generator_function(function: object) -> FunctionType | None:
    """The generator function under `@contextlib.contextmanager`, if `function` is such a helper."""
    if type(function) is not FunctionType or function.__code__.co_filename != contextlib.__file__:
        return None
    wrapped = function.__dict__.get("__wrapped__")
    return wrapped if type(wrapped) is FunctionType else None


def manager_stops(manager: object, kind: type[BaseException], seen: int = 0) -> tuple[bool, str]:
    """Whether a manager that is at hand may stop an exception of class `kind`."""
    cls = type(manager)
    if seen > 20:
        return _NOTHING
    facts = _facts.get(id(cls)) or _facts_of(cls)
    if facts.is_plain:
        return _class_stops(cls)
    if facts.is_suppress:
        given = attribute(manager, "_exceptions")
        return (True, "`contextlib.suppress` stops it") if matches(kind, given) else (False, "")
    if facts.expected is not None:
        given = attribute(manager, facts.expected)
        stopped = given is UNKNOWN or matches(kind, given)
        return (True, f"`{facts.place[1]}` stops it") if stopped else (False, "")
    if facts.has_generator:
        generator = attribute(manager, "gen")
        if type(generator) is GeneratorType and generator.gi_frame is not None:
            return _frame_catches(generator.gi_frame, kind, seen)
    if facts.is_stack:
        callbacks = attribute(manager, "_exit_callbacks")
        if callbacks is not UNKNOWN:
            return _stack_stops(callbacks, kind, seen)
    return _class_stops(cls)


def _stack_stops(callbacks: Any, kind: type[BaseException], seen: int) -> tuple[bool, str]:
    for entry in list(callbacks):
        exit_ = entry[1]
        if type(exit_) is not MethodType:
            continue
        answer = manager_stops(exit_.__self__, kind, seen + 1)
        if answer[0]:
            return answer
    return False, ""


def _class_stops(cls: type) -> tuple[bool, str]:
    """What the code of `__exit__` can return."""
    exit_ = _class_dict(cls).get("__exit__", UNKNOWN)
    if exit_ is UNKNOWN:
        exit_ = find_in_class(cls, "__exit__")
    if exit_ is UNKNOWN:
        exit_ = find_in_class(cls, "__aexit__")
    if type(exit_) is not FunctionType:
        if type(exit_) in (staticmethod, classmethod):
            exit_ = cast(Any, exit_).__func__
        if type(exit_) is not FunctionType:
            return _NOTHING  # written in C: files, locks and their like pass everything on
    code = exit_.__code__
    answer = _exits.get(code)
    if answer is None:
        answer = _exit_answer(pristine(code))
        _exits.put(code, answer)
    if answer == PASSES:
        return _NOTHING
    name = type.__dict__["__qualname__"].__get__(cls)
    return True, f"`{name}.__exit__` {'stops' if answer == STOPS else 'may stop'} it"


def _exit_answer(code: CodeType) -> str:
    """Whether an `__exit__` can return something that is true. What a call gives counts as false, if it is no test."""
    flow = Flow(code)
    constants: set[bool] = set()
    may = False
    for place, instruction in enumerate(flow.instructions):
        stack = flow.stacks[place]
        if stack is None:
            continue
        if instruction.opcode == _RETURN_CONST:
            constants.add(bool(code.co_consts[instruction.arg]))
        elif instruction.opcode in RETURNS:
            made = expression(flow, place, -1)
            if type(made) is Constant:
                constants.add(bool(made.value))
            elif _is_test(flow, stack[-1][1], made):
                may = True
    if may or constants == {True, False}:
        return MAY_STOP
    return STOPS if constants == {True} else PASSES


def _is_test(flow: Flow, origin: int, made: Expression | None) -> bool:
    number = flow.instructions[flow.index[origin]].opcode
    if number in _TRUTHS or number == _OP["COPY"]:
        return True
    if type(made) is Call:
        return type(made.function) is Name and made.function.name in _JUDGING_CALLS
    if type(made) is Name and made.scope == LOCAL:
        return _local_is_test(flow, made)
    if type(made) in (Name, Attribute):
        return True
    # `a and b`: made in more than one place.
    return made is None and any(
        flow.instructions[flow.index[other]].opcode in _TRUTHS
        for other, to in flow._same.items()
        if to == origin
    )


def _local_is_test(flow: Flow, name: Name) -> bool:
    """Whether a local is given such a value somewhere; a parameter as it came is one."""
    assigned = False
    for place, instruction in enumerate(flow.instructions):
        stack = flow.stacks[place]
        if (
            stack
            and instruction.opcode == _STORE_FAST
            and variable_name(flow.code, instruction.arg) == name.name
        ):
            assigned = True
            made = expression(flow, place, -1)
            if type(made) is Constant:
                if made.value:
                    return True
            elif type(made) is not Name and _is_test(flow, stack[-1][1], made):
                return True
    return not assigned


def _body_catches(function: FunctionType, kind: type[BaseException], seen: int) -> tuple[bool, str]:
    """Whether a generator function has a handler around one of its `yield`s that stops the exception."""
    flow = flow_of(pristine(function.__code__))
    scope = function_scope(function)
    for place, instruction in enumerate(flow.instructions):
        if instruction.opcode != _YIELD or flow.stacks[place] is None or not thrown_in(flow, place):
            continue
        answer = _chain_catches(chain(flow, instruction.offset), scope, kind, function.__qualname__, seen)
        if answer[0]:
            return answer
    return False, ""


def _frame_catches(frame: FrameType, kind: type[BaseException], seen: int) -> tuple[bool, str]:
    code, offset = locate(frame.f_code, frame.f_lasti)
    if offset < 0:
        return False, ""
    flow = flow_of(code)
    return _chain_catches(chain(flow, offset), frame_scope(frame), kind, frame.f_code.co_qualname, seen)


def _chain_catches(
    handlers: list[Handler], scope: Scope, kind: type[BaseException], name: str, seen: int
) -> tuple[bool, str]:
    for handler in handlers:
        if handler.kind == WITH_EXIT and scope.frame is not None and seen < 20:
            answer = stops(handler, scope.frame, kind, seen + 1)
            if answer[0]:
                return answer
        if handler.kind != CLAUSES:
            continue
        for clause in handler.clauses:
            value = BaseException if clause.bare else evaluate(clause.types, scope)
            if value is UNKNOWN or matches(kind, value):
                if clause.swallows:
                    return (
                        True,
                        f"the context manager `{name}` {'may catch' if value is UNKNOWN else 'catches'} it",
                    )
                break
    return False, ""
