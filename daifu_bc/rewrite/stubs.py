"""The cold code behind a body: what an exception meets at a barrier, and how a run goes on elsewhere.

A *stub* belongs to one region. It asks the runtime with the exception alone, the frame's stack untouched; then either
re-raises as if nothing had been there, or moves the structural items off the stack into the list that it was given
(a `Handover`), top item first, and jumps to the *tail*. The tail adds the cells. In an original frame it then runs
continuations until one ends; in a continuation it returns the handover to the frame that runs it.

Not every slot holds an object (3.14+): a saved lasti is only swapped and popped, a slot that may be NULL is passed in
the place of `self` in a call, a tagged index is counted out.
"""

from __future__ import annotations

import inspect
from types import CodeType
from typing import Final

from daifu_bc import pyversion
from daifu_bc.analysis.code import cells_at_start, slot_names
from daifu_bc.analysis.flow import EXIT, INDEX, SAVED
from daifu_bc.analysis.regions import Region
from daifu_bc.rewrite.assemble import Assembler, Label

#: Names in `daifu_bc` that the cold code calls.
INTERCEPT: Final = "_intercept"
FOLLOW: Final = "_follow"
TRIM: Final = "_trim"
MARK: Final = "_mark"
DELEGATE: Final = "_delegate"

_IF_NONE: Final = "POP_JUMP_IF_NONE" if pyversion.VERSION >= (3, 12) else "POP_JUMP_FORWARD_IF_NONE"
_IF_FALSE: Final = "POP_JUMP_IF_FALSE" if pyversion.VERSION >= (3, 12) else "POP_JUMP_FORWARD_IF_FALSE"
_IF_TRUE: Final = "POP_JUMP_IF_TRUE" if pyversion.VERSION >= (3, 12) else "POP_JUMP_FORWARD_IF_TRUE"
# Arguments of RESUME (InternalDocs/generators.md).
_AFTER_YIELD, _AFTER_YIELD_FROM, _AFTER_AWAIT = 1, 2, 3
_GET_ITER_FOR_YIELD_FROM: Final = 3


def jump_if(asm: Assembler, name: str, label: Label) -> None:
    """A conditional jump forward."""
    asm.emit(name, label)
    if pyversion.VERSION >= (3, 14):
        asm.emit("NOT_TAKEN")


def stub(asm: Assembler, region: Region, tail: Label, shift: int) -> Label:
    """Emits the stub of one region and returns where it starts.

    Args:
        asm: takes the code.
        region: the region; its displaced entry covers only the re-raise.
        tail: where the handover goes.
        shift: how far the body lies behind its pristine place.
    """
    depth = len(region.kinds)
    start = asm.label()
    asm.line(region.line)
    go_on, again, guard = Label(), Label(), Label()
    # Stack: .., lasti, exception
    asm.emit("PUSH_EXC_INFO")
    asked = asm.label()
    asm.runtime(INTERCEPT, 1)
    told = asm.label()
    # Stack: .., lasti, saved, exception, answer
    asm.emit("COPY", 1)
    jump_if(asm, _IF_NONE, again)
    asm.emit("JUMP_FORWARD", go_on)
    asm.place(guard)
    # Stack: .., lasti, saved, exception, other. If the runtime could not even be called, the program's exception goes
    # its way; what came out of its frame was raised by a signal handler, and takes its place as it would anywhere.
    asm.emit(
        "IMPORT_FROM", asm.name_index("__traceback__")
    )  # it gets an attribute of any object, and has no caches
    asm.emit("IMPORT_FROM", asm.name_index("tb_next"))
    asm.emit("SWAP", 2)
    asm.emit("POP_TOP")
    jump_if(asm, _IF_NONE, again)
    asm.emit("SWAP", 2)
    asm.place(again)
    asm.emit("POP_TOP")
    asm.emit("SWAP", 2)
    asm.emit("POP_EXCEPT")
    raising = asm.label()
    asm.emit("RERAISE", 1)
    raised = asm.label()
    asm.place(go_on)
    asm.emit("SWAP", 2)
    asm.emit("POP_TOP")  # the exception
    if SAVED in region.kinds:
        _append_copy(asm)  # what was being handled at the crash
    asm.emit("SWAP", 2)
    asm.emit("POP_EXCEPT")
    asm.emit("SWAP", 2)
    asm.emit("POP_TOP")  # lasti
    _hand_over(asm, region.kinds)
    asm.emit("JUMP_FORWARD", tail)
    asm.protect(asked, told, guard, depth + 3)
    if region.entry is not None:
        asm.protect(
            raising, raised, region.entry.target + shift, region.entry.depth, lasti=region.entry.lasti
        )
    asm.deepest = max(asm.deepest, depth + 8)
    return start


