"""Decodes a code object for the verifier and checks what can be seen without following its paths."""

from __future__ import annotations

import inspect
import opcode
from collections.abc import Mapping
from types import CodeType
from typing import Any, Final, NoReturn

from daifu_bc import pyversion
from daifu_bc.errors import VerificationError
from daifu_bc.rewrite.effects import BACKWARD, CELLS, CONSTS, LOCALS, NAMES, TRUSTING, Effect, effect_of
from daifu_bc.rewrite.kinds import no_cell

GENERATOR_FLAGS: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_REMEDY: Final = (
    "It stays as it was, and the program is not affected; this is a fault of daifu_bc, please report it."
)
_EXTENDED_ARG: Final = opcode.EXTENDED_ARG
_IMPORT_NAME: Final = opcode.opmap["IMPORT_NAME"]
_IMPORT_FROM: Final = opcode.opmap["IMPORT_FROM"]
_LOAD_FAST: Final = opcode.opmap["LOAD_FAST"]
_STORES: Final = {
    opcode.opmap[name] for name in ("STORE_FAST", "STORE_FAST_STORE_FAST") if name in opcode.opmap
}
_RUNTIME: Final = "daifu_bc"
#: Functions of it, of whose results something is known.
_FUNCTIONS: Final = {"_intercept": "r", "_take": "t"}
#: Set of the annotations that a module or class has come by (PEP 649).
_CONDITIONAL: Final = "__conditional_annotations__"
#: What FOR_ITER and SEND rely on at their targets: they skip it, or a debugger does.
_LANDINGS: Final = {
    "FOR_ITER": {11: (), 12: ("END_FOR",), 13: ("END_FOR", "POP_TOP")}.get(
        pyversion.VERSION[1], ("END_FOR", "POP_ITER")
    ),
    "SEND": ("END_SEND",) if pyversion.VERSION >= (3, 12) else (),
}
_WITH_NEIGHBOURS: Final = frozenset(
    {"COPY_FREE_VARS", "PRECALL", "KW_NAMES", "RETURN_GENERATOR", "YIELD_VALUE"}
)


def _cache_units() -> list[int]:
    known: Any = getattr(opcode, "_inline_cache_entries")  # noqa: B009
    if isinstance(known, Mapping):
        return [known.get(name, 0) for name in opcode.opname[:256]]
    return [int(count) for count in known[:256]]


_UNITS: Final = [1 + count for count in _cache_units()]


def starts_in(raw: bytes) -> set[int]:
    """The offsets at which instructions start, or their first EXTENDED_ARGs."""
    starts: set[int] = set()
    offset = 0
    extended = False
    while offset < len(raw):
        if not extended:
            starts.add(offset)
        extended = raw[offset] == _EXTENDED_ARG
        offset += 2 * _UNITS[raw[offset]]
    return starts


class Covering:
    """One entry of an exception table.

    Attributes:
        start: offset of the first instruction that it covers.
        end: offset behind the last one.
        target: place of the handler.
        depth: how many slots the handler finds below what is pushed for it.
        lasti: whether a lasti is pushed.
        ours: whether the handler is none of the body's; no leniency towards the compiler then.
        seen: the last state that went this way; most instructions bring the same.
    """

    __slots__ = ("depth", "end", "lasti", "ours", "pushed", "seen", "start", "target")

    def __init__(self, start: int, end: int, target: int, depth: int, *, lasti: bool, ours: bool) -> None:
        self.start = start
        self.end = end
        self.target = target
        self.depth = depth
        self.lasti = lasti
        self.ours = ours
        self.pushed = "le" if lasti else "e"
        self.seen: tuple[str, int] | None = None


