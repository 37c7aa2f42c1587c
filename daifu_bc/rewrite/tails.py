"""The tail of the cold code: the cells are added to what is handed over, and the run goes on elsewhere.

There are three kinds of frames. One that the program has called calls the continuation, and returns what that returns.
That continuation is a *runner*: when it crashes in its turn, its own frame runs the next continuations one after the
other. Those are plain: when they crash, they return their handover to the runner. So the stack does not grow however
often that happens, and the code of the program's functions, which hardly ever comes to that, is short.
"""

from __future__ import annotations

import enum
import inspect
from types import CodeType
from typing import Final

from daifu_bc import pyversion
from daifu_bc.analysis.code import cell_slots, load_of_none
from daifu_bc.analysis.regions import Region
from daifu_bc.rewrite.assemble import Assembler, Label
from daifu_bc.rewrite.stubs import IF_NONE, jump_if, stubs

#: Names in `daifu_bc` that tails call.
FOLLOW: Final = "_follow"
TRIM: Final = "_trim"
DELEGATE: Final = "_delegate"

_IF_TRUE: Final = "POP_JUMP_IF_TRUE" if pyversion.VERSION >= (3, 12) else "POP_JUMP_FORWARD_IF_TRUE"
_SUSPENDING: Final = (
    inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR
)
# Arguments of RESUME (InternalDocs/generators.md).
_AFTER_YIELD, _AFTER_YIELD_FROM, _AFTER_AWAIT = 1, 2, 3
_GET_ITER_FOR_YIELD_FROM: Final = 3
_FROM_EXIT: Final = 2  # argument of GET_AWAITABLE: what to say if it cannot be awaited
#: So many locals are cleared at a time; more would need a larger stack.
_AT_A_TIME: Final = 5
_NONES: Final = tuple((None,) * count for count in range(_AT_A_TIME + 1))


class Ending(enum.Enum):
    """What a frame does with its handover."""

    CALL = "calls the continuation, a runner, and returns what that returns"
    RUN = "runs continuations until one ends"
    RETURN = "returns it to the frame that runs it"


def cold_code(asm: Assembler, found: list[Region], code: CodeType, ending: Ending, shift: int) -> list[Label]:
    """Emits all that lies behind a body.

    Args:
        asm: takes the code.
        found: the regions of the body.
        code: the pristine code object.
        ending: what a frame of it does with its handover.
        shift: how far the body lies behind its pristine place.

    Returns:
        Where the stubs of the regions start.
    """
    # What leaves a runner is given to a stub that lets it out of the frame; the runtime takes the frame out of the traceback.
    outermost = next(
        (place for place, region in enumerate(found) if region[:3] == (None, (), -1)), len(found)
    )
    line = code.co_firstlineno
    every = found
    if ending is Ending.CALL and outermost == len(found):
        every = [*found, Region(None, (), -1, [], line)]
    tail = Label()
    starts = stubs(asm, every, tail, shift)
    asm.place(tail)
    asm.line(line)
    cells = cell_slots(code)
    for slot in cells:
        asm.emit("LOAD_FAST", slot)
        asm.emit("LIST_APPEND", 1)
    if ending is Ending.RETURN:
        if (
            code.co_flags & inspect.CO_ASYNC_GENERATOR
        ):  # it cannot return a value; the runtime keeps the handover
            asm.emit("POP_TOP")
            asm.constant(None)
        asm.emit("RETURN_VALUE")
        return starts
    plain = range(len(code.co_varnames) if code.co_flags & inspect.CO_OPTIMIZED else 0)
    _clear(asm, [slot for slot in plain if slot not in cells])
    if ending is Ending.CALL:
        _call(asm, code, starts[outermost])
    else:
        _follow(asm, code.co_flags)
    return starts[: len(found)]


def _clear(asm: Assembler, slots: list[int]) -> None:
    """Gives locals the value None: what the continuation has now must not be kept alive by this frame."""
    if len(slots) <= 2:
        for slot in slots:
            asm.constant(None)
            asm.emit("STORE_FAST", slot)
        return
    size = min(len(slots), _AT_A_TIME)
    for first in range(0, len(slots), size):
        asm.constant(_NONES[size])
        asm.emit("UNPACK_SEQUENCE", size)
        # The last ones overlap with those before, so that one constant does.
        part = slots[min(first, len(slots) - size) :][:size]
        while part:
            if pyversion.STORES_IN_PAIRS and len(part) > 1 and part[1] < 16:
                asm.emit("STORE_FAST_STORE_FAST", part[0] << 4 | part[1])
                part = part[2:]
            else:
                asm.emit("STORE_FAST", part[0])
                part = part[1:]


