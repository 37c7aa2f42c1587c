"""Where barriers go: runs of instructions that share their exception-table entry and their structural stack."""

from __future__ import annotations

import opcode
from collections.abc import Container
from typing import Final, NamedTuple

from daifu_bc import pyversion
from daifu_bc.analysis.code import ExceptionEntry, Instruction, cell_slots
from daifu_bc.analysis.flow import SAVED, Flow, op_set
from daifu_bc.analysis.handlers import may_catch

_STORE_FAST: Final = opcode.opmap["STORE_FAST"]
_STORES: Final = op_set("STORE_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST")
_CLEARS: Final = op_set("LOAD_FAST_AND_CLEAR", "MAKE_CELL")
_RAISE: Final = opcode.opmap["RAISE_VARARGS"]
_RERAISE: Final = opcode.opmap["RERAISE"]
_RESUME: Final = opcode.opmap["RESUME"]
_RETURN_GENERATOR: Final = opcode.opmap["RETURN_GENERATOR"]
#: Instructions that cannot raise; a run of nothing else needs no barrier. At a jump backward a signal's handler may.
SILENT = op_set(
    "NOP", "POP_TOP", "POP_ITER", "LOAD_FAST_BORROW", "LOAD_FAST_LOAD_FAST", "LOAD_CONST", "STORE_FAST",
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST", "LOAD_FAST_AND_CLEAR",
    "SWAP", "COPY", "PUSH_NULL", "JUMP_FORWARD", "JUMP_BACKWARD_NO_INTERRUPT", "RETURN_VALUE", "RETURN_CONST",
    "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT", "NOT_TAKEN", "POP_EXCEPT", "PUSH_EXC_INFO", "END_FOR", "END_SEND",
    "LOAD_CLOSURE", "MAKE_CELL", "COPY_FREE_VARS", "KW_NAMES", "PRECALL", "RESUME", "CACHE", "LOAD_ASSERTION_ERROR",
    "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE", "POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_FORWARD_IF_NOT_NONE",
    "STORE_DEREF", "IS_OP", "RETURN_GENERATOR", "BUILD_TUPLE", "GET_LEN",
)  # fmt: skip
if pyversion.UNCHECKED_LOADS:  # before, each load of a local asks whether it is bound
    SILENT |= op_set("LOAD_FAST")


class Region(NamedTuple):
    """Instructions that share one barrier.

    Attributes:
        entry: the original entry that covers them, which the barrier displaces, or None.
        kinds: kinds of the structural items that survive, bottom first.
        raised_at: offset of the one bare `raise` that this barrier is for, or -1.
        ranges: (start, end) offsets, sorted, end exclusive.
        line: a line of the source that the barrier's code stands for.
    """

    entry: ExceptionEntry | None
    kinds: tuple[str, ...]
    raised_at: int
    ranges: list[tuple[int, int]]
    line: int


def first_covered(flow: Flow) -> int:
    """Place of the first instruction behind the prologue, where frame, cells and generator are complete."""
    first = 0
    for place, instruction in enumerate(flow.instructions):
        if instruction.opcode == _RETURN_GENERATOR:
            return place + 3  # RETURN_GENERATOR, POP_TOP, RESUME
        if instruction.opcode == _RESUME:
            if first:
                break
            first = place + 1
            if instruction.arg & 3:
                break
        elif first and place > first + 3:
            break
    return first


def regions(flow: Flow, checked: Container[int] = ()) -> list[Region]:
    """The barriers of a code object, in a fixed order (the same for the same code object on every run).

    Args:
        flow: the analysed code.
        checked: places of loads that are made checked, and so may raise.

    An instruction that cannot raise goes with the next one that can, so that there are fewer entries; and because from
    3.13 on an exception that comes out of a Python callee is looked up one unit before the instruction that called.
    Behind the last one that can, it goes with that: a signal's handler, or who has paused the program, may raise there.
    But not where an inlined comprehension (3.12+) has put a cell aside and uses its slot: there is no cell to hand over
    until it is back, so that a call right behind that is only covered for what C code raises.
    """
    cells = _slots_of_cells(flow)
    found: dict[_Key, Region] = {}
    lines = _lines(flow)
    silent: list[int] = []  # places of a run of instructions that cannot raise
    last: _Key | None = None
    for place in range(first_covered(flow), len(flow.instructions)):
        if flow.stacks[place] is None:
            _extend(flow, found, last, silent)
            silent, last = [], None
            continue
        instruction = flow.instructions[place]
        if instruction.opcode in SILENT and place not in checked:
            silent.append(place)
            if cells and instruction.opcode in _STORES and cells.intersection(_stored(instruction)):
                silent, last = [], None
            continue
        key = _key_of(flow, place)
        if key is None:
            _extend(flow, found, last, silent)
            silent, last = [], None
            continue
        region = found.get(key)
        if region is None:
            region = found[key] = Region(*key, [], lines.get(instruction.offset, flow.code.co_firstlineno))
        first = place
        if key == last and all(_belongs(flow, other, region) for other in silent):
            region.ranges[-1] = (region.ranges[-1][0], instruction.end)
        else:
            while silent and _belongs(flow, silent[-1], region):
                first = silent.pop()
            _extend(flow, found, last, silent)
            region.ranges.append((flow.instructions[first].start, instruction.end))
        silent, last = [], key
    _extend(flow, found, last, silent)
    return list(found.values())