class Listing:
    """The instructions and the exception table of a code object.

    Args:
        code: the code object.
        body: first and last offset (exclusive) of the part in which `import daifu_bc` is the user's own.

    Attributes:
        code: the code object.
        body: as given.
        starts: offset of each instruction, of its first EXTENDED_ARG if it has any.
        ends: offset behind each instruction and its caches.
        effects: what each one does.
        targets: the place that each one may jump to, or -1.
        place_at: start of an instruction -> its place.
        entries: the exception table.
        covering: for each instruction the entry that covers it, or None.
        slots: how many slots the frame has for locals, cells and free variables.
        cells: those of them that are for cells.

    Raises:
        VerificationError: something in it points nowhere.
    """

    def __init__(self, code: CodeType, body: tuple[int, int]) -> None:
        self.code = code
        self.body = body
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.effects: list[Effect] = []
        self.targets: list[int] = []
        variables = code.co_varnames
        own = [name for name in code.co_cellvars if name not in variables]
        self.slots = len(variables) + len(own) + len(code.co_freevars)
        self.cells = frozenset(range(len(variables), self.slots)).union(
            variables.index(name) for name in code.co_cellvars if name in variables
        )
        jumps = self._decode(body)
        self.place_at = {start: place for place, start in enumerate(self.starts)}
        self._aim(jumps)
        self.entries: list[Covering] = []
        self.covering: list[Covering | None] = [None] * len(self.starts)
        self._read_table()

    def refuse(self, what: str, place: int, why: str = "") -> NoReturn:
        """Refuses the code object for something at one instruction."""
        where = ""
        if 0 <= place < len(self.effects):
            effect = self.effects[place]
            where = f", offset {self.starts[place]} ({effect.name} {effect.arg})"
        self.refuse_all(what, why, where)

    def refuse_all(self, what: str, why: str = "", where: str = "") -> NoReturn:
        """Refuses the code object as a whole."""
        code = self.code
        raise VerificationError(
            what, place=f"{code.co_filename}, in {code.co_qualname}{where}", why=why, remedy=_REMEDY
        )

    def _decode(self, body: tuple[int, int]) -> list[tuple[int, int]]:
        """Fills the lists; (place, target's offset) of each jump."""
        code = self.code
        raw = code.co_code
        size = len(raw)
        limits = (1 << 32, len(code.co_consts), len(code.co_names), self.slots, self.slots)
        starts, ends, effects, targets = self.starts, self.ends, self.effects, self.targets
        units = _UNITS
        jumps: list[tuple[int, int]] = []
        known: dict[int, Effect] = {}
        offset = start = extended = 0
        special = self._special_loads()
        first, last = body
        while offset < size:
            number = raw[offset]
            if number == _EXTENDED_ARG:
                extended = (extended | raw[offset + 1]) << 8
                offset += 2
                if offset < size:
                    continue
                self.refuse_all("the code ends in an EXTENDED_ARG")
            arg = extended | raw[offset + 1]
            end = offset + 2 * units[number]
            effect = known.get(arg << 8 | number)
            if effect is None:
                effect = self._effect(number, arg, start)
                if effect.space:
                    self._check_index(effect, limits, len(starts))
                known[arg << 8 | number] = effect
            if not first <= start < last:
                effect = self._outside(number, effect)
            elif special and effect.space and (kind := special.get((effect.name, effect.index))):
                effect = Effect(number, arg, kind)
            if effect.target:
                jumps.append((len(starts), end + 2 * arg * (-1 if number in BACKWARD else 1)))
            starts.append(start)
            ends.append(end)
            effects.append(effect)
            targets.append(-1)
            offset = start = end
            extended = 0
        if offset != size or not starts:
            self.refuse_all("the code ends within an instruction")
        if not effects[-1].ends:
            self.refuse("the code runs off its end", len(starts) - 1)
        return jumps

    def _special_loads(self) -> dict[tuple[str, int], str]:
        """(name, index) of loads of which more is known -> the kind of what they load."""
        code = self.code
        special: dict[tuple[str, int], str] = {}
        if code.co_varnames[:1] == (".0",):  # the iterator that a comprehension is called with
            special.update({(name, 0): "i" for name in ("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK")})
        if pyversion.VERSION >= (3, 14):
            for index, constant in enumerate(code.co_consts):
                if type(constant) is CodeType and constant.co_flags & inspect.CO_GENERATOR:
                    special["LOAD_CONST", index] = "g"
            if _CONDITIONAL in code.co_names:
                special["LOAD_NAME", code.co_names.index(_CONDITIONAL)] = "S"
            if _CONDITIONAL in code.co_cellvars:
                special["LOAD_DEREF", len(code.co_varnames) + code.co_cellvars.index(_CONDITIONAL)] = "S"
        return special

    def _outside(self, number: int, effect: Effect) -> Effect:
        """The effect of an instruction in front of the body or behind it: more is asked of it, and more known."""
        if number == _IMPORT_NAME:
            if self.code.co_names[effect.index] == _RUNTIME:
                return Effect(number, effect.arg, "d")
        elif number == _IMPORT_FROM:
            return Effect(number, effect.arg, "o" + _FUNCTIONS.get(self.code.co_names[effect.index], "o"))
        elif effect.name in TRUSTING:
            self.refuse_all(f"{effect.name} is not for use outside of the body")
        elif number == _LOAD_FAST and effect.index in self.cells:
            effect = Effect(number, effect.arg)  # it is handed on as a cell
            effect.need |= no_cell(effect.index)
            effect.touches = True
        elif number in _STORES:
            effect = Effect(number, effect.arg)
            effect.releases = True
        return effect

    def _effect(self, number: int, arg: int, start: int) -> Effect:
        try:
            return effect_of(number, arg)
        except ValueError as error:
            self.refuse_all("an instruction is none", str(error), f", offset {start}")

    def _check_index(self, effect: Effect, limits: tuple[int, ...], place: int) -> None:
        self.effects.append(effect)  # for the message
        self.starts.append(self.ends[-1] if self.ends else 0)
        if effect.index >= limits[effect.space]:
            kind = {CONSTS: "constants", NAMES: "names", LOCALS: "local variables", CELLS: "variables"}[
                effect.space
            ]
            self.refuse(f"{effect.index} is beyond the {kind}", place, f"there are {limits[effect.space]}")
        if effect.space == CELLS and effect.index not in self.cells:
            self.refuse("the variable is no cell", place)
        self.effects.pop()
        self.starts.pop()

    def _aim(self, jumps: list[tuple[int, int]]) -> None:
        effects, place_at = self.effects, self.place_at
        for place, offset in jumps:
            target = place_at.get(offset)
            if target is None:
                self.refuse(f"it jumps to offset {offset}, where no instruction starts", place)
            self.targets[place] = target
            landing = _LANDINGS.get(effects[place].name)
            if (
                landing
                and tuple(effect.name for effect in effects[target : target + len(landing)]) != landing
            ):
                self.refuse(f"it has to lead to {' and '.join(landing)}", place)
        for place, effect in enumerate(effects):
            if effect.name in _WITH_NEIGHBOURS:
                self._check_neighbours(place, effect)

    def _check_neighbours(self, place: int, effect: Effect) -> None:
        """What an instruction takes for granted of the code object, or of the one behind it."""
        following = self.effects[place + 1]  # the last one ends a path, and is none of these
        if effect.name == "COPY_FREE_VARS":
            count = len(self.code.co_freevars)
            if effect.arg != count:
                self.refuse(f"there are {count} free variables", place)
        elif effect.name == "PRECALL":
            if (following.name, following.arg) != ("CALL", effect.arg):
                self.refuse("no CALL of as many arguments follows it", place)
        elif effect.name == "KW_NAMES":
            names = self.code.co_consts[effect.arg]
            if (
                following.name not in ("PRECALL", "CALL")
                or type(names) is not tuple
                or len(names) > following.arg
            ):
                self.refuse("no call with as many keyword arguments follows it", place)
        elif not self.code.co_flags & GENERATOR_FLAGS:
            self.refuse("it is in no generator", place, "the flags do not say so")
        elif effect.name == "YIELD_VALUE" and following.name != "RESUME":
            self.refuse("no RESUME follows it", place)

    def _read_table(self) -> None:
        table = self.code.co_exceptiontable
        position, size = 0, len(table)
        values = [0, 0, 0, 0]
        reached = 0
        starts, place_at, covering = self.starts, self.place_at, self.covering
        end_of_code = self.ends[-1]
        while position < size:
            for field in range(4):
                byte = table[position] if position < size else 128
                if bool(byte & 128) is not (field == 0):
                    self.refuse_all("the exception table cannot be read", f"byte {position} is out of order")
                value = byte & 63
                while byte & 64:
                    position += 1
                    byte = table[position] if position < size else 128
                    if byte & 128:
                        self.refuse_all(
                            "the exception table cannot be read", f"byte {position} is out of order"
                        )
                    value = value << 6 | byte & 63
                position += 1
                values[field] = value
            start, end, target = values[0] * 2, (values[0] + values[1]) * 2, values[2] * 2
            first, last, handler = place_at.get(start), place_at.get(end), place_at.get(target)
            where = f", exception table's entry for {start} to {end}"
            if last is None and end == end_of_code:
                last = len(starts)
            if first is None or last is None or end <= start:
                self.refuse_all("the range covers no whole instructions", where=where)
            if start < reached:
                self.refuse_all("the entry is out of order, or overlaps with the one before", where=where)
            if handler is None:
                self.refuse_all(f"no instruction starts at its handler's offset {target}", where=where)
            reached = end
            ours = not self.body[0] <= target < self.body[1]
            entry = Covering(start, end, handler, values[3] >> 1, lasti=bool(values[3] & 1), ours=ours)
            self.entries.append(entry)
            covering[first:last] = [entry] * (last - first)
