"""What each instruction does to the stack and the locals: the verifier's own table, shared with nothing that builds.

Facts are those of CPython's Python/bytecodes.c (3.12+) and Python/ceval.c (3.11) of each version.
"""

from __future__ import annotations

import dis
import opcode
from collections.abc import Callable
from typing import Any, Final

from daifu_bc import pyversion
from daifu_bc.rewrite.kinds import GENERATOR, NO_GENERATOR, NOT_RESUMED, PAIR, no_cell, unbound

V: Final = pyversion.VERSION

#: The table that an argument indexes.
NOTHING, CONSTS, NAMES, LOCALS, CELLS = range(5)


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def _table(text: str) -> dict[str, tuple[str, str]]:
    """Name of an opcode -> its inputs and outputs, from entries that are separated by `|`; `-` stands for none."""
    entries = (entry.split() for entry in text.split("|"))
    return {name: (inputs.strip("-"), outputs.strip("-")) for name, inputs, outputs in entries}


# Instructions that raise nothing, and at which no signal handler runs.
_QUIET: Final = words("""NOP POP_TOP POP_ITER END_FOR PUSH_NULL LOAD_CONST LOAD_SMALL_INT LOAD_COMMON_CONSTANT COPY SWAP
    STORE_FAST STORE_FAST_STORE_FAST STORE_FAST_LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_LOAD_FAST LOAD_FAST_AND_CLEAR
    LOAD_FAST_BORROW_LOAD_FAST_BORROW RETURN_VALUE RETURN_CONST JUMP_FORWARD JUMP_BACKWARD_NO_INTERRUPT NOT_TAKEN
    PUSH_EXC_INFO POP_EXCEPT COPY_FREE_VARS END_SEND KW_NAMES IS_OP POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE
    POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE
    LOAD_ASSERTION_ERROR STORE_DEREF""") | ({"LOAD_FAST"} if pyversion.UNCHECKED_LOADS else set())  # fmt: skip

_ENDS: Final = words("""RETURN_VALUE RETURN_CONST RAISE_VARARGS RERAISE JUMP_FORWARD JUMP_BACKWARD
    JUMP_BACKWARD_NO_INTERRUPT""")

# Inputs and outputs of what does not depend on the argument.
_FIXED: Final = _table(
    """
    NOP - - | RESUME - - | NOT_TAKEN - - | MAKE_CELL - - | COPY_FREE_VARS - - | SETUP_ANNOTATIONS - -
    | PRECALL - - | KW_NAMES - - | JUMP_FORWARD - - | JUMP_BACKWARD - - | JUMP_BACKWARD_NO_INTERRUPT - -
    | POP_TOP p - | PUSH_NULL - n | END_ASYNC_FOR oe - | RETURN_GENERATOR - o
    | LOAD_CONST - o | LOAD_SMALL_INT - o | LOAD_COMMON_CONSTANT - o | LOAD_ASSERTION_ERROR - o | LOAD_BUILD_CLASS - o
    | LOAD_LOCALS - o | LOAD_NAME - o | LOAD_CLOSURE - o | LOAD_DEREF - o | LOAD_CLASSDEREF - o
    | LOAD_FROM_DICT_OR_DEREF o o | LOAD_FROM_DICT_OR_GLOBALS o o
    | LOAD_FAST - o | LOAD_FAST_CHECK - o | LOAD_FAST_BORROW - b | LOAD_FAST_AND_CLEAR - m
    | LOAD_FAST_LOAD_FAST - oo | LOAD_FAST_BORROW_LOAD_FAST_BORROW - bb
    | STORE_FAST n - | STORE_FAST_STORE_FAST nn - | STORE_FAST_LOAD_FAST n o | DELETE_FAST - -
    | STORE_NAME o - | STORE_GLOBAL o - | STORE_DEREF o - | STORE_ATTR oo - | STORE_SUBSCR ooo - | STORE_SLICE oooo -
    | DELETE_NAME - - | DELETE_GLOBAL - - | DELETE_DEREF - - | DELETE_ATTR o - | DELETE_SUBSCR oo -
    | UNARY_NEGATIVE o o | UNARY_NOT o o | UNARY_INVERT o o | UNARY_POSITIVE o o | TO_BOOL o o
    | BINARY_OP oo o | BINARY_SUBSCR oo o | BINARY_SLICE ooo o | COMPARE_OP oo o | IS_OP oo o | CONTAINS_OP oo o
    | GET_AITER o o | GET_YIELD_FROM_ITER o o | GET_AWAITABLE o o | ASYNC_GEN_WRAP o o | LIST_TO_TUPLE L o
    | YIELD_VALUE o o | RETURN_VALUE o - | RETURN_CONST - - | PRINT_EXPR o - | IMPORT_STAR o - | IMPORT_NAME oo o
    | PUSH_EXC_INFO e se | POP_EXCEPT s - | CHECK_EG_MATCH eo ee | PREP_RERAISE_STAR eL e
    | BEFORE_WITH o oo | BEFORE_ASYNC_WITH o oo | LOAD_SPECIAL o om | MATCH_CLASS ooo o
    | SET_FUNCTION_ATTRIBUTE oo o | CONVERT_VALUE o o | FORMAT_SIMPLE o o | FORMAT_WITH_SPEC oo o | BUILD_TEMPLATE oo o
    """
)
_FOR_ITER: Final = "ix" if PAIR else "i"
_SEND: Final = "oxo" if PAIR else "oo"
_FIXED.update({name: ("o", "") for name in opcode.opmap if name.startswith(("POP_JUMP_", "JUMP_IF_"))})
_FIXED.update(
    {
        "GET_ITER": ("o", "ix" if PAIR else "i"),
        "END_FOR": ("oo", "") if (3, 12) <= V < (3, 13) else ("o", ""),
        "FOR_ITER": (_FOR_ITER, _FOR_ITER + "o"),
        "SEND": (_SEND, _SEND),
        "IMPORT_FROM": ("o", "oo"),
        "POP_ITER": ("ix", "") if PAIR else ("o", ""),
        "END_SEND": ("oxo", "o") if PAIR else ("oo", "o"),
        "CLEANUP_THROW": ("oxoe", "ono") if PAIR else ("ooe", "oo"),
    }
)