def _call(asm: Assembler, code: CodeType, outermost: Label) -> None:
    """[handover] -> returns what its continuation returns."""
    flags = code.co_flags
    asm.call_top()
    begin = asm.label()
    asm.call_top()
    _finish_suspended(asm, flags, 0)
    end = asm.label()
    load = load_of_none(code) if pyversion.SCRIPTS_RETURN_NONE else None
    if load is not None and load[1] < 256:
        # The load is jumped over: the function goes on looking like one that returns nothing else.
        result = Label()
        asm.emit("JUMP_FORWARD", result)
        if load[0] == "LOAD_CONST":
            asm.constant(None)
        else:
            asm.emit(*load)
        asm.place(result)
    asm.emit("RETURN_VALUE")
    asm.protect(begin, end, outermost, 0, lasti=True)
    asm.deepest = max(asm.deepest, 12 if flags & _SUSPENDING else 7)


def _finish_suspended(asm: Assembler, flags: int, below: int) -> None:
    """[generator or coroutine, or result of a function] -> [result]; `below` items lie under it."""
    if flags & inspect.CO_ASYNC_GENERATOR:
        _delegate_steps(asm, below)
    elif flags & _SUSPENDING:
        _delegate(asm, below, awaits=bool(flags & inspect.CO_COROUTINE))


def _follow(asm: Assembler, flags: int) -> None:
    """[handover] -> returns what the last of its continuations returns."""
    loop, out, failed = Label(), Label(), Label()
    asm.place(loop)
    asm.emit("COPY", 1)
    asm.call_top()
    begin = asm.label()
    # Stack: handover, continuation
    asm.call_top()
    _finish_suspended(asm, flags, 1)
    end = asm.label()
    # Stack: handover, result
    asm.runtime(FOLLOW, 1)
    followed = asm.label()
    asm.emit("COPY", 1)
    jump_if(asm, IF_NONE, out)
    # Stack: handover, result, next handover
    asm.emit("SWAP", 3)
    asm.emit("POP_TOP")
    asm.emit("POP_TOP")
    asm.emit("JUMP_BACKWARD", loop)
    asm.place(failed)
    # Stack: handover, exception: without our entries in its traceback
    asm.runtime(TRIM, 1)
    trimmed = asm.label()
    asm.emit("POP_TOP")
    asm.emit("RERAISE", 0)
    asm.protect(end, followed, _unless_it_was_called(asm, out), 2)
    asm.place(out)
    # Stack: handover, result, None or what has failed
    asm.emit("POP_TOP")
    asm.emit("SWAP", 2)
    asm.emit("POP_TOP")
    asm.emit("RETURN_VALUE")
    untrimmed = Label()
    asm.protect(failed, trimmed, _unless_it_was_called(asm, untrimmed), 2)
    asm.place(untrimmed)
    # Stack: handover, exception, what has failed
    asm.emit("POP_TOP")
    asm.emit("RERAISE", 0)
    asm.protect(begin, end, failed, 1)
    asm.deepest = max(asm.deepest, 12 if flags & _SUSPENDING else 7)


def _unless_it_was_called(asm: Assembler, goes_on: Label) -> Label:
    """[.., error] -> the same at `goes_on`, if the runtime could not even be called; else the error is raised.

    That is so at the end of the interpreter, when generators are closed and nothing can be imported any more.
    """
    start = asm.label()
    # IMPORT_FROM gets an attribute of any object, and has no caches.
    asm.emit("IMPORT_FROM", asm.name_index("__traceback__"))
    asm.emit("IMPORT_FROM", asm.name_index("tb_next"))
    asm.emit("SWAP", 2)
    asm.emit("POP_TOP")
    jump_if(asm, IF_NONE, goes_on)
    asm.emit("RERAISE", 0)
    return start


def await_exit(asm: Assembler, below: int) -> tuple[Label, Label]:
    """[what `__aexit__` gave] -> [result]; `below` items lie under it. The range that has a handler of its own."""
    asm.emit("GET_AWAITABLE", _FROM_EXIT)
    return _await(asm, below, _AFTER_AWAIT)


