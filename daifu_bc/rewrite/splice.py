"""Makes unchecked loads checked in a body that is entered where a local may be unbound.

From 3.12 the compiler leaves a load unchecked where it has proved that the local is bound. A continuation can start
where that proof does not hold, and the load of a NULL would be a segmentation fault. A single load keeps its size; a
fused one (3.13+) becomes two or three instructions, and the body is relocated.
"""

from __future__ import annotations

import bisect
import opcode
from typing import Final, NamedTuple

from daifu_bc.analysis.code import EXTENDED_ARG, Instruction, cell_slots
from daifu_bc.analysis.flow import Flow, op_set

_OP: Final = opcode.opmap
_CHECK: Final = _OP.get("LOAD_FAST_CHECK", -1)
_LOAD: Final = _OP["LOAD_FAST"]
_STORE: Final = _OP["STORE_FAST"]
_CLEAR: Final = _OP.get("LOAD_FAST_AND_CLEAR", -1)
_SINGLE: Final = op_set("LOAD_FAST", "LOAD_FAST_BORROW")
_TWO_LOADS: Final = frozenset(
    _OP[name] for name in ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW") if name in _OP
)
_STORE_THEN_LOAD: Final = _OP.get("STORE_FAST_LOAD_FAST", -1)
_TWO_STORES: Final = _OP.get("STORE_FAST_STORE_FAST", -1)
_DELETE: Final = _OP["DELETE_FAST"]


def accesses(number: int, arg: int) -> tuple[tuple[bool, int], ...]:
    """For each access of an instruction to a local, in order: whether it loads, and the slot."""
    if number in _SINGLE or number == _CHECK:
        return ((True, arg),)
    if number == _STORE:
        return ((False, arg),)
    if number in _TWO_LOADS:
        return ((True, arg >> 4), (True, arg & 15))
    if number == _STORE_THEN_LOAD:
        return ((False, arg >> 4), (True, arg & 15))
    if number == _TWO_STORES:
        return ((False, arg >> 4), (False, arg & 15))
    return ()


def checked_loads(flow: Flow, place: int, bound: frozenset[str]) -> dict[int, frozenset[int]]:
    """The loads that may meet an unbound local when the body is entered at `place`.

    Args:
        flow: the body.
        place: where it is entered.
        bound: names of the locals that have a value there; cells always have one.

    Returns:
        Place of an instruction -> the slots that it must check.
    """
    code = flow.code
    cells = set(cell_slots(code))
    unbound = frozenset(
        slot for slot, name in enumerate(code.co_varnames) if name not in bound and slot not in cells
    )
    if not unbound:
        return {}
    found: dict[int, set[int]] = {}
    state: dict[int, frozenset[int]] = {place: unbound}
    work = [place]
    while work:
        here = work.pop()
        missing = state[here]
        entry = flow.entry(here)
        instruction = flow.instructions[here]
        after = missing
        number = instruction.opcode
        for loads, slot in accesses(number, instruction.arg):
            if slot in after:
                if loads:
                    found.setdefault(here, set()).add(slot)
                    after -= {slot}
                elif not _restores(flow, here):
                    after -= {slot}
        following = [(succeeding, after) for succeeding in flow.successors(here)]
        if entry is not None:
            following.append((flow.index[entry.target], missing))
        for succeeding, value in following:
            known = state.get(succeeding)
            joined = value if known is None else known | value
            if joined != known:
                state[succeeding] = joined
                work.append(succeeding)
    return {where: frozenset(slots) for where, slots in found.items()}


def _restores(flow: Flow, place: int) -> bool:
    """Whether a store gives back what an inlined comprehension had put aside, which may be nothing."""
    stack = flow.stacks[place]
    return bool(stack) and stack is not None and flow.instructions[flow.index[stack[-1][1]]].opcode == _CLEAR


class Spliced(NamedTuple):
    """A relocated body.

    Attributes:
        raw: its bytes.
        lines: its line table.
        old: sorted pristine offsets of its instructions' starts (and the end).
        new: the offsets at which they are now.
    """

    raw: bytes
    lines: bytes
    old: list[int]
    new: list[int]

    def new_offset(self, offset: int) -> int:
        """Where the instruction of a pristine offset has gone."""
        place = bisect.bisect_right(self.old, offset) - 1
        return self.new[place] + (offset - self.old[place])

    def old_offset(self, offset: int) -> int:
        """The pristine offset of one in the relocated body; what was inserted counts to its instruction."""
        if not 0 <= offset < self.new[-1]:
            return -1
        place = bisect.bisect_right(self.new, offset) - 1
        return min(
            self.old[place] + (offset - self.new[place]), max(self.old[place], self.old[place + 1] - 2)
        )