# Inputs that stay on the stack, with something pushed on top.
_PEEKING: Final[dict[str, tuple[str, str]]] = {
    "GET_ANEXT": ("o", "o"),
    "GET_LEN": ("o", "o"),
    "MATCH_MAPPING": ("o", "o"),
    "MATCH_SEQUENCE": ("o", "o"),
    "MATCH_KEYS": ("oo", "o"),
    "CHECK_EXC_MATCH": ("eo", ""),
    "WITH_EXCEPT_START": ("onlse" if pyversion.EXIT_IS_A_PAIR else "olse", "o"),
}


def _call(arg: int, extra: str = "") -> str:
    return ("no" if pyversion.NULL_BEFORE_CALLABLE else "on") + "o" * arg + extra


def _method(arg: int) -> str:
    """What an attribute or global lookup pushes; the lowest bit asks for a pair that CALL takes."""
    if not arg & 1:
        return "o"
    return "mo" if pyversion.NULL_BEFORE_CALLABLE else "om"


def _call_function_ex(arg: int) -> tuple[str, str]:
    if V >= (3, 14):
        return "onon", "o"
    return ("Noo" if pyversion.NULL_BEFORE_CALLABLE else "oNo") + "o" * (arg & 1), "o"


_INTRINSICS_1: Final = {3: ("e", "e"), 6: ("L", "o")}  # STOPITERATION_ERROR, LIST_TO_TUPLE
_PREP_RERAISE_STAR: Final = 1
#: Inputs and outputs that depend on the argument.
_VARYING: Final[dict[str, Callable[[int], tuple[str, str]]]] = {
    "LOAD_GLOBAL": lambda arg: ("", "o" if not arg & 1 else "no" if pyversion.NULL_BEFORE_CALLABLE else "on"),
    "LOAD_ATTR": lambda arg: ("o", _method(arg) if V >= (3, 12) else "o"),
    "LOAD_METHOD": lambda _: ("o", "mo"),
    "LOAD_SUPER_ATTR": lambda arg: ("ooo", _method(arg)),
    "CALL": lambda arg: (_call(arg), "o"),
    "CALL_KW": lambda arg: (_call(arg, "o"), "o"),
    "CALL_FUNCTION_EX": _call_function_ex,
    "CALL_INTRINSIC_1": lambda arg: _INTRINSICS_1.get(arg, ("o", "o")),
    "CALL_INTRINSIC_2": lambda arg: ("eL", "e") if arg == _PREP_RERAISE_STAR else ("oo", "o"),
    "MAKE_FUNCTION": lambda arg: ("o" * (1 + (arg.bit_count() if V < (3, 13) else 0)), "o"),
    "BUILD_TUPLE": lambda arg: ("o" * arg, "o"),
    "BUILD_LIST": lambda arg: ("o" * arg, "L"),
    "BUILD_SET": lambda arg: ("o" * arg, "S"),
    "BUILD_MAP": lambda arg: ("oo" * arg, "D"),
    "BUILD_CONST_KEY_MAP": lambda arg: ("o" * (arg + 1), "D"),
    "BUILD_STRING": lambda arg: ("o" * arg, "o"),
    "BUILD_SLICE": lambda arg: ("o" * arg, "o"),
    "BUILD_INTERPOLATION": lambda arg: ("oo" + "o" * (arg & 1), "o"),
    "FORMAT_VALUE": lambda arg: ("oo" if arg & 4 else "o", "o"),
    "RAISE_VARARGS": lambda arg: ("o" * arg, ""),
    "UNPACK_SEQUENCE": lambda arg: ("o", "o" * arg),
    "UNPACK_EX": lambda arg: ("o", "o" * ((arg & 255) + 1 + (arg >> 8))),
    "SWAP": lambda arg: ("u" * arg, ""),
    "COPY": lambda arg: ("p" + "u" * (arg - 1), ""),
    "RERAISE": lambda arg: ("l" + "u" * (arg - 1) + "e" if arg else "e", ""),
}
#: Kind of the container that they put their last input (MAP_ADD: the last two) into; what lies between stays.
_INTO_CONTAINER: Final = {
    "LIST_APPEND": "L", "LIST_EXTEND": "L", "SET_ADD": "S", "SET_UPDATE": "S", "MAP_ADD": "D", "DICT_UPDATE": "D",
    "DICT_MERGE": "D",
}  # fmt: skip
#: All their inputs are there when they raise; an exception that is thrown in finds None in the place of what was yielded.
_STAYING: Final = words(
    "FOR_ITER GET_ANEXT WITH_EXCEPT_START YIELD_VALUE IMPORT_FROM GET_LEN MATCH_SEQUENCE MATCH_MAPPING MATCH_KEYS"
)
#: They take on trust what the compiler gives them; there is no use for them in what we build.
TRUSTING: Final = words("""MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE MATCH_CLASS MATCH_KEYS BUILD_TEMPLATE BUILD_INTERPOLATION
    LOAD_SUPER_ATTR DICT_MERGE CALL_KW SETUP_ANNOTATIONS LOAD_LOCALS LOAD_CLASSDEREF LOAD_FROM_DICT_OR_DEREF
    LOAD_FROM_DICT_OR_GLOBALS IMPORT_STAR CALL_INTRINSIC_2""")
