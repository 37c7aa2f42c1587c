"""What each instruction takes from the stack and leaves on it (CPython's Python/bytecodes.c).

Most instructions take some items and leave one temporary; those that blocks are made of are told one by one.
"""

from __future__ import annotations

import dis
import opcode
from collections.abc import Callable
from typing import Final

from daifu_bc import pyversion
from daifu_bc.analysis.code import Instruction
from daifu_bc.analysis.items import (
    ENTER,
    EXCEPTION,
    EXIT,
    EXIT_SELF,
    GROUP,
    INDEX,
    ITERATOR,
    SAVED,
    TEMPORARY,
    VALUE,
    Stack,
)


def op_set(*names: str) -> frozenset[int]:
    """Opcode numbers of the names that this CPython has; at least one exists."""
    numbers = frozenset(opcode.opmap[name] for name in names if name in opcode.opmap)
    if not numbers:
        raise AssertionError(f"none of these opcodes exists: {names}")
    return numbers


def _starting(*prefixes: str) -> frozenset[int]:
    return frozenset(
        number for name, number in opcode.opmap.items() if name.startswith(prefixes) and number < 256
    )


#: Instructions after which the next one does not run.
ENDS: Final = op_set(
    "RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "INTERPRETER_EXIT"
) | (_starting("JUMP_BACKWARD"))
RETURNS: Final = op_set("RETURN_VALUE")
_SILENT: Final = (  # leave no new item on the stack, whatever they take
    _starting("STORE_", "DELETE_", "POP_", "JUMP_", "RETURN_")
    - op_set("STORE_FAST_LOAD_FAST", "RETURN_GENERATOR", "STORE_FAST")
    | op_set("STORE_FAST", "RAISE_VARARGS", "RERAISE", "LIST_APPEND", "SET_ADD", "MAP_ADD", "LIST_EXTEND")
    | op_set(
        "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE", "IMPORT_STAR", "PRINT_EXPR", "END_FOR", "END_ASYNC_FOR"
    )
    | op_set(
        "NOP", "RESUME", "MAKE_CELL", "COPY_FREE_VARS", "CACHE", "NOT_TAKEN", "SETUP_ANNOTATIONS", "KW_NAMES"
    )
    | op_set("PRECALL", "TRACE_RECORD", "INTERPRETER_EXIT", "EXTENDED_ARG")
)
_MANY: Final = {  # results, where they are not one
    number: count
    for name, count in {
        "UNPACK_SEQUENCE": -1,
        "UNPACK_EX": -2,
        "CHECK_EG_MATCH": 2,
        "MATCH_KEYS": 3 if pyversion.VERSION < (3, 12) else 2,
        "CLEANUP_THROW": 3 if pyversion.VERSION >= (3, 15) else 2,
        "SEND": 2,
        "LOAD_METHOD": 2,
    }.items()
    if (number := opcode.opmap.get(name)) is not None
}
#: Look at what lies on the stack and leave it there when they raise.
_KEEPS_INPUTS: Final = op_set("FOR_ITER", "GET_ANEXT", "WITH_EXCEPT_START", "COPY", "SWAP", "NOP", "RESUME")
#: Take nothing from the stack.
_NO_INPUTS: Final = (
    _starting(
        "LOAD_FAST",
        "LOAD_CONST",
        "LOAD_GLOBAL",
        "LOAD_NAME",
        "LOAD_DEREF",
        "LOAD_CLOSURE",
        "LOAD_SMALL",
        "LOAD_COMMON",
    )
    | _starting(
        "JUMP_", "DELETE_FAST", "DELETE_GLOBAL", "DELETE_NAME", "DELETE_DEREF", "MAKE_CELL", "COPY_FREE"
    )
    | op_set(
        "LOAD_BUILD_CLASS",
        "LOAD_ASSERTION_ERROR",
        "LOAD_COMMON_CONSTANT",
        "PUSH_NULL",
        "LOAD_LOCALS",
        "LOAD_CLASSDEREF",
    )
    | op_set("NOT_TAKEN", "SETUP_ANNOTATIONS", "NOP")
) - op_set("JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP", "NOP")
# Arguments of LOAD_SPECIAL (Include/internal/pycore_opcode_utils.h).
_ENTER, _EXITS = 0, (1, 3)
_ABSENT: Final = -1
_LOAD_SPECIAL: Final = opcode.opmap.get("LOAD_SPECIAL", _ABSENT)