def _append_copy(asm: Assembler) -> None:
    """[item, handover] -> the same, the item appended to the handover."""
    asm.emit("COPY", 2)
    asm.emit("LIST_APPEND", 1)


def _hand_over(asm: Assembler, kinds: tuple[str, ...]) -> None:
    """[items.., handover] -> [handover], the items appended to it, the top one first."""
    remaining = list(kinds)
    while remaining:
        kind = remaining.pop()
        if kind == SAVED:
            _append_copy(asm)
            asm.emit("SWAP", 2)
            asm.emit("POP_EXCEPT")
        elif kind == INDEX:
            remaining.pop()
            _hand_over_loop(asm)
        elif remaining and remaining[-1] == EXIT and pyversion.EXIT_IS_A_PAIR and kind != EXIT:
            # Stack: function, self or NULL, handover -> handover(self?, function)
            remaining.pop()
            asm.emit("SWAP", 3)
            asm.call(1)
        else:
            asm.emit("SWAP", 2)
            asm.emit("LIST_APPEND", 1)


def _hand_over_loop(asm: Assembler) -> None:
    """The same for the two slots of a `for` (3.15+): (iterator, NULL) or (sequence, tagged index)."""
    plain, loop, done, end = Label(), Label(), Label(), Label()
    # Stack: first, second, handover
    asm.emit("COPY", 3)
    asm.emit("COPY", 2)
    asm.emit("CONTAINS_OP", 0)  # does the handover say that it is a sequence?
    jump_if(asm, _IF_FALSE, plain)
    # Count what is left of a copy of the pair.
    asm.runtime(MARK, 1)
    asm.emit("POP_TOP")
    asm.emit("COPY", 3)
    asm.emit("COPY", 3)
    asm.place(loop)
    asm.emit("FOR_ITER", done)
    asm.emit("LIST_APPEND", 3)
    asm.emit("JUMP_BACKWARD", loop)
    asm.place(done)
    asm.emit("END_FOR")
    asm.emit("POP_ITER")
    asm.emit("SWAP", 3)
    asm.emit("SWAP", 2)
    asm.emit("POP_TOP")
    asm.emit("PUSH_NULL")
    asm.emit("SWAP", 2)
    asm.call(1)
    asm.emit("JUMP_FORWARD", end)
    asm.place(plain)
    asm.emit("SWAP", 3)
    asm.call(1)
    asm.place(end)


def tail(asm: Assembler, code: CodeType, line: int, *, follows: bool) -> Label:
    """Emits the tail and returns where it starts; there the stack is [handover].

    Args:
        asm: takes the code.
        code: the pristine code object.
        line: the line of the source that it stands for.
        follows: whether this frame runs the continuations (an original frame), or gives the handover to the frame that does.
    """
    start = asm.label()
    asm.line(line)
    names = slot_names(code)
    cells = cells_at_start(code)
    for name in cells:
        asm.emit("LOAD_FAST", names.index(name))
        asm.emit("LIST_APPEND", 1)
    if not follows:
        if (
            code.co_flags & inspect.CO_ASYNC_GENERATOR
        ):  # it cannot return a value; the runtime keeps the handover
            asm.emit("POP_TOP")
            asm.constant(None)
        asm.emit("RETURN_VALUE")
        return start
    for index, name in enumerate(code.co_varnames if code.co_flags & inspect.CO_OPTIMIZED else ()):
        if name not in cells:  # what the continuation has now must not be kept alive by this frame
            asm.constant(None)
            asm.emit("STORE_FAST", index)
    _follow(asm, code.co_flags)
    return start


