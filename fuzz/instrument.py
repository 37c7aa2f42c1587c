"""Puts a call in front of each restart point of a program's code, so that a run can be stopped at any of them.

The call needs no line of the source: it is inserted into the bytecode, before the code is vaccinated, and carries
the line of the instruction that it stands before.
"""

from __future__ import annotations

import opcode
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Final

from daifu_bc import pyversion
from daifu_bc.analysis.code import CACHES, EXTENDED_ARG, ExceptionEntry, encode_exception_entries
from daifu_bc.analysis.flow import Flow
from daifu_bc.analysis.handlers import may_catch
from daifu_bc.analysis.regions import first_covered, regions
from daifu_bc.rewrite.splice import _stretch_lines as stretch_lines

_OP: Final = opcode.opmap
# A comprehension of 3.11 is part of the statement around it.
PART_OF_STATEMENT: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>"})
# The interpreter relies on what stands before these.
_NEVER_BEFORE: Final = frozenset({"END_FOR", "POP_ITER", "RESUME", "END_SEND", "CLEANUP_THROW", "NOT_TAKEN"})


@dataclass(frozen=True)
class Spot:
    """A restart point of a program.

    Attributes:
        flow: the analysis of the program's own code.
        place: the instruction in it.
    """

    flow: Flow
    place: int

    @property
    def name(self) -> str:
        """Names it the same way in every run."""
        code = self.flow.code
        return f"{code.co_qualname}:{code.co_firstlineno}:{self.place}"

    def __str__(self) -> str:
        instruction = self.flow.instructions[self.place]
        return f"{self.flow.code.co_qualname}, before {instruction.name} at {instruction.offset}"


def with_calls(
    code: CodeType, call_for: Callable[[Spot], object], finish: Callable[[CodeType], CodeType]
) -> CodeType:
    """The code, and all code in it, with a call of `call_for(spot)` before each restart point that has a line.

    Args:
        code: any code object as the compiler made it.
        call_for: gives the object to call.
        finish: makes what takes the place of each code object out of the one with calls.
    """
    consts = tuple(
        with_calls(constant, call_for, finish)
        if isinstance(constant, CodeType) and constant.co_name not in PART_OF_STATEMENT
        else constant
        for constant in code.co_consts
    )
    # The program's own code can stand in for the one with calls: the functions that it makes have calls as well.
    flow = Flow(code.replace(co_consts=consts))
    spots = restart_points(flow)
    return finish(_inserted(flow, spots, call_for, consts))


def restart_points(flow: Flow) -> list[int]:
    """The places of the restart points before which a call can be put."""
    lines = {}
    for start, end, line in flow.code.co_lines():
        for offset in range(start, end, 2):
            lines[offset] = line
    found = []
    for place in range(first_covered(flow), len(flow.instructions)):
        instruction = flow.instructions[place]
        if not flow.is_restart_point(place) or lines.get(instruction.offset) is None:
            continue
        before = flow.instructions[place - 1].name if place else ""
        if instruction.name in _NEVER_BEFORE or before == "END_FOR" or before == "RETURN_GENERATOR":
            continue
        entry = flow.entry(place)
        if entry is not None and entry.depth > len(flow.stacks[place] or ()):
            continue  # the entry covers an instruction that cannot raise (3.15, generator expressions)
        found.append(place)
    return found


def _call_units(constant: int) -> list[tuple[int, int]]:
    null, load = (_OP["PUSH_NULL"], 0), (_OP["LOAD_CONST"], constant)
    units = [null, load] if pyversion.NULL_BEFORE_CALLABLE else [load, null]
    if pyversion.HAS_PRECALL:
        units.append((_OP["PRECALL"], 0))
    return [*units, (_OP["CALL"], 0), (_OP["POP_TOP"], 0)]


def _encoded(units: list[tuple[int, int]]) -> bytes:
    raw = bytearray()
    for number, arg in units:
        for level in range(_extensions(arg), 0, -1):
            raw += bytes((EXTENDED_ARG, arg >> 8 * level & 255))
        raw += bytes((number, arg & 255)) + bytes(2 * CACHES[number])
    return bytes(raw)