_HAS_ARG: Final = frozenset(getattr(dis, "hasarg", ()))
_effects: dict[tuple[int, int, bool], int] = {}


def net_effect(number: int, arg: int, jump: bool) -> int:
    """By how much the stack grows."""
    key = (number, arg, jump)
    try:
        return _effects[key]
    except KeyError:
        has_arg = number >= opcode.HAVE_ARGUMENT if pyversion.VERSION < (3, 13) else number in _HAS_ARG
        effect = _effects[key] = dis.stack_effect(number, arg if has_arg else None, jump=jump)
        return effect


def inputs(instruction: Instruction) -> int:
    """How many items an instruction takes from the stack, at least; it may have popped them when it raises."""
    number = instruction.opcode
    if number in _KEEPS_INPUTS or number in _NO_INPUTS:
        return 0
    effect = net_effect(number, instruction.arg, False)
    if number in _SILENT:
        taken = -effect
    elif number in _MAKERS:
        taken = 1
    else:
        results = _MANY.get(number, 1)
        taken = 1 if results < 0 else results - effect
    return max(1, taken)


def step(instruction: Instruction, stack: Stack, *, jump: bool) -> Stack:
    """The stack after an instruction, when it jumps or when it does not.

    Raises:
        IndexError: the stack is too short.
    """
    number = instruction.opcode
    special = _SPECIAL.get(number)
    if special is not None:
        result = special(instruction, stack, jump)
        if result is not None:
            return result
    effect = net_effect(number, instruction.arg, jump)
    if number in _SILENT:
        return stack[:effect] if effect else stack
    results = _MANY.get(number, 1)
    if results < 0:
        results = effect + 1  # UNPACK_SEQUENCE, UNPACK_EX take one
    results = max(results, effect)
    keep = len(stack) + effect - results
    if keep < 0:
        raise IndexError(keep)
    return stack[:keep] + ((TEMPORARY, instruction.offset),) * results


_Step = Callable[[Instruction, Stack, bool], Stack | None]


def _copy(instruction: Instruction, stack: Stack, _jump: bool) -> Stack:
    return (*stack, stack[-instruction.arg])


def _swap(instruction: Instruction, stack: Stack, _jump: bool) -> Stack:
    swapped = list(stack)
    swapped[-1], swapped[-instruction.arg] = swapped[-instruction.arg], swapped[-1]
    return tuple(swapped)


def _for_iter(instruction: Instruction, stack: Stack, jump: bool) -> Stack:
    origin = instruction.offset
    if not jump:
        return (*stack, (VALUE, origin))
    # At the end of the loop END_FOR is told as if an element had been pushed (3.12+).
    effect = net_effect(instruction.opcode, instruction.arg, True)
    return stack[:effect] if effect < 0 else stack + ((TEMPORARY, origin),) * effect


def _get_iter(instruction: Instruction, stack: Stack, _jump: bool) -> Stack:
    origin = instruction.offset
    if not pyversion.ITERATOR_IS_A_PAIR:
        return (*stack[:-1], (ITERATOR, origin))
    if instruction.arg:  # of a `yield from`
        return (*stack[:-1], (TEMPORARY, origin), (TEMPORARY, origin))
    return (*stack[:-1], (ITERATOR, origin), (INDEX, origin))


def _get_aiter(instruction: Instruction, stack: Stack, _jump: bool) -> Stack:
    return (*stack[:-1], (ITERATOR, instruction.offset))


