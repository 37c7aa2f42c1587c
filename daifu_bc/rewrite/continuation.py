"""Builds the code that goes on: a prefix that reloads the state, the pristine body, barriers over it.

The body keeps its bytes (see `splice` for the one exception), so an offset in a continuation is the pristine offset
plus a constant. Cells are not made free variables: the prefix stores each cell object into its own slot, where
MAKE_CELL would have put it.
"""

from __future__ import annotations

import inspect
import opcode
from collections.abc import Callable, Container
from dataclasses import dataclass
from types import CodeType
from typing import Final

from daifu_bc import pyversion
from daifu_bc.analysis.code import ExceptionEntry, cells_at_start, encode_exception_entries, slot_names
from daifu_bc.analysis.flow import EXIT, EXIT_SELF, INDEX, ITERATOR, SAVED, Flow, Stack, op_set
from daifu_bc.analysis.regions import regions
from daifu_bc.errors import NoPoint
from daifu_bc.rewrite.assemble import Assembler, InBody, last_line
from daifu_bc.rewrite.barrier import from_verify, memory_of, merge_entries, remember_pristine
from daifu_bc.rewrite.splice import Spliced, checked_loads, splice
from daifu_bc.rewrite.tails import Ending, await_exit, cold_code

TAKE: Final = "_take"
_STORE_THEN_LOAD: Final = opcode.opmap.get("STORE_FAST_LOAD_FAST", -1)


@dataclass(frozen=True)
class Start:
    """Where and with what a continuation begins.

    Attributes:
        place: the instruction, as its place in the flow of the body.
        stack: the structural items that are handed over; those above the place's own stack are left properly.
        bound: names of the local variables that have a value.
        half: begin with the second half of a fused instruction (3.13+).
        raises: raise the exception that is handed over last, at that place, instead of running it.
        entry: the entry that covers such a raise.
        returns: return the value that is handed over last, after leaving the blocks.
        supplied: how many of the items, the topmost ones, come from the runtime and not from the frame.
    """

    place: int
    stack: Stack
    bound: frozenset[str]
    half: bool = False
    raises: bool = False
    entry: ExceptionEntry | None = None
    returns: bool = False
    supplied: int = 0


@dataclass(frozen=True)
class Located:
    """How the offsets of code with a prefix map to those of its pristine body.

    Attributes:
        flow: the analysis of the pristine body.
        shift: length of the prefix.
        spliced: the body as it was relocated, if it had to be.
        continues: whether it is a continuation, and not what the program calls.
        returns: whether a frame of this code leaves the continuations of its crashes to the frame that runs it.
    """

    flow: Flow
    shift: int
    spliced: Spliced | None = None
    continues: bool = True
    returns: bool = False

    @property
    def body_end(self) -> int:
        """Offset of the cold code."""
        return self.shift + len(self.flow.code.co_code if self.spliced is None else self.spliced.raw)

    def pristine_offset(self, offset: int) -> int:
        """The pristine offset of an offset in the continuation; -1 in the prefix or the cold code."""
        if not self.shift <= offset < self.body_end:
            return -1
        offset -= self.shift
        return offset if self.spliced is None else self.spliced.old_offset(offset)


@dataclass(frozen=True)
class Continuation:
    """A built continuation.

    Attributes:
        code: its code object, verified.
        located: its body and layout.
        start: where it begins.
        slots: names of the locals and cells that the prefix unpacks, in this order.
    """

    code: CodeType
    located: Located
    start: Start
    slots: tuple[str, ...]


def build_continuation(flow: Flow, start: Start, *, runs: bool) -> Continuation:
    """The continuation of a body from one of its restart points.

    Args:
        flow: the pristine body's analysis.
        start: where it goes on; the place must be a restart point unless it raises.
        runs: whether its frame runs the continuations of its crashes, as one has to that the program's frame calls.

    Raises:
        NoPoint: the run cannot go on there exactly.
        VerificationError: what was built is unsound; a bug of ours.
    """
    code = flow.code
    unsafe = checked_loads(flow, start.place + start.half, start.bound) if pyversion.UNCHECKED_LOADS else {}
    spliced = splice(flow, unsafe) if unsafe else None
    front = Assembler(code)
    slots = _prefix(front, flow, start, _mover(spliced))
    built, located = around_body(
        flow, front, spliced, Ending.RUN if runs else Ending.RETURN, continues=True, checked=unsafe
    )
    return Continuation(built, located, start, slots)


