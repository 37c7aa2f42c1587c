"""What lies on the value stack before each instruction: abstract interpretation over the bytecode.

The stack of an instruction is a tuple of items, bottom first; an item is (kind, origin), where origin is the offset
of the instruction that made it, or of the handler that it was pushed for. Follows `mark_stacks` of CPython's
Objects/frameobject.c, which knows fewer kinds.
"""

from __future__ import annotations

from types import CodeType
from typing import Final

from daifu_bc import pyversion
from daifu_bc.analysis.code import ExceptionEntry, decode, entry_at, exception_entries
from daifu_bc.analysis.effect import ENDS, RETURNS, inputs, op_set, step
from daifu_bc.analysis.items import (
    EXCEPTION,
    EXIT,
    EXIT_SELF,
    GROUP,
    INDEX,
    ITERATOR,
    LASTI,
    NEVER_ALONE,
    SAVED,
    SECOND,
    TEMPORARY,
    VALUE,
    Item,
    Stack,
)
from daifu_bc.errors import CannotVaccinate

__all__ = [
    "EXCEPTION", "EXIT", "EXIT_SELF", "GROUP", "INDEX", "ITERATOR", "LASTI", "RETURNS", "SAVED", "TEMPORARY", "VALUE",
    "Flow", "Item", "Stack", "op_set",
]  # fmt: skip

_LOADS: Final = op_set("LOAD_FAST", "LOAD_FAST_BORROW")