def _push_exc_info(instruction: Instruction, stack: Stack, _jump: bool) -> Stack:
    return (*stack[:-1], (SAVED, instruction.offset), stack[-1])


def _pop_except(_instruction: Instruction, stack: Stack, _jump: bool) -> Stack:
    # Its copy further down, in a clean-up handler, no longer stands for anything.
    popped = stack[-1]
    return tuple((TEMPORARY, item[1]) if item == popped else item for item in stack[:-1])


def _before_with(instruction: Instruction, stack: Stack, _jump: bool) -> Stack:
    return (*stack[:-1], (EXIT, instruction.offset), (VALUE, instruction.offset))


def _before_async_with(instruction: Instruction, stack: Stack, _jump: bool) -> Stack:
    return (*stack[:-1], (EXIT, instruction.offset), (TEMPORARY, instruction.offset))


def _load_special(instruction: Instruction, stack: Stack, _jump: bool) -> Stack:
    origin = instruction.offset
    if instruction.arg in _EXITS:
        return (*stack[:-1], (EXIT, origin), (EXIT_SELF, origin))
    kind = ENTER if instruction.arg == _ENTER else TEMPORARY
    return (*stack[:-1], (kind, origin), (kind, origin))


def _call(instruction: Instruction, stack: Stack, _jump: bool) -> Stack | None:
    if instruction.arg == 0 and stack and stack[-1][0] == ENTER:
        return (*stack[:-2], (VALUE, instruction.offset))
    return None


def _return_generator(instruction: Instruction, stack: Stack, _jump: bool) -> Stack:
    return (*stack, (TEMPORARY, instruction.offset))


def _check_eg_match(instruction: Instruction, stack: Stack, _jump: bool) -> Stack:
    return (*stack[:-2], (EXCEPTION, instruction.offset), (TEMPORARY, instruction.offset))


def _build_list(instruction: Instruction, stack: Stack, _jump: bool) -> Stack | None:
    if instruction.arg == 0 and stack and stack[-1][0] == EXCEPTION:
        return (*stack, (GROUP, instruction.offset))
    return None


def _send(instruction: Instruction, stack: Stack, jump: bool) -> Stack | None:
    if jump and "END_SEND" not in opcode.opmap:
        return _awaited(instruction, stack[:-2])
    return None


def _end_send(instruction: Instruction, stack: Stack, _jump: bool) -> Stack:
    return _awaited(
        instruction, stack[: len(stack) + net_effect(instruction.opcode, instruction.arg, False) - 1]
    )


def _awaited(instruction: Instruction, below: Stack) -> Stack:
    """What an `async for` or `async with` awaited is parked until its target takes it."""
    parked = bool(below) and below[-1][0] in (ITERATOR, EXIT, EXIT_SELF)
    return (*below, (VALUE if parked else TEMPORARY, instruction.offset))


_SPECIAL: Final[dict[int, _Step]] = {
    opcode.opmap[name]: function
    for name, function in {
        "COPY": _copy,
        "SWAP": _swap,
        "FOR_ITER": _for_iter,
        "GET_ITER": _get_iter,
        "GET_AITER": _get_aiter,
        "PUSH_EXC_INFO": _push_exc_info,
        "POP_EXCEPT": _pop_except,
        "BEFORE_WITH": _before_with,
        "BEFORE_ASYNC_WITH": _before_async_with,
        "LOAD_SPECIAL": _load_special,
        "RETURN_GENERATOR": _return_generator,
        "CHECK_EG_MATCH": _check_eg_match,
        "BUILD_LIST": _build_list,
        "SEND": _send,
        "END_SEND": _end_send,
        **({"CALL": _call} if _LOAD_SPECIAL != _ABSENT else {}),
    }.items()
    if name in opcode.opmap
}
_MAKERS: Final = frozenset(
    opcode.opmap[name]
    for name in ("GET_ITER", "GET_AITER", "BEFORE_WITH", "BEFORE_ASYNC_WITH", "LOAD_SPECIAL")
    if name in opcode.opmap
)