def _mover(spliced: Spliced | None) -> Callable[[int], int]:
    """A pristine offset -> that in the body, less the prefix."""
    return (lambda offset: offset) if spliced is None else spliced.new_offset


def around_body(
    flow: Flow,
    front: Assembler,
    spliced: Spliced | None,
    ending: Ending,
    *,
    continues: bool,
    checked: Container[int] = (),
) -> tuple[CodeType, Located]:
    """A code object of a prefix, a body under barriers and its stubs, verified; and its layout.

    Args:
        flow: the pristine body's analysis.
        front: the prefix. Its last instructions carry the code's first line, which the body's line table starts from.
        spliced: the body as it was relocated, if it had to be.
        ending: what its frames do with what they hand over.
        continues: whether it is a continuation, and not what the program calls.
        checked: places of the loads that were made checked.

    Raises:
        VerificationError: what was built is unsound; a bug of ours.
    """
    code = flow.code
    moved = _mover(spliced)
    raw = code.co_code if spliced is None else spliced.raw
    entries = [
        ExceptionEntry(moved(entry.start), moved(entry.end), moved(entry.target), entry.depth, entry.lasti)
        for entry in flow.entries
    ]
    shift = len(front.finish(0)[0])
    prefix, prefix_entries = front.finish(0, shift)
    found = [
        region._replace(
            ranges=[(moved(first), moved(last)) for first, last in region.ranges],
            entry=region.entry and region.entry._replace(target=moved(region.entry.target)),
        )
        for region in regions(flow, checked)
    ]
    back = Assembler(code)
    back.consts, back.names = front.consts, front.names
    stubs = cold_code(back, found, code, ending, shift)
    base = shift + len(raw)
    cold, cold_entries = back.finish(base)
    table = merge_entries(entries, found, [back.offset(label) for label in stubs], shift)
    front_lines, line = front.line_entries(code.co_firstlineno)
    lines = code.co_linetable if spliced is None else spliced.lines
    back_lines, _ = back.line_entries(last_line(code))
    assert line == code.co_firstlineno
    if not continues:  # it is vaccinated code with a prefix, for those who ask the code object alone
        back.consts.append(memory_of(code, shift, len(front_lines)))
    built = code.replace(
        co_code=prefix + raw + cold,
        co_exceptiontable=encode_exception_entries(prefix_entries + table + cold_entries),
        co_linetable=front_lines + lines + back_lines,
        co_consts=tuple(back.consts),
        co_names=tuple(back.names),
        co_stacksize=max(code.co_stacksize, back.deepest, front.deepest),
    )
    from_verify(built, code)
    if not continues:
        remember_pristine(built, code)
    return built, Located(flow, shift, spliced, continues, ending is Ending.RETURN)


def _prefix(asm: Assembler, flow: Flow, start: Start, moved: Callable[[int], int]) -> tuple[str, ...]:
    code = flow.code
    line = _line_at(flow, start.place)
    asm.line(line)
    if code.co_freevars:
        asm.emit("COPY_FREE_VARS", len(code.co_freevars))
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        asm.emit("RETURN_GENERATOR")
        asm.emit("POP_TOP")
    asm.emit("RESUME", 0)
    slots = _load_locals(asm, code, start.bound)
    target = flow.stacks[start.place]
    if target is None:
        raise NoPoint("that instruction is never reached")
    if start.half:
        target = target[:-1]
    wanted = start.stack if start.raises or start.returns else target
    _load_items(asm, [flow.kind(item) for item in start.stack])
    if not start.raises:
        _leave(asm, flow, start.stack, 0 if start.returns else len(wanted), moved)
    depth = len(start.stack)
    asm.deepest = max(asm.deepest, depth + 8, len(slots) + 4)
    if start.raises:
        first = asm.label()
        _take(asm)
        asm.emit("RAISE_VARARGS", 1)
        if start.entry is not None:
            asm.protect(
                first,
                asm.label(),
                InBody(moved(start.entry.target)),
                start.entry.depth,
                lasti=start.entry.lasti,
            )
    elif start.returns:
        _take(asm)
        asm.emit("RETURN_VALUE")
    instruction = flow.instructions[start.place]
    asm.line(code.co_firstlineno)
    if start.half:
        if instruction.opcode != _STORE_THEN_LOAD:
            raise NoPoint("that instruction has no second half")
        first = asm.label()
        asm.emit("LOAD_FAST_CHECK", instruction.arg & 15)
        entry = flow.entry(start.place + 1)
        if entry is not None:
            asm.protect(first, asm.label(), InBody(moved(entry.target)), entry.depth, lasti=entry.lasti)
        asm.emit("JUMP_FORWARD", InBody(moved(instruction.end)))
    else:
        asm.emit("JUMP_FORWARD", InBody(moved(instruction.start)))
    return slots


