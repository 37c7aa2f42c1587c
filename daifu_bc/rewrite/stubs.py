"""The cold code behind a body: what an exception meets at a barrier, and what it takes along when a run goes on.

A *stub* belongs to one region. It asks the runtime with the exception alone, the frame's stack untouched; then either
re-raises as if nothing had been there, or drops the exception and jumps to where the structural items are moved off the
stack into the list that it was given (a `Handover`), top item first. That code is shared by all stubs: what is done for
the items of an inner block leads on to what is done for those of the block around it, and at last to the tail.

Not every slot holds an object (3.14+): a saved lasti is only swapped and popped, a slot that may be NULL is passed in
the place of `self` in a call, a tagged index is counted out.
"""

from __future__ import annotations

import itertools
from typing import Final

from daifu_bc import pyversion
from daifu_bc.analysis.flow import EXIT, INDEX, SAVED
from daifu_bc.analysis.regions import Region
from daifu_bc.rewrite.assemble import Assembler, Label

#: The name in `daifu_bc` that stubs call.
INTERCEPT: Final = "_intercept"

IF_NONE: Final = "POP_JUMP_IF_NONE" if pyversion.VERSION >= (3, 12) else "POP_JUMP_FORWARD_IF_NONE"
_IF_FALSE: Final = "POP_JUMP_IF_FALSE" if pyversion.VERSION >= (3, 12) else "POP_JUMP_FORWARD_IF_FALSE"

Kinds = tuple[str, ...]


def jump_if(asm: Assembler, name: str, label: Label) -> None:
    """A conditional jump forward."""
    asm.emit(name, label)
    if pyversion.VERSION >= (3, 14):
        asm.emit("NOT_TAKEN")


def stubs(asm: Assembler, regions: list[Region], tail: Label, shift: int) -> list[Label]:
    """Emits the stubs of all regions and what they share; the tail has to follow at once.

    Args:
        asm: takes the code.
        regions: the regions, whose displaced entries cover only the re-raises.
        tail: where the handover goes.
        shift: how far the body lies behind its pristine place.

    Returns:
        Where the stubs start, in the order of the regions.
    """
    moves: dict[Kinds, Label] = {(): tail}
    for region in regions:
        kinds = region.kinds
        while kinds not in moves:
            moves[kinds] = Label()
            kinds = _around(kinds)
    starts = [_stub(asm, region, moves[region.kinds], shift) for region in regions]
    order = sorted(moves, key=len, reverse=True)
    for kinds, following in itertools.pairwise(order):
        asm.place(moves[kinds])
        _move_top(asm, kinds)
        around = _around(kinds)
        if around != following:
            asm.emit("JUMP_FORWARD", moves[around])
    return starts


def _stub(asm: Assembler, region: Region, move: Label, shift: int) -> Label:
    depth = len(region.kinds)
    start = asm.label()
    asm.line(region.line)
    again, guard = Label(), Label()
    # Stack: .., lasti, exception
    asm.emit("PUSH_EXC_INFO")
    asked = asm.label()
    found = asm.runtime(INTERCEPT, 1)
    told = asm.label()
    # Stack: .., lasti, saved, exception, answer
    asm.emit("COPY", 1)
    jump_if(asm, IF_NONE, again)
    # Stack: .., lasti, saved, exception, handover
    asm.emit("SWAP", 4)
    asm.emit("POP_TOP")  # lasti
    asm.emit("POP_TOP")  # the exception
    if SAVED in region.kinds:  # what was being handled at the crash
        asm.emit("COPY", 1)
        asm.emit("LIST_APPEND", 2)
    asm.emit("POP_EXCEPT")
    asm.emit("JUMP_FORWARD", move)
    asm.place(guard)
    # Stack: .., lasti, saved, exception, other. If the runtime could not even be called, the program's exception goes
    # its way; what came out of its frame was raised by a signal handler, and takes its place as it would anywhere.
    # IMPORT_FROM gets an attribute of any object, and has no caches.
    asm.emit("IMPORT_FROM", asm.name_index("__traceback__"))
    asm.emit("IMPORT_FROM", asm.name_index("tb_next"))
    asm.emit("SWAP", 2)
    asm.emit("POP_TOP")
    jump_if(asm, IF_NONE, again)
    asm.emit("SWAP", 2)
    asm.place(again)
    asm.emit("POP_TOP")
    asm.emit("SWAP", 2)
    asm.emit("POP_EXCEPT")
    raising = asm.label()
    asm.emit("RERAISE", 1)
    # A program's own `__import__` may refuse to find the runtime: then what it says is none of the program's news.
    asm.protect(asked, found, again, depth + 3)
    asm.protect(found, told, guard, depth + 3)
    if region.entry is not None:
        target = region.entry.target + shift
        asm.protect(raising, asm.label(), target, region.entry.depth, lasti=region.entry.lasti)
    asm.deepest = max(asm.deepest, depth + 6)
    return start


def _is_pair(kinds: Kinds) -> bool:
    """Whether the topmost item takes two slots."""
    if kinds[-1] == INDEX:
        return True
    return pyversion.EXIT_IS_A_PAIR and kinds[-2:-1] == (EXIT,) and kinds[-1] not in (EXIT, SAVED)


def _around(kinds: Kinds) -> Kinds:
    """The items of the blocks around the topmost item."""
    return kinds[: -2 if _is_pair(kinds) else -1]


def _move_top(asm: Assembler, kinds: Kinds) -> None:
    """[items.., handover] -> [items below the topmost one.., handover], that one appended to it."""
    if kinds[-1] == SAVED:
        asm.emit("COPY", 2)
        asm.emit("LIST_APPEND", 1)
        asm.emit("SWAP", 2)
        asm.emit("POP_EXCEPT")
    elif kinds[-1] == INDEX:
        _move_loop(asm)
    elif _is_pair(kinds):
        # Stack: function, self or NULL, handover -> handover(self?, function)
        asm.emit("SWAP", 3)
        asm.call(1)
    else:
        asm.emit("SWAP", 2)
        asm.emit("LIST_APPEND", 1)


def _move_loop(asm: Assembler) -> None:
    """The same for the two slots of a `for` (3.15+): (iterator, NULL) or (sequence, tagged index)."""
    plain, loop, done = Label(), Label(), Label()
    # Stack: first, second, handover
    asm.emit("COPY", 3)
    asm.emit("COPY", 2)
    asm.emit("CONTAINS_OP", 0)  # does the handover say that it is a sequence? Then it counts what is added
    jump_if(asm, _IF_FALSE, plain)
    # What is left of a copy of the pair.
    asm.emit("COPY", 3)
    asm.emit("COPY", 3)
    asm.place(loop)
    asm.emit("FOR_ITER", done)
    asm.emit("LIST_APPEND", 3)
    asm.emit("JUMP_BACKWARD", loop)
    asm.place(done)
    asm.emit("END_FOR")
    asm.emit("POP_ITER")
    asm.emit("SWAP", 2)
    asm.emit("POP_TOP")
    asm.emit("PUSH_NULL")
    asm.emit("SWAP", 2)
    asm.place(plain)
    # Stack: first, NULL, handover -> handover(first)
    asm.emit("SWAP", 3)
    asm.call(1)
