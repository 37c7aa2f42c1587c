"""What computed an item on the value stack, as far as names, attributes, tuples, constants and calls tell it."""

from __future__ import annotations

import opcode
from types import CodeType
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from daifu_bc import pyversion
from daifu_bc.analysis.code import Instruction
from daifu_bc.analysis.flow import Flow, op_set


class Name(NamedTuple):
    """A variable; `scope` is one of LOCAL, GLOBAL and ANY (class bodies and modules: local, global, builtin)."""

    name: str
    scope: str


class Attribute(NamedTuple):
    """`of.name`."""

    of: Expression
    name: str


class Display(NamedTuple):
    """A tuple that is built from its items."""

    items: tuple[Expression | None, ...]


class Constant(NamedTuple):
    """A constant of the code object."""

    value: object


class Sum(NamedTuple):
    """`left + right`."""

    left: Expression
    right: Expression


class Call(NamedTuple):
    """A call with its positional arguments; one that nothing is known of is None, as are starred ones together.

    `plain` is False if there are keywords or stars.
    """

    function: Expression
    arguments: tuple[Expression | None, ...]
    plain: bool


Expression = Name | Attribute | Display | Constant | Sum | Call

LOCAL: Final = "local"
GLOBAL: Final = "global"
ANY: Final = "any"