def _take(asm: Assembler) -> None:
    """Pushes the next thing of the state that is handed over."""
    asm.constant(0)
    asm.constant(None)
    asm.emit("IMPORT_NAME", pyversion.import_argument(asm.name_index("daifu_bc")))
    asm.emit("IMPORT_FROM", asm.name_index(TAKE))
    asm.emit("SWAP", 2)
    asm.call(0)


def _load_locals(asm: Assembler, code: CodeType, bound: frozenset[str]) -> tuple[str, ...]:
    """Stores locals and cells into their slots; the names in the order in which they are expected."""
    all_slots = slot_names(code)
    cells = [name for name in cells_at_start(code) if name not in code.co_freevars]
    names = [name for name in code.co_varnames if name in cells or name in bound]
    names += [name for name in cells if name not in code.co_varnames]
    indices = [all_slots.index(name) for name in names]
    # Parameters got a dummy from the call; those that are unbound lose it.
    parameters = code.co_argcount + code.co_kwonlyargcount
    parameters += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    for index in range(parameters):
        if code.co_varnames[index] not in names:
            asm.emit("DELETE_FAST", index)
    if names:
        _take(asm)
        asm.emit("UNPACK_SEQUENCE", len(names))
        for index in indices:
            asm.emit("STORE_FAST", index)
    return tuple(names)


def _load_items(asm: Assembler, kinds: list[str]) -> None:
    for place, kind in enumerate(kinds):
        if kind in (INDEX, EXIT_SELF):
            continue
        _take(asm)
        if kind == SAVED:
            asm.emit("PUSH_EXC_INFO")
            asm.emit("POP_TOP")
        elif kind in (EXIT, ITERATOR) and kinds[place + 1 : place + 2] in ([INDEX], [EXIT_SELF]):
            asm.emit("PUSH_NULL")


def _leave(asm: Assembler, flow: Flow, stack: Stack, keep: int, moved: Callable[[int], int]) -> None:
    """Leaves the blocks of the items above the first `keep` ones, innermost first, as the compiler's code would."""
    items = list(stack)
    while len(items) > keep:
        kind, origin = items.pop()
        kind = flow.kind((kind, origin))
        if kind == INDEX:
            items.pop()
            asm.emit("POP_ITER")
        elif kind in (EXIT, EXIT_SELF):
            if kind == EXIT_SELF:
                items.pop()
            first = asm.label()
            for _ in range(3):
                asm.constant(None)
            asm.call(3 if pyversion.EXIT_IS_A_PAIR else 2)
            begin = end = first
            if _is_awaited(flow, origin):
                begin, end = await_exit(asm, len(items))
            asm.emit("POP_TOP")
            entry = flow.entry(flow.index[origin])
            if entry is not None:
                target = InBody(moved(entry.target))
                for one, other in ((first, begin), (end, asm.label())):
                    if one is not other:
                        asm.protect(one, other, target, entry.depth, lasti=entry.lasti)
        elif kind == SAVED:
            asm.emit("POP_EXCEPT")
        else:
            asm.emit("POP_TOP")


def _is_awaited(flow: Flow, origin: int) -> bool:
    """Whether an exit belongs to an `async with`."""
    instruction = flow.instructions[flow.index[origin]]
    return instruction.opcode in _ASYNC_WITH or (pyversion.EXIT_IS_A_PAIR and instruction.arg == _AEXIT)


_AEXIT: Final = 3  # argument of LOAD_SPECIAL (3.14+)
_ASYNC_WITH: Final = frozenset({opcode.opmap.get("BEFORE_ASYNC_WITH", -1)})


def _line_at(flow: Flow, place: int) -> int:
    offset = flow.instructions[place].offset
    line = flow.code.co_firstlineno
    for start, end, number in flow.code.co_lines():
        if number is not None and start <= offset:
            line = number
            if offset < end:
                break
    return line


__all__ = ["Continuation", "Start", "around_body", "build_continuation", "op_set"]