def _extensions(value: int) -> int:
    return 0 if value < 1 << 8 else 1 if value < 1 << 16 else 2 if value < 1 << 24 else 3


def _inserted(
    flow: Flow, places: list[int], call_for: Callable[[Spot], object], consts: tuple[object, ...]
) -> CodeType:
    code = flow.code
    added: list[object] = []
    inserted: dict[int, bytes] = {}
    for place in places:
        added.append(call_for(Spot(flow, place)))
        inserted[place] = _encoded(_call_units(len(consts) + len(added) - 1))
    instructions = flow.instructions
    extended = [(instruction.offset - instruction.start) // 2 for instruction in instructions]
    while True:
        new = [0]
        for place, instruction in enumerate(instructions):
            own = instruction.end - instruction.offset + 2 * extended[place]
            new.append(new[-1] + len(inserted.get(place, b"")) + own)
        distances = {
            place: abs(new[flow.index[instruction.target]] - new[place + 1]) // 2
            for place, instruction in enumerate(instructions)
            if instruction.target is not None
        }
        longer = [place for place, value in distances.items() if _extensions(value) > extended[place]]
        if not longer:
            break
        for place in longer:
            extended[place] = _extensions(distances[place])
    raw = bytearray()
    for place, instruction in enumerate(instructions):
        raw += inserted.get(place, b"")
        if place in distances:
            for level in range(extended[place], 0, -1):
                raw += bytes((EXTENDED_ARG, distances[place] >> 8 * level & 255))
            raw += bytes((instruction.opcode, distances[place] & 255))
            raw += bytes(instruction.end - instruction.offset - 2)
        else:
            raw += code.co_code[instruction.start : instruction.end]
    moved = {instruction.start: new[place] for place, instruction in enumerate(instructions)}
    moved[len(code.co_code)] = new[-1]
    entries = [
        ExceptionEntry(moved[entry.start], moved[entry.end], moved[entry.target], entry.depth, entry.lasti)
        for entry in flow.entries
    ]
    growth = {
        instruction.start: (new[place + 1] - new[place] - (instruction.end - instruction.start)) // 2
        for place, instruction in enumerate(instructions)
        if new[place + 1] - new[place] != instruction.end - instruction.start
    }
    return code.replace(
        co_code=bytes(raw),
        co_exceptiontable=encode_exception_entries(entries),
        co_linetable=stretch_lines(code.co_linetable, growth),
        co_consts=(*consts, *added),
        co_stacksize=code.co_stacksize + 3,
    )


def called_at(flow: Flow, place: int) -> object:
    """What was put in to be called at a place; None if nothing was."""
    instruction = flow.instructions[place]
    load = flow.instructions[place - (2 if pyversion.VERSION != (3, 12) else 1)]
    if instruction.name != "CALL" or instruction.arg or load.name != "LOAD_CONST":
        return None
    return flow.code.co_consts[load.arg]


def calls_whose_state_is_kept(code: CodeType) -> set[object]:
    """Of the objects that calls were put in for, those at whose call a barrier keeps the whole state.

    Elsewhere the interpreter's own clean-up comes first, and the run cannot go on there exactly.
    """
    flow = Flow(code)
    covered: dict[int, int] = {}
    for region in regions(flow):
        for start, end in region.ranges:
            for offset in range(start, end, 2):
                covered[offset] = len(region.kinds)
    kept: set[object] = set()
    for place, instruction in enumerate(flow.instructions):
        stack = flow.stacks[place]
        call = called_at(flow, place)
        if stack is None or call is None:
            continue
        depth = len(stack) - 2
        entry = flow.entry(place)
        waits = entry is not None and entry.depth == depth and may_catch(flow, entry)
        if covered.get(instruction.offset) == depth or (instruction.offset not in covered and waits):
            kept.add(call)
    return kept
