"""Decodes a code object: instructions, and its exception table (CPython's Objects/exception_handling_notes.txt)."""

from __future__ import annotations

import bisect
import opcode
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any, Final, NamedTuple

EXTENDED_ARG: Final = opcode.EXTENDED_ARG
_CACHES: Final[Any] = getattr(opcode, "_inline_cache_entries", ())

# Opcodes whose argument leads backward although their names are in `hasjrel`.
_BACKWARD: Final = frozenset(number for name, number in opcode.opmap.items() if "JUMP_BACKWARD" in name)
# It is in `hasjrel` on 3.14+, but only tells where its SEND is; nothing jumps.
_NO_JUMP: Final = frozenset({opcode.opmap["END_ASYNC_FOR"]})


def _cache_sizes() -> list[int]:
    """Number of inline cache units that follow each opcode."""
    sizes = [0] * 256
    if isinstance(_CACHES, Mapping):  # by name, 3.13+
        for name, count in _CACHES.items():
            sizes[opcode.opmap[name]] = count
    else:  # by number
        for number, count in enumerate(_CACHES):
            sizes[number] = count
    return sizes


CACHES: Final = _cache_sizes()
_JUMPS: Final = frozenset(opcode.hasjrel) - _NO_JUMP
_MAKE_CELL: Final = opcode.opmap["MAKE_CELL"]
_RESUME: Final = opcode.opmap["RESUME"]
#: From 3.15 None is among them.
_COMMON_CONSTANTS: Final[list[object]] = list(getattr(opcode, "_common_constants", ()))
_RETURN_VALUE: Final = opcode.opmap["RETURN_VALUE"]


class Instruction:
    """One instruction with its EXTENDED_ARGs and caches; offsets are in bytes.

    Attributes:
        start: offset of its first unit (an EXTENDED_ARG, if it has any).
        offset: offset of the opcode itself; what `f_lasti` and `tb_lasti` hold.
        end: offset behind its caches.
        opcode: number of the opcode.
        name: name of the opcode.
        arg: argument, EXTENDED_ARGs included.
        target: offset that it may jump to, or None.
    """

    __slots__ = ("arg", "end", "name", "offset", "opcode", "start", "target")

    def __init__(self, start: int, offset: int, end: int, number: int, arg: int, target: int | None) -> None:
        self.start = start
        self.offset = offset
        self.end = end
        self.opcode = number
        self.name = opcode.opname[number]
        self.arg = arg
        self.target = target

    def __repr__(self) -> str:
        jump = f" to {self.target}" if self.target is not None else ""
        return f"<{self.offset} {self.name} {self.arg}{jump}>"


def decode(code: CodeType, *, stop: int | None = None) -> list[Instruction]:
    """All instructions of `code`, up to offset `stop`, in the order of their offsets."""
    raw = code.co_code
    size = len(raw) if stop is None else stop
    result: list[Instruction] = []
    append = result.append
    jumps, backward, caches, extended_arg = _JUMPS, _BACKWARD, CACHES, EXTENDED_ARG
    offset = start = extended = 0
    while offset < size:
        number = raw[offset]
        arg = raw[offset + 1] | extended
        if number == extended_arg:
            extended = arg << 8
            offset += 2
            continue
        end = offset + 2 + 2 * caches[number]
        target = None
        if number in jumps:
            target = end - 2 * arg if number in backward else end + 2 * arg
        append(Instruction(start, offset, end, number, arg, target))
        start = offset = end
        extended = 0
    return result


class ExceptionEntry(NamedTuple):
    """One entry of an exception table; byte offsets, `end` exclusive."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


def code_objects(code: CodeType) -> Iterator[CodeType]:
    """A code object, and all those of what it defines."""
    work = [code]
    while work:
        found = work.pop()
        yield found
        work += [constant for constant in found.co_consts if isinstance(constant, CodeType)]


def exception_entries(table: bytes) -> list[ExceptionEntry]:
    """The entries of `co_exceptiontable`, sorted and disjoint as CPython writes them."""
    entries: list[ExceptionEntry] = []
    position, size = 0, len(table)

    def number() -> int:
        nonlocal position
        byte = table[position]
        position += 1
        value = byte & 63
        while byte & 64:
            byte = table[position]
            position += 1
            value = value << 6 | byte & 63
        return value

    while position < size:
        start = number() * 2
        end = start + number() * 2
        target = number() * 2
        depth = number()
        entries.append(ExceptionEntry(start, end, target, depth >> 1, bool(depth & 1)))
    return entries


def entry_at(entries: list[ExceptionEntry], offset: int) -> ExceptionEntry | None:
    """The entry that covers the instruction at `offset`, or None."""
    index = bisect.bisect_right(entries, offset, key=lambda entry: entry.start) - 1
    if index >= 0 and offset < entries[index].end:
        return entries[index]
    return None


def encode_exception_entries(entries: list[ExceptionEntry]) -> bytes:
    """The bytes of an exception table; `entries` are sorted and disjoint."""
    table = bytearray()

    def number(value: int, first: int) -> None:
        groups = [value & 63]
        while value := value >> 6:
            groups.append(value & 63)
        groups.reverse()
        last = len(groups) - 1
        for index, group in enumerate(groups):
            table.append(group | (64 if index < last else 0) | (first if index == 0 else 0))

    for start, end, target, depth, lasti in entries:
        number(start // 2, 128)
        number((end - start) // 2, 0)
        number(target // 2, 0)
        number(depth << 1 | lasti, 0)
    return bytes(table)


def load_of_none(code: CodeType) -> tuple[str, int] | None:
    """Return the load of None that each return of a code object stands behind; None if it may return something else.

    Args:
        code: may have no return at all; then it is the load that the compiler would choose.
    """
    raw, consts = code.co_code, code.co_consts
    none = next((index for index, constant in enumerate(consts) if constant is None), len(consts))
    common = _COMMON_CONSTANTS.index(None) if None in _COMMON_CONSTANTS else -1
    load = ("LOAD_CONST", none) if common < 0 else ("LOAD_COMMON_CONSTANT", common)
    expected = opcode.opmap[load[0]], load[1]
    # Caches are empty in `co_code`.
    returns = [offset for offset in range(0, len(raw), 2) if raw[offset] == _RETURN_VALUE]
    return load if all((raw[offset - 2], raw[offset - 1]) == expected for offset in returns) else None


def slot_names(code: CodeType) -> tuple[str, ...]:
    """The names of a frame's slots: locals, cells that are no locals, free variables (`co_localsplusnames`)."""
    cells = tuple(name for name in code.co_cellvars if name not in code.co_varnames)
    return code.co_varnames + cells + code.co_freevars


def cells_at_start(code: CodeType) -> tuple[str, ...]:
    """The cells that exist from the first statement on, in the order of their slots; the free ones come last.

    A cell variable of an inlined comprehension (3.12+) gets its cell only there, and its slot is empty elsewhere.
    """
    names = slot_names(code)
    return tuple(names[slot] for slot in cell_slots(code))


def cell_slots(code: CodeType) -> tuple[int, ...]:
    """The slots of these cells. An inlined comprehension's variable may have the name of a free one, and another slot."""
    size = len(slot_names(code))
    made: set[int] = set()
    raw = code.co_code
    offset = extended = 0
    while offset < len(raw) and raw[offset] != _RESUME:
        number, arg = raw[offset], raw[offset + 1] | extended
        extended = arg << 8 if number == EXTENDED_ARG else 0
        if number == _MAKE_CELL:
            made.add(arg)
        offset += 2 + 2 * CACHES[number]
    return *sorted(made), *range(size - len(code.co_freevars), size)