#: `dis.stack_effect` counts these in another way than the interpreter does.
_NOT_COMPARED: Final = frozenset(
    {"RETURN_GENERATOR", "RETURN_VALUE"} | ({"PRECALL", "CALL"} if pyversion.HAS_PRECALL else set())
)


def _size(name: str, default: int) -> int:
    table: Any = getattr(opcode, name, None)
    return len(table) if table is not None else default


#: Arguments that select something from a table of the interpreter that it does not check: how many there are.
_CHOICES: Final = {
    "BINARY_OP": _size("_nb_ops", 26),
    "CALL_INTRINSIC_1": _size("_intrinsic_1_descs", 12),
    "CALL_INTRINSIC_2": _size("_intrinsic_2_descs", 6),
    "LOAD_COMMON_CONSTANT": _size("_common_constants", 2),
    "LOAD_SPECIAL": _size("_special_method_names", 4),
    "RAISE_VARARGS": 3,
    "LOAD_SMALL_INT": 256,
    "IS_OP": 2,
    "CONTAINS_OP": 2,
    "CONVERT_VALUE": 4,
    "BUILD_SLICE": 4,
    "MAKE_FUNCTION": 16,
}
#: No code object has as many of anything; an argument of this size could use up the memory here.
_TOO_LARGE: Final = 1 << 24
_LEAST: Final = dict.fromkeys(_INTO_CONTAINER, 1) | {
    "COPY": 1,
    "CONVERT_VALUE": 1,
    "SWAP": 2,
    "BUILD_SLICE": 2,
}

_TWO_LOCALS: Final = words(
    "LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW_LOAD_FAST_BORROW STORE_FAST_STORE_FAST STORE_FAST_LOAD_FAST"
)
_SHIFTS: Final = {"LOAD_GLOBAL": 1, "LOAD_ATTR": 1 if V >= (3, 12) else 0, "LOAD_SUPER_ATTR": 2} | (
    {"IMPORT_NAME": 2} if V >= (3, 15) else {}
)