_OP: Final = opcode.opmap
_LOAD_GLOBAL, _LOAD_NAME, _LOAD_CONST = _OP["LOAD_GLOBAL"], _OP["LOAD_NAME"], _OP["LOAD_CONST"]
_FAST: Final = op_set("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW")
_TWO_FAST: Final = frozenset(
    _OP[name] for name in ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW") if name in _OP
)
_STORE_AND_LOAD: Final = _OP.get("STORE_FAST_LOAD_FAST", -1)
_DEREF: Final = op_set("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_SMALL_INT: Final = _OP.get("LOAD_SMALL_INT", -1)
_COMMON: Final = _OP.get("LOAD_COMMON_CONSTANT", -1)
_COMMON_CONSTANTS: Final[tuple[object, ...]] = tuple(getattr(opcode, "_common_constants", ()))
_ATTRIBUTE: Final = op_set("LOAD_ATTR", "LOAD_METHOD")
_LOAD_ATTR: Final = _OP["LOAD_ATTR"]
_BUILD_TUPLE, _BINARY_OP, _CALL = _OP["BUILD_TUPLE"], _OP["BINARY_OP"], _OP["CALL"]
_CALL_KW, _CALL_EX = _OP.get("CALL_KW", -1), _OP["CALL_FUNCTION_EX"]
_KW_NAMES: Final = _OP.get("KW_NAMES", -1)
_ADD: Final = 0  # the argument of BINARY_OP for `+`
#: How deep an expression may be nested before it counts as unknown.
_DEEPEST: Final = 12
#: From 3.12 the lowest bit of LOAD_ATTR's argument tells whether a method is loaded.
_ATTR_SHIFT: Final = 0 if "LOAD_METHOD" in _OP and _OP["LOAD_METHOD"] < 256 else 1


def variable_name(code: CodeType, number: int) -> str:
    """The name of a fast local, cell or free variable by its slot."""
    names = code.co_varnames
    if number < len(names):
        return names[number]
    rest = [name for name in code.co_cellvars if name not in names]
    return [*rest, *code.co_freevars][number - len(names)]


_merged: WeakKeyDictionary[Flow, frozenset[int]] = WeakKeyDictionary()


def is_merged(flow: Flow, origin: int) -> bool:
    """Whether an item of this origin may have been made elsewhere as well, as in `a if c else b`."""
    same = flow._same
    if not same:
        return False
    known = _merged.get(flow)
    if known is None:
        known = _merged[flow] = frozenset(same).union(same.values())
    return origin in known


def expression(flow: Flow, place: int, index: int, deepest: int = _DEEPEST) -> Expression | None:
    """What computed an item of the stack before the instruction at `place`.

    Args:
        flow: the code.
        place: place of the instruction.
        index: index of the item in the stack; negative ones count from the top.
        deepest: how many levels to go down.

    Returns:
        None if it was something else, or is not the same on every path.
    """
    stack = flow.stacks[place]
    if stack is None or not deepest or not -len(stack) <= index < len(stack):
        return None
    origin = stack[index][1]
    producer = flow.index[origin]
    if is_merged(flow, origin):
        return None
    instruction = flow.instructions[producer]
    number = instruction.opcode
    leaf = _leaf(flow.code, instruction)
    if leaf is not None:
        return leaf
    result: Expression | None = None
    if number in _TWO_FAST:
        result = _one_of_two(flow.code, instruction.arg, [item[1] for item in stack], index % len(stack))
    elif number in _ATTRIBUTE:
        of = expression(flow, producer, -1, deepest - 1)
        shift = _ATTR_SHIFT if number == _LOAD_ATTR else 0
        result = Attribute(of, flow.code.co_names[instruction.arg >> shift]) if of is not None else None
    elif number == _BUILD_TUPLE:
        items = range(-instruction.arg, 0)
        result = Display(tuple(expression(flow, producer, item, deepest - 1) for item in items))
    elif number == _BINARY_OP and instruction.arg == _ADD:
        left, right = (expression(flow, producer, item, deepest - 1) for item in (-2, -1))
        result = Sum(left, right) if left is not None and right is not None else None
    elif number in (_CALL, _CALL_KW, _CALL_EX):
        result = call(flow, producer, deepest)
    return result


def _leaf(code: CodeType, instruction: Instruction) -> Expression | None:
    number, arg = instruction.opcode, instruction.arg
    if number == _LOAD_GLOBAL:
        return Name(code.co_names[arg >> 1], GLOBAL)
    if number in _FAST or number in _DEREF:
        return Name(variable_name(code, arg), LOCAL)
    if number == _STORE_AND_LOAD:
        return Name(variable_name(code, arg & 15), LOCAL)
    if number == _LOAD_NAME:
        return Name(code.co_names[arg], ANY)
    if number == _LOAD_CONST:
        return Constant(code.co_consts[arg])
    if number == _SMALL_INT:
        return Constant(arg)
    if number == _COMMON and arg < len(_COMMON_CONSTANTS):
        return Constant(_COMMON_CONSTANTS[arg])
    return None


def _one_of_two(code: CodeType, arg: int, origins: list[int], index: int) -> Expression | None:
    """The item that one of the two halves of a fused load has pushed, told by its neighbour."""
    origin = origins[index]
    if origin in origins[:index]:
        return Name(variable_name(code, arg & 15), LOCAL)
    if origin in origins[index + 1 :]:
        return Name(variable_name(code, arg >> 4), LOCAL)
    return None


def call(flow: Flow, place: int, deepest: int = _DEEPEST) -> Call | None:
    """What the call at `place` calls, or None if it is no call or the callable is unknown."""
    instruction = flow.instructions[place]
    if pyversion.HAS_PRECALL and place and flow.instructions[place - 1].name == "PRECALL":
        place -= 1  # the arguments' effect is told of PRECALL
    stack = flow.stacks[place]
    if stack is None:
        return None
    named = 0  # how many of the arguments are keywords
    if instruction.opcode == _CALL:
        extra, count = 0, instruction.arg
        named = _named_before(flow, place)
    elif instruction.opcode == _CALL_KW:
        extra, count = 1, instruction.arg
        names = expression(flow, place, -1)
        named = len(names.value) if type(names) is Constant and type(names.value) is tuple else count
    elif instruction.opcode == _CALL_EX:
        # The arguments' tuple, perhaps keywords, and before 3.14 no item for absent ones.
        effect = 2 if not pyversion.EXIT_IS_A_PAIR and not instruction.arg & 1 else 3
        extra, count = effect - 1, 0
    else:
        return None
    # The upper slot first: of a method both are told by it, of a function it is NULL or the callable.
    for slot in (-1, -2):
        index = slot - count - extra
        function = expression(flow, place, index, deepest - 1)
        if function is not None:
            break
    else:
        return None
    if instruction.opcode == _CALL_EX:
        return Call(function, (None,), False)
    positional = range(-count - extra, -named - extra)
    arguments = tuple(expression(flow, place, item, deepest - 1) for item in positional)
    return Call(function, arguments, not named)


def _named_before(flow: Flow, place: int) -> int:
    """How many keywords KW_NAMES announces for the call at `place` (3.11, 3.12)."""
    for before in reversed(flow.instructions[max(0, place - 2) : place]):
        if before.opcode == _KW_NAMES:
            names = flow.code.co_consts[before.arg]
            return len(names) if type(names) is tuple else 0
    return 0
