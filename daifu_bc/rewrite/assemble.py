"""Assembles cold code behind (or in front of) a pristine body.

The body's bytes are never touched here: what is emitted goes before or after it. Encoding of the exception table:
CPython's Objects/exception_handling_notes.txt; of the line table: Objects/locations.md (`InternalDocs/code_objects.md`).
"""

from __future__ import annotations

import itertools
import opcode
from types import CodeType
from typing import Final

from daifu_bc import pyversion
from daifu_bc.analysis.code import CACHES, EXTENDED_ARG, ExceptionEntry

_OP: Final = opcode.opmap


class Label:
    """A place in the emitted code; `offset` is known once the code has been finished."""

    __slots__ = ("index", "offset")

    def __init__(self) -> None:
        self.index = -1
        self.offset = -1


class InBody(int):
    """An offset in the body that directly follows the emitted code, as the target of a jump."""


class Assembler:
    """Collects instructions for one code object, with its constants and names.

    Args:
        code: the code object that the instructions will be part of.
    """

    def __init__(self, code: CodeType) -> None:
        self.consts: list[object] = list(code.co_consts)
        self.names: list[str] = list(code.co_names)
        self._items: list[tuple[int, int | Label]] = []
        self._offsets: list[int] = []
        self._lines: list[tuple[int, int]] = []  # index of the first instruction -> line
        self._regions: list[tuple[Label, Label, Label | int, int, bool]] = []
        self.deepest = 0

    # -- emitting ----------------------------------------------------------------------------------------------

    def emit(self, name: str, arg: int | Label = 0) -> None:
        """Appends one instruction; `arg` is a label for a jump."""
        self._items.append((_OP[name], arg))

    def constant(self, value: object) -> None:
        """Loads a constant."""
        if pyversion.SMALL_INTS and type(value) is int and 0 <= value < 256:
            self.emit("LOAD_SMALL_INT", value)
        else:
            self.emit("LOAD_CONST", self.constant_index(value))

    def constant_index(self, value: object) -> int:
        """Where `value` stands among the constants; it is added if need be."""
        for index, known in enumerate(self.consts):
            if known is value:
                return index
        self.consts.append(value)
        return len(self.consts) - 1

    def name_index(self, name: str) -> int:
        """Where `name` stands among the names; it is added if need be."""
        try:
            return self.names.index(name)
        except ValueError:
            self.names.append(name)
            return len(self.names) - 1

    def label(self) -> Label:
        """A label for the present place."""
        label = Label()
        self.place(label)
        return label

    def place(self, label: Label) -> None:
        """Puts `label` at the present place."""
        label.index = len(self._items)

    def line(self, line: int) -> None:
        """The following instructions stand for this line of the source."""
        self._lines.append((len(self._items), line))

    def protect(
        self, start: Label, end: Label, target: Label | int, depth: int, *, lasti: bool = False
    ) -> None:
        """An exception between the labels goes to `target` (a label, or an offset in the body)."""
        self._regions.append((start, end, target, depth, lasti))

    def call(self, arguments: int) -> None:
        """Calls what lies below the arguments; see `runtime` for the order of the slots."""
        if pyversion.HAS_PRECALL:
            self.emit("PRECALL", arguments)
        self.emit("CALL", arguments)

    def runtime(self, function: str, argument: int) -> Label:
        """Calls `daifu_bc.<function>(module, item)` with the stack's item at depth `argument`; pushes the result.

        The module takes the slot of `self`, so that no NULL is needed, the same on every version.

        Returns:
            Where the function has been found and the call begins.
        """
        self.constant(0)
        self.constant(None)
        self.emit("IMPORT_NAME", pyversion.import_argument(self.name_index("daifu_bc")))
        self.emit("IMPORT_FROM", self.name_index(function))
        found = self.label()
        self.emit("SWAP", 2)
        self.emit("COPY", argument + 2)
        self.call(1)
        return found

    def call_top(self) -> None:
        """Calls the callable on top of the stack with no argument."""
        self.emit("PUSH_NULL")
        if pyversion.NULL_BEFORE_CALLABLE:
            self.emit("SWAP", 2)
        self.call(0)

    # -- finishing ---------------------------------------------------------------------------------------------

    def finish(self, base: int, shift: int = 0) -> tuple[bytes, list[ExceptionEntry]]:
        """The code's bytes when it starts at offset `base`, and its exception table (unsorted).

        Args:
            base: offset of the first instruction.
            shift: what has to be added to targets that are offsets in the body.
        """
        items = self._items
        sizes = [2 + 2 * CACHES[number] for number, _ in items]
        offsets: list[int] = []
        while True:
            offsets = [base]
            for size in sizes:
                offsets.append(offsets[-1] + size)
            grown = False
            for place, (number, arg) in enumerate(items):
                value = self._argument(arg, offsets, place)
                need = 2 + 2 * CACHES[number] + 2 * _extensions(value)
                if need > sizes[place]:
                    sizes[place] = need
                    grown = True
            if not grown:
                break
        raw = bytearray()
        for place, (number, arg) in enumerate(items):
            value = self._argument(arg, offsets, place)
            extensions = (sizes[place] - 2 - 2 * CACHES[number]) // 2
            for level in range(extensions, 0, -1):
                raw += bytes((EXTENDED_ARG, value >> 8 * level & 255))
            raw += bytes((number, value & 255))
            raw += bytes(2 * CACHES[number])
        self._offsets = offsets
        # Of two regions that overlap the inner one, which was told of first, wins.
        owner: list[ExceptionEntry | None] = [None] * len(items)
        for start, end, target, depth, lasti in self._regions:
            where = offsets[target.index] if isinstance(target, Label) else target + shift
            entry = ExceptionEntry(0, 0, where, depth, lasti)
            for place in range(start.index, end.index):
                if owner[place] is None:
                    owner[place] = entry
        entries: list[ExceptionEntry] = []
        previous: ExceptionEntry | None = None
        for place, owning in enumerate(owner):
            if owning is not None:
                if owning is previous:
                    entries[-1] = entries[-1]._replace(end=offsets[place + 1])
                else:
                    entries.append(owning._replace(start=offsets[place], end=offsets[place + 1]))
            previous = owning
        return bytes(raw), entries

    def offset(self, label: Label) -> int:
        """Where a label has come to lie; after `finish`."""
        return self._offsets[label.index]

    def line_entries(self, previous: int) -> tuple[bytes, int]:
        """The line table of the emitted code, when the entries before it end at line `previous`; and its last line."""
        table = bytearray()
        marks = [*self._lines, (len(self._items), 0)]
        for (first, line), (last, _) in itertools.pairwise(marks):
            units = (self._offsets[last] - self._offsets[first]) // 2
            while units > 0:
                count = min(units, 8)
                table.append(0x80 | 13 << 3 | count - 1)
                delta = line - previous
                value = -delta << 1 | 1 if delta < 0 else delta << 1
                while value > 63:
                    table.append(64 | value & 63)
                    value >>= 6
                table.append(value)
                previous = line
                units -= count
        return bytes(table), previous

    def _argument(self, arg: int | Label, offsets: list[int], place: int) -> int:
        if isinstance(arg, InBody):
            return (offsets[-1] + arg - offsets[place + 1]) // 2
        if not isinstance(arg, Label):
            return arg
        return abs(offsets[arg.index] - offsets[place + 1]) // 2


def _extensions(value: int) -> int:
    count = 0
    while value := value >> 8:
        count += 1
    return count


def last_line(code: CodeType) -> int:
    """The line that the line table of `code` has reached at its end; new entries are relative to it."""
    line = code.co_firstlineno
    table = code.co_linetable
    position, size = 0, len(table)
    while position < size:
        kind = table[position] >> 3 & 15
        position += 1
        if 10 <= kind <= 12:
            line += kind - 10
        elif kind in (13, 14):
            value = table[position] & 63
            width = 0
            while table[position] & 64:
                position += 1
                width += 6
                value |= (table[position] & 63) << width
            line += -(value >> 1) if value & 1 else value >> 1
        while position < size and not table[position] & 0x80:
            position += 1
    return line