def _extend(flow: Flow, found: dict[_Key, Region], last: _Key | None, silent: list[int]) -> None:
    """Lets the last region reach over instructions behind it that cannot raise."""
    if last is None or last[2] >= 0:
        return
    region = found[last]
    first, end = region.ranges[-1]
    for place in silent:
        instruction = flow.instructions[place]
        # An inlined comprehension that puts a cell aside leaves none to be handed over.
        if instruction.start != end or instruction.opcode in _CLEARS or not _belongs(flow, place, region):
            break
        end = instruction.end
    region.ranges[-1] = first, end


def _slots_of_cells(flow: Flow) -> frozenset[int]:
    """The slots of cells that a barrier hands over."""
    return frozenset(cell_slots(flow.code))


def _stored(instruction: Instruction) -> tuple[int, ...]:
    """The slots that are stored to, one of them perhaps only loaded."""
    if instruction.opcode == _STORE_FAST:
        return (instruction.arg,)
    return instruction.arg >> 4, instruction.arg & 15


_Key = tuple[ExceptionEntry | None, tuple[str, ...], int]


def _key_of(flow: Flow, place: int) -> _Key | None:
    """Entry, surviving kinds and bare `raise` of an instruction's region; None if it gets no barrier."""
    entry = flow.entry(place)
    depth = flow.held_depth(place)
    if not covers(flow, place, entry, depth):
        return None
    instruction = flow.instructions[place]
    stack = flow.stacks[place] or ()
    raised_at = instruction.offset if instruction.opcode == _RAISE and instruction.arg == 0 else -1
    return entry, tuple(flow.kind(item) for item in stack[:depth]), raised_at


def _belongs(flow: Flow, place: int, region: Region) -> bool:
    """Whether an instruction that cannot raise may lie in a region: what the region keeps is on the stack there."""
    if region.raised_at >= 0 or flow.entry(place) != region.entry:
        return False
    stack = (flow.stacks[place] or ())[: len(region.kinds)]
    return tuple(flow.kind(item) for item in stack) == region.kinds


def covers(flow: Flow, place: int, entry: ExceptionEntry | None, depth: int) -> bool:
    """Whether a barrier may take the place of `entry` at an instruction that keeps `depth` structural items."""
    if entry is None:
        return True
    if entry.depth > depth:
        return False  # the handler wants temporaries of the expression: it runs first, then comes the barrier
    if (
        flow.instructions[place].opcode == _RERAISE
        and _only_cleans(flow, entry)
        and _raises_its_own(flow, place)
    ):
        return False  # its handler's clean-up comes first
    return entry.depth < depth or not may_catch(flow, entry)


def _raises_its_own(flow: Flow, place: int) -> bool:
    """Whether a re-raise is of the exception that its own handler has taken up, and not of one further inside."""
    stack = flow.stacks[place] or ()
    saved = [origin for kind, origin in stack if kind == SAVED]
    return bool(saved) and saved[-1] == stack[-1][1]


def _only_cleans(flow: Flow, entry: ExceptionEntry) -> bool:
    """Whether the handler is the interpreter's COPY 3, POP_EXCEPT, RERAISE 1."""
    place = flow.index[entry.target]
    names = [instruction.name for instruction in flow.instructions[place : place + 3]]
    return names == ["COPY", "POP_EXCEPT", "RERAISE"]


def _lines(flow: Flow) -> dict[int, int]:
    """Offset of an instruction -> line, for the first offset of each line's run."""
    lines: dict[int, int] = {}
    for start, end, line in flow.code.co_lines():
        if line is not None:
            for offset in range(start, end, 2):
                lines[offset] = line
    return lines