class Flow:
    """The stacks of one code object.

    Attributes:
        code: the code object.
        instructions: its instructions.
        index: offset of an instruction (of its opcode) -> its place in `instructions`.
        entries: its exception table.
        stacks: for each instruction the stack before it, or None where it cannot be reached.

    Raises:
        CannotVaccinate: the stack depths do not agree, as in hand-written bytecode.
    """

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.instructions = decode(code)
        self.index = {instruction.offset: place for place, instruction in enumerate(self.instructions)}
        # A jump leads to the first EXTENDED_ARG of its target.
        self.index.update({instruction.start: place for place, instruction in enumerate(self.instructions)})
        self.entries = exception_entries(code.co_exceptiontable)
        self.stacks: list[Stack | None] = [None] * len(self.instructions)
        self._same: dict[int, int] = {}  # union-find over the origins of merged items
        self._returned: set[int] = set()
        # A comprehension is given an iterator; from 3.15 an iterable, for which it calls GET_ITER itself.
        self._given = code.co_varnames[:1] == (".0",) and not pyversion.ITERATOR_IS_A_PAIR
        self._run()
        self._returned = {self._find(origin) for origin in self._returned}
        self._prefixes: list[int | None] = [None] * len(self.instructions)

    # -- what others ask ---------------------------------------------------------------------------------------

    def place_at(self, offset: int) -> int:
        """The place of the instruction that an offset lies in; what frames tell may point into its caches."""
        while (place := self.index.get(offset)) is None and offset > 0:
            offset -= 2
        place = place or 0
        # 3.11 runs the C function of a specialised call in the PRECALL before it.
        if pyversion.HAS_PRECALL and self.instructions[place].name == "PRECALL":
            place += 1
        return place

    def kind(self, item: Item) -> str:
        """The kind of an item, return values that are parked under a `finally` or an exit included."""
        if item[0] == TEMPORARY and self._returned and self._find(item[1]) in self._returned:
            return VALUE
        return item[0]

    def structural(self, place: int) -> int:
        """How many items at the bottom of the stack before the instruction at `place` belong to blocks."""
        known = self._prefixes[place]
        if known is not None:
            return known
        stack = self.stacks[place] or ()
        depth = size = 0
        while size < len(stack):
            kind, origin = stack[size]
            if kind == TEMPORARY and not (self._returned and self._find(origin) in self._returned):
                break
            second = SECOND.get(kind)
            if second is not None and self._is_pair(kind, origin):
                size += 1
                if size == len(stack) or stack[size] != (second, origin):
                    break
            elif kind in NEVER_ALONE:
                break
            size += 1
            depth = size
        self._prefixes[place] = depth
        return depth

    def _is_pair(self, kind: str, origin: int) -> bool:
        return kind == EXIT or self.instructions[self.index[origin]].name == "GET_ITER"

    def is_restart_point(self, place: int) -> bool:
        """Whether the whole state before the instruction at `place` is locals, cells and structural items."""
        stack = self.stacks[place]
        return stack is not None and self.structural(place) == len(stack)

    def kinds(self, place: int) -> list[str]:
        """The kinds of the structural items before the instruction at `place`, bottom first."""
        stack = self.stacks[place] or ()
        return [self.kind(item) for item in stack[: self.structural(place)]]

    def held_depth(self, place: int) -> int:
        """How many structural items are still on the stack when the instruction at `place` has raised.

        An instruction may pop its inputs before it raises, so these do not count.
        """
        depth = self.structural(place)
        stack = self.stacks[place]
        if stack is None or not depth:
            return 0
        left = len(stack) - inputs(self.instructions[place])
        return self._whole(stack, depth, left) if left < depth else depth

    def _whole(self, stack: Stack, depth: int, left: int) -> int:
        """The largest number of items, at most `left`, that does not split a pair."""
        while (
            left and left < depth and stack[left][0] in NEVER_ALONE and stack[left][1] == stack[left - 1][1]
        ):
            left -= 1
        return left

    def entry(self, place: int) -> ExceptionEntry | None:
        """The exception table's entry that covers the instruction at `place`."""
        return entry_at(self.entries, self.instructions[place].offset)

    def successors(self, place: int) -> list[int]:
        """Places that normally follow the instruction at `place`; no exception edges."""
        instruction = self.instructions[place]
        result = (
            [] if instruction.opcode in ENDS else [place + 1] if place + 1 < len(self.instructions) else []
        )
        if instruction.target is not None:
            result.append(self.index[instruction.target])
        return result

    # -- the interpretation ------------------------------------------------------------------------------------

    def _find(self, origin: int) -> int:
        same = self._same
        while (parent := same.get(origin)) is not None:
            origin = parent
        return origin

    def _merge(self, place: int, stack: Stack) -> bool:
        """Joins `stack` into what is known at `place`; whether that changed."""
        old = self.stacks[place]
        if old is None:
            self.stacks[place] = stack
            return True
        if old == stack:
            return False
        if len(old) != len(stack):
            raise CannotVaccinate(
                f"two ways to offset {self.instructions[place].offset} have {len(old)} and {len(stack)} items on the stack",
                place=f"{self.code.co_filename}, in {self.code.co_name}",
            )
        changed = False
        merged: list[Item] = []
        for mine, other in zip(old, stack, strict=False):
            if mine == other:
                merged.append(mine)
                continue
            a, b = self._find(mine[1]), self._find(other[1])
            if a != b:
                self._same[max(a, b)] = min(a, b)
            item = (mine[0] if mine[0] == other[0] else TEMPORARY, min(mine[1], other[1]))
            changed = changed or item != mine
            merged.append(item)
        if changed:
            self.stacks[place] = tuple(merged)
        return changed

    def _run(self) -> None:
        if not self.instructions:
            return
        self.stacks[0] = ()
        work = [0]
        seen: set[tuple[int, Stack]] = set()
        while work:
            following: int | None = work.pop()
            while following is not None:
                place = following
                stack = self.stacks[place]
                assert stack is not None
                if self.entries:
                    self._reach_handler(place, stack, seen, work)
                try:
                    following = self._pass(place, stack, work)
                except IndexError:
                    instruction = self.instructions[place]
                    raise CannotVaccinate(
                        f"the stack is too short for {instruction.name} at offset {instruction.offset}",
                        place=f"{self.code.co_filename}, in {self.code.co_name}",
                    ) from None

    def _reach_handler(self, place: int, stack: Stack, seen: set[tuple[int, Stack]], work: list[int]) -> None:
        """Tells the handler of an instruction what an exception leaves on the stack."""
        entry = self.entry(place)
        # An entry may cover instructions behind its block that cannot raise (3.15, generator expressions).
        if entry is None or len(stack) < entry.depth:
            return
        below = stack[: entry.depth]
        if (entry.target, below) in seen:
            return
        seen.add((entry.target, below))
        pushed = (*below, (LASTI, entry.target)) if entry.lasti else below
        target = self.index[entry.target]
        if self._merge(target, (*pushed, (EXCEPTION, entry.target))):
            work.append(target)

    def _pass(self, place: int, stack: Stack, work: list[int]) -> int | None:
        """Interprets one instruction; where to go on, or None if there is nothing new."""
        instruction = self.instructions[place]
        number = instruction.opcode
        if instruction.target is not None:
            target = self.index[instruction.target]
            if self._merge(target, step(instruction, stack, jump=True)):
                work.append(target)
        if number in ENDS:
            if number in RETURNS:
                self._returned.add(stack[-1][1])
            return None
        if number in _LOADS and instruction.arg == 0 and self._given:
            after = (*stack, (ITERATOR, instruction.offset))
        else:
            after = step(instruction, stack, jump=False)
        following = place + 1
        return following if following < len(self.instructions) and self._merge(following, after) else None