class Effect:
    """What one instruction does, for one argument.

    Attributes:
        name: name of its opcode.
        arg: its argument.
        inputs: what it asks of the topmost slots, one letter each.
        pops: how many slots that are.
        left: how many of them may be gone when it raises.
        results: kinds of the inputs -> what takes their place; filled as they are met.
        target: whether it can jump.
        ends: whether the next instruction does not follow it.
        raises: whether it can raise, or a signal handler at it.
        space: what the argument indexes.
        index: the (largest) index.
        need: bits of the state that must not be set.
        keep: bits of the state that it leaves as they are.
        sets: bits that it sets.
        stores: slots of locals that it stores to, the topmost item's first.
        touches: whether it concerns the bits at all.
        clears: whether it puts a local aside.
        releases: whether it is a store of our own, which must respect what is borrowed.
        returns: whether it ends the frame with nothing else on the stack.
    """

    __slots__ = (
        "arg", "clears", "ends", "index", "inputs", "keep", "left", "name", "need", "outputs", "pops", "raises",
        "releases", "results", "returns", "sets", "space", "stores", "target", "touches",
    )  # fmt: skip

    def __init__(self, number: int, arg: int, overriding: str | None = None) -> None:
        name = self.name = opcode.opname[number]
        self.arg = arg
        self.inputs, self.outputs = self._shape()
        self.results: dict[str, str] = {}
        self.target = number in JUMPS
        self.ends = name in _ENDS
        self.returns = name in ("RETURN_VALUE", "RETURN_CONST")
        self.raises = name not in _QUIET
        if overriding is not None:
            self.outputs = overriding
        self.pops = len(self.inputs)
        if name in _INTO_CONTAINER:
            self.left = 2 if name == "MAP_ADD" else 1
        elif name in ("RERAISE", "CHECK_EXC_MATCH"):
            self.left = 1
        elif name in _STAYING or (not self.raises and not name.startswith("POP_JUMP")):
            self.left = 0  # a tracer may raise, before it runs
        else:
            self.left = self.pops
        self.space, self.index = self._index(number)
        self._bits()

    def _shape(self) -> tuple[str, str]:
        name, arg = self.name, self.arg
        if not _LEAST.get(name, 0) <= arg < _CHOICES.get(name, _TOO_LARGE):
            raise ValueError(f"{arg} is no argument of {name}")
        known = _FIXED.get(name) or _PEEKING.get(name)
        if known is None and name in _VARYING:
            known = _VARYING[name](arg)
        if name in _INTO_CONTAINER:
            known = _INTO_CONTAINER[name] + "u" * (arg - 1) + ("oo" if name == "MAP_ADD" else "o"), ""
        if known is None:
            raise ValueError(f"{name} is unknown")
        return known

    def _index(self, number: int) -> tuple[int, int]:
        name, arg = self.name, self.arg
        if number in opcode.hasconst:
            return (
                (CONSTS, arg) if name != "LOAD_SMALL_INT" and name != "LOAD_COMMON_CONSTANT" else (NOTHING, 0)
            )
        if number in opcode.hasname:
            return NAMES, arg >> _SHIFTS.get(name, 0)
        if name in _TWO_LOCALS:
            return LOCALS, max(arg >> 4, arg & 15)
        if number in opcode.hasfree or name.endswith("_DEREF"):
            return (LOCALS if name == "LOAD_CLOSURE" else CELLS), arg
        if number in opcode.haslocal:
            return LOCALS, arg
        return NOTHING, 0

    def _bits(self) -> None:
        name, arg = self.name, self.arg
        need = clear = sets = 0
        stores: tuple[int, ...] = ()
        if name in ("LOAD_FAST", "LOAD_FAST_BORROW"):
            need = unbound(arg) if pyversion.UNCHECKED_LOADS else 0
        elif name in ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"):
            need = unbound(arg >> 4) | unbound(arg & 15)
        elif name == "LOAD_FAST_CHECK":
            clear = unbound(arg)
        elif name in ("LOAD_FAST_AND_CLEAR", "DELETE_FAST"):
            sets = unbound(arg) | no_cell(arg)
        elif name == "STORE_FAST":
            stores = (arg,)
        elif name == "STORE_FAST_STORE_FAST":
            stores = (arg >> 4, arg & 15)
        elif name == "STORE_FAST_LOAD_FAST":
            stores = (arg >> 4,)
            if arg >> 4 != arg & 15:
                need = unbound(arg & 15)
        elif name == "MAKE_CELL":
            clear = unbound(arg) | no_cell(arg)
        elif name.endswith("_DEREF") or name == "LOAD_CLASSDEREF":
            need = no_cell(arg)
        elif name == "RETURN_GENERATOR":
            need, clear, sets = GENERATOR, NO_GENERATOR, GENERATOR
        elif name == "RESUME":
            clear = NOT_RESUMED
        elif name in ("RETURN_VALUE", "RETURN_CONST", "YIELD_VALUE"):
            need = NO_GENERATOR | NOT_RESUMED
        self.need, self.keep, self.sets, self.stores = need, ~clear, sets, stores
        self.releases = False
        self.clears = name == "LOAD_FAST_AND_CLEAR"
        self.touches = bool(need or clear or sets or stores) or name == "COPY_FREE_VARS"

    def result(self, taken: str) -> str:
        """What takes the place of the inputs `taken`, which are known to be acceptable."""
        special = _RESULTS.get(self.name)
        if special is not None:
            return special(self, taken)
        if self.name in _PEEKING:
            return taken + self.outputs
        if self.name in _INTO_CONTAINER:
            return taken[: -self.left]
        return self.outputs

    def jump_result(self, taken: str) -> str:
        """The same on the way to its target."""
        name = self.name
        if name in ("JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP"):
            return taken
        if V < (3, 12):
            if name == "FOR_ITER":
                return ""
            if name == "SEND":
                return "o"
        return self.result(taken)

    def agrees(self, number: int) -> bool:
        """Whether the interpreter's own count of slots is the same."""
        if self.name in _NOT_COMPARED:
            return True
        taken = self.inputs
        argument = self.arg if number in HAS_ARGUMENT else None
        if len(self.result(taken)) - self.pops != dis.stack_effect(number, argument, jump=False):
            return False
        return not self.target or (
            len(self.jump_result(taken)) - self.pops == dis.stack_effect(number, argument, jump=True)
        )