Units = list[tuple[int, int]]  # opcodes and arguments


def splice(flow: Flow, unsafe: dict[int, frozenset[int]]) -> Spliced:
    """The body with the loads of `unsafe` checked."""
    instructions = flow.instructions
    parts = [_replacement(instruction, unsafe.get(place)) for place, instruction in enumerate(instructions)]
    new = _layout(flow, parts)
    result = bytearray()
    for place, instruction in enumerate(instructions):
        if parts[place]:
            for number, slot in parts[place]:
                _encode(result, number, slot, _extensions(slot))
        elif instruction.target is not None:
            caches = instruction.end - instruction.offset - 2
            extensions = (new[place + 1] - new[place] - 2 - caches) // 2
            _encode(result, instruction.opcode, _distance(flow, new, place), extensions)
            result += bytes(caches)
        else:
            result += flow.code.co_code[instruction.start : instruction.end]
    old = [instruction.start for instruction in instructions] + [len(flow.code.co_code)]
    growth = {
        instruction.start: units
        for place, instruction in enumerate(instructions)
        if (units := (new[place + 1] - new[place] - (instruction.end - instruction.start)) // 2)
    }
    return Spliced(bytes(result), _stretch_lines(flow.code.co_linetable, growth), old, new)


def _replacement(instruction: Instruction, slots: frozenset[int] | None) -> Units:
    """What takes the place of an instruction that loads an unbound local; empty for the others."""
    if slots is None:
        return []
    return [
        ((_CHECK if slot in slots else _LOAD) if loads else _STORE, slot)
        for loads, slot in accesses(instruction.opcode, instruction.arg)
    ]


def _layout(flow: Flow, parts: list[Units]) -> list[int]:
    """The new offsets of the instructions, and of the end. A jump that has become longer may need an EXTENDED_ARG."""
    instructions = flow.instructions
    sizes = [
        sum(2 * (1 + _extensions(slot)) for _, slot in units)
        if units
        else instruction.end - instruction.start
        for units, instruction in zip(parts, instructions, strict=True)
    ]
    while True:
        new = [0]
        for size in sizes:
            new.append(new[-1] + size)
        grown = False
        for place, instruction in enumerate(instructions):
            if instruction.target is None:
                continue
            caches = instruction.end - instruction.offset - 2
            need = 2 + caches + 2 * _extensions(_distance(flow, new, place))
            if need > sizes[place]:
                sizes[place] = need
                grown = True
        if not grown:
            return new


def _distance(flow: Flow, new: list[int], place: int) -> int:
    target = flow.instructions[place].target
    assert target is not None
    return abs(new[flow.index[target]] - new[place + 1]) // 2


def _extensions(value: int) -> int:
    return 0 if value < 1 << 8 else 1 if value < 1 << 16 else 2 if value < 1 << 24 else 3


def _encode(result: bytearray, number: int, arg: int, extensions: int) -> None:
    for level in range(extensions, 0, -1):
        result += bytes((EXTENDED_ARG, arg >> 8 * level & 255))
    result += bytes((number, arg & 255))


def _stretch_lines(table: bytes, growth: dict[int, int]) -> bytes:
    """The line table when the instruction at each offset of `growth` has become so many units longer."""
    result = bytearray()
    position = offset = 0
    while position < len(table):
        end = position + 1
        while end < len(table) and not table[end] & 0x80:
            end += 1
        entry = table[position:end]
        units = (entry[0] & 7) + 1
        extra = sum(growth.get(at, 0) for at in range(offset, offset + 2 * units, 2))
        offset += 2 * units
        kind, rest = entry[0] >> 3 & 15, entry[1:]
        total = units + extra
        while total > 0:
            count = min(total, 8)
            result += bytes((0x80 | kind << 3 | count - 1,)) + rest
            total -= count
            if total > 0:  # the same place again, with no step to another line
                if 10 <= kind <= 12:
                    kind = 10
                elif kind in (13, 14):
                    skip = 0
                    while rest[skip] & 64:
                        skip += 1
                    rest = b"\0" + rest[skip + 1 :]
        position = end
    return bytes(result)