def _await(asm: Assembler, below: int, resume: int) -> tuple[Label, Label]:
    """[awaitable's iterator] -> [result]; `below` items lie under it. The standard delegation of its version.

    Returns:
        The range in which what is thrown in has a handler of its own; empty up to 3.11.
    """
    loop, end = Label(), Label()
    if pyversion.VERSION >= (3, 15) and resume == _AFTER_AWAIT:
        asm.emit("PUSH_NULL")
    asm.constant(None)
    asm.place(loop)
    asm.emit("SEND", end)
    yielding = asm.label()
    asm.emit("YIELD_VALUE", 1 if pyversion.VERSION >= (3, 13) else 3 if pyversion.VERSION >= (3, 12) else 0)
    yielded = asm.label()
    asm.emit("RESUME", resume)
    asm.emit("JUMP_BACKWARD_NO_INTERRUPT", loop)
    if pyversion.VERSION < (3, 12):
        asm.place(end)
        return yielded, yielded
    thrown = asm.label()
    asm.emit("CLEANUP_THROW")
    asm.place(end)
    asm.emit("END_SEND")
    asm.protect(yielding, yielded, thrown, below + (3 if pyversion.VERSION >= (3, 15) else 2))
    return yielding, yielded


def _delegate(asm: Assembler, below: int, *, awaits: bool) -> None:
    """[generator or coroutine] -> [result]; `below` items lie under it."""
    if awaits:
        asm.emit("GET_AWAITABLE", 0)
    elif pyversion.VERSION >= (3, 15):
        asm.emit("GET_ITER", _GET_ITER_FOR_YIELD_FROM)
    else:
        asm.emit("GET_YIELD_FROM_ITER")
    _await(asm, below, _AFTER_AWAIT if awaits else _AFTER_YIELD_FROM)


def _delegate_steps(asm: Assembler, below: int) -> None:
    """[asynchronous generator] -> [None]: passes on what is sent, thrown and yielded; `below` items lie under it."""
    step, ended, thrown, out = Label(), Label(), Label(), Label()
    asm.runtime(DELEGATE, 1)
    asm.emit("SWAP", 2)
    asm.emit("POP_TOP")
    asm.constant(None)
    # Stack: .., delegate, sent
    asm.place(step)
    begin = asm.label()
    _call_second(asm, 1)
    asm.emit("GET_AWAITABLE", 0)
    _await(asm, below + 1, _AFTER_AWAIT)
    awaited = asm.label()
    # Stack: .., delegate, item
    if pyversion.VERSION >= (3, 12):
        asm.emit("CALL_INTRINSIC_1", 4)
    else:
        asm.emit("ASYNC_GEN_WRAP")
    yielding = asm.label()
    asm.emit("YIELD_VALUE", 2 if pyversion.VERSION == (3, 12) else 0)
    yielded = asm.label()
    asm.emit("RESUME", _AFTER_YIELD)
    asm.emit("JUMP_BACKWARD", step)
    asm.place(thrown)
    # Stack: .., delegate, exception
    asm.constant(True)
    _call_second(asm, 2)
    asm.emit("JUMP_BACKWARD", step)
    asm.place(ended)
    # Stack: .., delegate, exception
    asm.emit("COPY", 1)
    asm.emit("COPY", 3)
    asm.emit("SWAP", 2)
    asm.constant(False)
    _call_second(asm, 2)
    # Stack: .., delegate, exception, delegate, whether it has ended
    jump_if(asm, _IF_TRUE, out)
    asm.emit("POP_TOP")
    asm.emit("RERAISE", 0)
    asm.place(out)
    asm.emit("POP_TOP")
    asm.emit("POP_TOP")
    asm.emit("POP_TOP")
    asm.constant(None)
    asm.protect(begin, awaited, ended, below + 1)
    asm.protect(yielding, yielded, thrown, below + 1)


def _call_second(asm: Assembler, arguments: int) -> None:
    """[callable, arguments..] -> [callable, result]."""
    asm.emit("PUSH_NULL")
    asm.emit("COPY", arguments + 2)
    if not pyversion.NULL_BEFORE_CALLABLE:
        asm.emit("SWAP", 2)
    # Stack: callable, arguments.., callable, NULL -> the arguments behind
    for _ in range(arguments):
        asm.emit("COPY", arguments + 2)
    asm.call(arguments)
    for _ in range(arguments):
        asm.emit("SWAP", 2)
        asm.emit("POP_TOP")