def _call_result(effect: Effect, taken: str) -> str:
    called = taken[0]
    if called == "H":  # takes a pair, gives itself back
        return "H" if effect.arg else "o"
    # The compiler runs the generator of `all(x for x in y)` and the like itself (3.14+).
    return {"r": "a", "t": "h", "g": "i"}.get(called, effect.outputs)


#: What the inputs' kinds decide.
_RESULTS: Final[dict[str, Callable[[Effect, str], str]]] = {
    "SWAP": lambda _, taken: taken[-1] + taken[1:-1] + taken[0],
    "COPY": lambda _, taken: taken + taken[0],
    "RERAISE": lambda _, taken: taken[:-1],
    "CHECK_EXC_MATCH": lambda _, taken: taken[:-1] + "o",
    "IMPORT_FROM": lambda effect, taken: taken + (effect.outputs[-1] if taken == "d" else "o"),
    "FOR_ITER": lambda _, taken: taken + "o",
    "CALL": _call_result,
    "UNPACK_SEQUENCE": lambda effect, taken: ("h" if taken == "h" else "o") * effect.arg,
    "MAKE_FUNCTION": lambda effect, taken: "g" if taken[-1] == "g" else effect.outputs,
    "SET_FUNCTION_ATTRIBUTE": lambda effect, taken: "g" if taken[-1] == "g" else effect.outputs,
    "CONTAINS_OP": lambda effect, taken: "c" if taken[0] == "i" and effect.arg == 0 else effect.outputs,
    "STORE_FAST_LOAD_FAST": lambda effect, taken: (
        taken if effect.arg >> 4 == effect.arg & 15 else effect.outputs
    ),
}

HAS_ARGUMENT: Final[frozenset[int]] = frozenset(
    getattr(dis, "hasarg", ())
    or (number for number in opcode.opmap.values() if number >= opcode.HAVE_ARGUMENT)
)
#: END_ASYNC_FOR tells where its SEND is (3.14+), for monitoring only.
JUMPS: Final = frozenset(opcode.hasjrel) - {opcode.opmap["END_ASYNC_FOR"]}
BACKWARD: Final = frozenset(number for name, number in opcode.opmap.items() if "BACKWARD" in name)

_effects: list[dict[int, Effect]] = [{} for _ in range(256)]


def effect_of(number: int, arg: int) -> Effect:
    """The effect of an instruction.

    Raises:
        ValueError: there is no such instruction, or it takes no such argument.
    """
    known = _effects[number].get(arg)
    if known is None:
        known = Effect(number, arg)
        if not known.agrees(number):
            raise ValueError(f"{known.name} {arg} moves the stack in another way than the interpreter says")
        _effects[number][arg] = known
    return known
