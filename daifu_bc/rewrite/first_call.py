"""Builds code that calls back once before its body runs, so that a function notices its own first call.

It is laid out like a continuation: a prefix, then the pristine body with its bytes, then stubs. The prefix does what
the body's own first instructions do, up to RESUME, so that the call is made from a complete frame (the interpreter
hides frames that are not), calls back, and enters the body behind them. Unlike a continuation it was called by the
program, so it runs the continuations of its crashes itself.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from types import CodeType
from typing import Final

from daifu_bc import pyversion
from daifu_bc.analysis.flow import Flow, op_set
from daifu_bc.errors import CannotVaccinate
from daifu_bc.rewrite.assemble import Assembler, InBody, Label
from daifu_bc.rewrite.continuation import Located, around_body
from daifu_bc.rewrite.stubs import IF_NONE, jump_if
from daifu_bc.rewrite.tails import Ending

#: The name in `daifu_bc` that the prefix calls.
FIRST_CALL: Final = "_first_call"

_PROLOGUE: Final = op_set("COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR", "POP_TOP")
_RESUME: Final = op_set("RESUME")

_numbers: Final = count(1)
_waiting: dict[int, Callable[..., None]] = {}
# The numbers of code objects by their identity, as long as they live.
_number_of: dict[int, int] = {}


def build_first_call(flow: Flow, callback: Callable[..., None]) -> tuple[CodeType, Located]:
    """Code that runs a body under barriers, and before that `callback`, the first time that it is called.

    Args:
        flow: the pristine body's analysis.
        callback: called with nothing, or by `notice` with the code; kept until it is called, or the code is gone.

    Returns:
        The code object, verified, and its layout.

    Raises:
        CannotVaccinate: the body does not begin as bodies of functions do.
        VerificationError: what was built is unsound; a bug of ours.
    """
    number = next(_numbers)
    front = Assembler(flow.code)
    _prefix(front, flow, number)
    built, located = around_body(flow, front, None, Ending.RUN, continues=False)
    _waiting[number] = callback
    _number_of[id(built)] = number
    weakref.finalize(built, _forget, id(built), number).atexit = False
    return built, located


def _forget(identity: int, number: int) -> None:
    _waiting.pop(number, None)
    _number_of.pop(identity, None)


def notice(code: CodeType) -> None:
    """Calls back with `code`, if it waits for its first call: something else is about to run its body in its stead.

    Args:
        code: any code object.
    """
    callback = _waiting.pop(_number_of.get(id(code), 0), None)
    if callback is not None:
        callback(code)


def _prefix(asm: Assembler, flow: Flow, number: int) -> None:
    asm.line(flow.code.co_firstlineno)
    for place, instruction in enumerate(flow.instructions):
        if instruction.opcode not in _PROLOGUE | _RESUME:
            break
        start = asm.label()
        asm.emit(instruction.name, instruction.arg)
        entry = flow.entry(place)
        if entry is not None:  # something may be thrown into a generator before it has begun
            asm.protect(start, asm.label(), InBody(entry.target), entry.depth, lasti=entry.lasti)
        if instruction.opcode in _RESUME:
            break
    if instruction.opcode not in _RESUME:
        raise CannotVaccinate("its body does not begin as that of a function does")
    failed = Label()
    asking = asm.label()
    asm.constant(0)
    asm.constant(None)
    asm.emit("IMPORT_NAME", pyversion.import_argument(asm.name_index("daifu_bc")))
    asm.emit("IMPORT_FROM", asm.name_index(FIRST_CALL))
    asm.emit("SWAP", 2)
    asm.constant(number)
    asm.call(1)
    told = asm.label()
    # [what is to be raised, or None]
    asm.emit("COPY", 1)
    jump_if(asm, IF_NONE, failed)
    asm.emit("RAISE_VARARGS", 1)
    asm.place(failed)  # a failure of ours is none of the program's
    asm.emit("POP_TOP")
    asm.emit("JUMP_FORWARD", InBody(instruction.end))
    asm.protect(asking, told, failed, 0)
    asm.deepest = max(asm.deepest, 6)


def first_call(_module: object, number: int) -> BaseException | None:
    """Called by the prefix: calls back if that was not done yet; returns what the program has to be told of."""
    callback = _waiting.pop(number, None)
    if callback is None:
        return None
    try:
        callback()
    except Exception:  # noqa: BLE001 - the one who asked to be called reports its own failures
        return None
    except BaseException as error:  # noqa: BLE001 - Ctrl-C: the program's, wherever it happens to arrive
        return error.with_traceback(None)
    return None