def _follow(asm: Assembler, flags: int) -> None:
    """[handover] -> returns what the last of its continuations returns."""
    loop, out, failed = Label(), Label(), Label()
    asm.place(loop)
    asm.emit("COPY", 1)
    asm.call_top()
    begin = asm.label()
    # Stack: handover, continuation
    asm.call_top()
    if flags & inspect.CO_ASYNC_GENERATOR:
        _delegate_steps(asm)
    elif flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE):
        _delegate(asm, awaits=bool(flags & inspect.CO_COROUTINE))
    end = asm.label()
    # Stack: handover, result
    asm.runtime(FOLLOW, 1)
    asm.emit("COPY", 1)
    jump_if(asm, _IF_NONE, out)
    # Stack: handover, result, next handover
    asm.emit("SWAP", 3)
    asm.emit("POP_TOP")
    asm.emit("POP_TOP")
    asm.emit("JUMP_BACKWARD", loop)
    asm.place(out)
    asm.emit("POP_TOP")
    asm.emit("SWAP", 2)
    asm.emit("POP_TOP")
    asm.emit("RETURN_VALUE")
    asm.place(failed)
    # Stack: handover, exception: without our entries in its traceback
    asm.runtime(TRIM, 1)
    asm.emit("POP_TOP")
    asm.emit("RERAISE", 0)
    asm.protect(begin, end, failed, 1)
    asm.deepest = max(asm.deepest, 12)


def _await(asm: Assembler, below: int, resume: int) -> None:
    """[awaitable's iterator] -> [result]; `below` items lie under it. The standard delegation of its version."""
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
        return
    thrown = asm.label()
    asm.emit("CLEANUP_THROW")
    asm.place(end)
    asm.emit("END_SEND")
    asm.protect(yielding, yielded, thrown, below + (3 if pyversion.VERSION >= (3, 15) else 2))


def _delegate(asm: Assembler, *, awaits: bool) -> None:
    """[handover, generator or coroutine] -> [handover, result]."""
    if awaits:
        asm.emit("GET_AWAITABLE", 0)
    elif pyversion.VERSION >= (3, 15):
        asm.emit("GET_ITER", _GET_ITER_FOR_YIELD_FROM)
    else:
        asm.emit("GET_YIELD_FROM_ITER")
    _await(asm, 1, _AFTER_AWAIT if awaits else _AFTER_YIELD_FROM)


def _delegate_steps(asm: Assembler) -> None:
    """[handover, asynchronous generator] -> [handover, None]: passes on what is sent, thrown and yielded."""
    step, ended, thrown, out = Label(), Label(), Label(), Label()
    asm.runtime(DELEGATE, 1)
    asm.emit("SWAP", 2)
    asm.emit("POP_TOP")
    asm.constant(None)
    # Stack: handover, delegate, sent
    asm.place(step)
    begin = asm.label()
    _call_second(asm, 1)
    asm.emit("GET_AWAITABLE", 0)
    _await(asm, 2, _AFTER_AWAIT)
    awaited = asm.label()
    # Stack: handover, delegate, item
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
    # Stack: handover, delegate, exception
    asm.constant(True)
    _call_second(asm, 2)
    asm.emit("JUMP_BACKWARD", step)
    asm.place(ended)
    # Stack: handover, delegate, exception
    asm.emit("COPY", 1)
    asm.emit("COPY", 3)
    asm.emit("SWAP", 2)
    asm.constant(False)
    _call_second(asm, 2)
    # Stack: handover, delegate, exception, delegate, whether it has ended
    jump_if(asm, _IF_TRUE, out)
    asm.emit("POP_TOP")
    asm.emit("RERAISE", 0)
    asm.place(out)
    asm.emit("POP_TOP")
    asm.emit("POP_TOP")
    asm.emit("POP_TOP")
    asm.constant(None)
    asm.protect(begin, awaited, ended, 2)
    asm.protect(yielding, yielded, thrown, 2)


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
