"""What lies on the value stack before each instruction: abstract interpretation over the bytecode.

The stack of an instruction is a tuple of items, bottom first; an item is (kind, origin), where origin is the offset
of the instruction that made it, or of the handler that it was pushed for. Follows `mark_stacks` of CPython's
Objects/frameobject.c, which knows fewer kinds.
"""

from __future__ import annotations

import dis
import opcode
from types import CodeType
from typing import Final

from daifu_bc import pyversion
from daifu_bc.analysis.code import ExceptionEntry, Instruction, decode, entry_at, exception_entries
from daifu_bc.errors import CannotVaccinate

# What enclosing blocks keep between two statements ...
ITERATOR: Final = "iterator"  # of a `for`, `async for`
INDEX: Final = "index"  # the second slot of a `for` (3.15+): NULL or a tagged index
EXIT: Final = "exit"  # of a `with`: the bound __exit__, or from 3.14 the function
EXIT_SELF: Final = "exit self"  # its second slot (3.14+), may be NULL
SAVED: Final = "saved exception"  # what was being handled outside, in an `except` or `finally` body
EXCEPTION: Final = "exception"
LASTI: Final = "lasti"
GROUP: Final = "list of exceptions"  # of an `except*`
VALUE: Final = "value"  # parked: a return value over a `finally`, a loop's next element, what __enter__ gave
# ... and everything else.
TEMPORARY: Final = "temporary"

#: Kinds that take two slots, with the kind of the second one.
_SECOND: Final = ({EXIT: EXIT_SELF} if pyversion.EXIT_IS_A_PAIR else {}) | (
    {ITERATOR: INDEX} if pyversion.ITERATOR_IS_A_PAIR else {}
)
# The second slots; and a saved lasti, which only the interpreter's own clean-up code finds below it.
_NEVER_ALONE: Final = frozenset({EXIT_SELF, INDEX, LASTI})

Item = tuple[str, int]
Stack = tuple[Item, ...]


def op_set(*names: str) -> frozenset[int]:
    """Opcode numbers of the names that this CPython has; at least one exists."""
    numbers = frozenset(opcode.opmap[name] for name in names if name in opcode.opmap)
    if not numbers:
        raise AssertionError(f"none of these opcodes exists: {names}")
    return numbers


def _starting(*prefixes: str) -> frozenset[int]:
    return frozenset(
        number for name, number in opcode.opmap.items() if name.startswith(prefixes) and number < 256
    )


#: Instructions after which the next one does not run.
ENDS: Final = op_set(
    "RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "INTERPRETER_EXIT"
) | (_starting("JUMP_BACKWARD"))
RETURNS: Final = op_set("RETURN_VALUE")
_SILENT: Final = (  # leave no new item on the stack, whatever they take
    _starting("STORE_", "DELETE_", "POP_", "JUMP_", "RETURN_")
    - op_set("STORE_FAST_LOAD_FAST", "RETURN_GENERATOR", "STORE_FAST")
    | op_set("STORE_FAST", "RAISE_VARARGS", "RERAISE", "LIST_APPEND", "SET_ADD", "MAP_ADD", "LIST_EXTEND")
    | op_set(
        "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE", "IMPORT_STAR", "PRINT_EXPR", "END_FOR", "END_ASYNC_FOR"
    )
    | op_set(
        "NOP", "RESUME", "MAKE_CELL", "COPY_FREE_VARS", "CACHE", "NOT_TAKEN", "SETUP_ANNOTATIONS", "KW_NAMES"
    )
    | op_set("PRECALL", "TRACE_RECORD", "INTERPRETER_EXIT", "EXTENDED_ARG")
)
_MANY: Final = {  # results, where they are not one
    number: count
    for name, count in {
        "UNPACK_SEQUENCE": -1,
        "UNPACK_EX": -2,
        "CHECK_EG_MATCH": 2,
        "MATCH_KEYS": 3 if pyversion.VERSION < (3, 12) else 2,
        "CLEANUP_THROW": 3 if pyversion.VERSION >= (3, 15) else 2,
        "SEND": 2,
        "LOAD_METHOD": 2,
    }.items()
    if (number := opcode.opmap.get(name)) is not None
}
#: Look at what lies on the stack and leave it there when they raise.
_KEEPS_INPUTS: Final = op_set("FOR_ITER", "GET_ANEXT", "WITH_EXCEPT_START", "COPY", "SWAP", "NOP", "RESUME")
#: Take nothing from the stack.
_NO_INPUTS: Final = (
    _starting(
        "LOAD_FAST",
        "LOAD_CONST",
        "LOAD_GLOBAL",
        "LOAD_NAME",
        "LOAD_DEREF",
        "LOAD_CLOSURE",
        "LOAD_SMALL",
        "LOAD_COMMON",
    )
    | _starting(
        "JUMP_", "DELETE_FAST", "DELETE_GLOBAL", "DELETE_NAME", "DELETE_DEREF", "MAKE_CELL", "COPY_FREE"
    )
    | op_set(
        "LOAD_BUILD_CLASS",
        "LOAD_ASSERTION_ERROR",
        "LOAD_COMMON_CONSTANT",
        "PUSH_NULL",
        "LOAD_LOCALS",
        "LOAD_CLASSDEREF",
    )
    | op_set("NOT_TAKEN", "SETUP_ANNOTATIONS", "NOP")
) - op_set("JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP", "NOP")
OP: Final = opcode.opmap
_NONE: Final = -1
_GET_ITER, _FOR_ITER, _SWAP, _COPY = OP["GET_ITER"], OP["FOR_ITER"], OP["SWAP"], OP["COPY"]
_PUSH_EXC_INFO, _POP_EXCEPT, _GET_AITER = OP["PUSH_EXC_INFO"], OP["POP_EXCEPT"], OP["GET_AITER"]
_BEFORE_WITH, _BEFORE_ASYNC_WITH = OP.get("BEFORE_WITH", _NONE), OP.get("BEFORE_ASYNC_WITH", _NONE)
_LOAD_SPECIAL, _CALL, _SEND, _END_SEND = (
    OP.get("LOAD_SPECIAL", _NONE),
    OP["CALL"],
    OP["SEND"],
    OP.get("END_SEND", _NONE),
)
_BUILD_LIST, _CHECK_EG, _RETURN_GENERATOR = OP["BUILD_LIST"], OP["CHECK_EG_MATCH"], OP["RETURN_GENERATOR"]
_RETURN_VALUE = OP["RETURN_VALUE"]
#: From 3.15 a comprehension gets an iterable, and calls GET_ITER itself.
_LOADS_ITERATOR: Final = (
    op_set("LOAD_FAST", "LOAD_FAST_BORROW") if not pyversion.ITERATOR_IS_A_PAIR else frozenset[int]()
)
# Arguments of LOAD_SPECIAL (Include/internal/pycore_opcode_utils.h).
_ENTER, _AENTER, _EXITS = 0, 2, (1, 3)

_HAS_ARG: Final = frozenset(getattr(dis, "hasarg", ()))
_effects: dict[tuple[int, int, bool], int] = {}


def _effect(number: int, arg: int, jump: bool) -> int:
    key = (number, arg, jump)
    try:
        return _effects[key]
    except KeyError:
        has_arg = number >= opcode.HAVE_ARGUMENT if pyversion.VERSION < (3, 13) else number in _HAS_ARG
        effect = _effects[key] = dis.stack_effect(number, arg if has_arg else None, jump=jump)
        return effect


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
        self._spent: set[int] = set()
        self._same: dict[int, int] = {}  # union-find over the origins of merged items
        self._returned: set[int] = set()
        self._run()
        self._returned = {self._find(origin) for origin in self._returned}
        self._prefixes: list[int | None] = [None] * len(self.instructions)

    # -- what others ask ---------------------------------------------------------------------------------------

    def place_at(self, offset: int) -> int:
        """The place of the instruction that an offset lies in; what frames tell may point into its caches."""
        while (place := self.index.get(offset)) is None and offset > 0:
            offset -= 2
        return place or 0

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
            second = _SECOND.get(kind)
            if second is not None and self._is_pair(kind, origin):
                size += 1
                if size == len(stack) or stack[size] != (second, origin):
                    break
            elif kind in _NEVER_ALONE:
                break
            size += 1
            depth = size
        self._prefixes[place] = depth
        return depth

    def _is_pair(self, kind: str, origin: int) -> bool:
        return kind == EXIT or self.instructions[self.index[origin]].opcode == _GET_ITER

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
        instruction = self.instructions[place]
        if instruction.opcode in _KEEPS_INPUTS:
            return depth
        left = (
            len(stack) - max(1, self._inputs(instruction))
            if instruction.opcode not in _NO_INPUTS
            else len(stack)
        )
        return self._whole(stack, depth, left) if left < depth else depth

    def _whole(self, stack: Stack, depth: int, left: int) -> int:
        """The largest number of items, at most `left`, that does not split a pair."""
        while (
            left and left < depth and stack[left][0] in _NEVER_ALONE and stack[left][1] == stack[left - 1][1]
        ):
            left -= 1
        return left

    def _inputs(self, instruction: Instruction) -> int:
        """How many items the instruction takes from the stack, at least."""
        number, arg = instruction.opcode, instruction.arg
        effect = _effect(number, arg, False)
        if number in _SILENT:
            return -effect
        if number in (_GET_ITER, _GET_AITER, _BEFORE_WITH, _BEFORE_ASYNC_WITH, _LOAD_SPECIAL):
            return 1
        results = _MANY.get(number, 1)
        if results < 0:
            return 1
        return max(0, results - effect)

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
        for mine, other in zip(old, stack):
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
        instructions, entries, index = self.instructions, self.entries, self.index
        self.stacks[0] = ()
        work = [0]
        seen: set[tuple[int, Stack]] = set()
        while work:
            place = work.pop()
            while True:
                instruction = instructions[place]
                stack = self.stacks[place]
                assert stack is not None
                if entries:
                    entry = entry_at(entries, instruction.offset)
                    # An entry may cover instructions behind its block that cannot raise (3.15, generator expressions).
                    if entry is not None and len(stack) >= entry.depth:
                        below = stack[: entry.depth]
                        key = (entry.target, below)
                        if key not in seen:
                            seen.add(key)
                            target = index[entry.target]
                            pushed: Stack = below
                            if entry.lasti:
                                pushed += ((LASTI, entry.target),)
                            if self._merge(target, (*pushed, (EXCEPTION, entry.target))):
                                work.append(target)
                number = instruction.opcode
                try:
                    if instruction.target is not None:
                        target = index[instruction.target]
                        if self._merge(target, self._step(instruction, stack, True)):
                            work.append(target)
                    if number in ENDS:
                        if number == _RETURN_VALUE:
                            self._returned.add(stack[-1][1])
                        break
                    after = self._step(instruction, stack, False)
                except IndexError:
                    raise CannotVaccinate(
                        f"the stack is too short for {instruction.name} at offset {instruction.offset}",
                        place=f"{self.code.co_filename}, in {self.code.co_name}",
                    ) from None
                place += 1
                if place >= len(instructions) or not self._merge(place, after):
                    break

    def _step(self, instruction: Instruction, stack: Stack, jump: bool) -> Stack:
        """The stack after `instruction`."""
        number, arg, origin = instruction.opcode, instruction.arg, instruction.offset
        if number == _COPY:
            return (*stack, stack[-arg])
        if number == _SWAP:
            swapped = list(stack)
            swapped[-1], swapped[-arg] = swapped[-arg], swapped[-1]
            return tuple(swapped)
        if number == _FOR_ITER:
            # At the end of the loop END_FOR is told as if an element had been pushed (3.12+).
            if jump:
                effect = _effect(number, arg, True)
                return stack[:effect] if effect < 0 else (*stack, *((TEMPORARY, origin),) * effect)
            return (*stack, (VALUE, origin))
        if number == _GET_ITER:
            if not pyversion.ITERATOR_IS_A_PAIR:
                return (*stack[:-1], (ITERATOR, origin))
            if arg:  # of a `yield from`
                return (*stack[:-1], (TEMPORARY, origin), (TEMPORARY, origin))
            return (*stack[:-1], (ITERATOR, origin), (INDEX, origin))
        if number == _GET_AITER:
            return (*stack[:-1], (ITERATOR, origin))
        if number == _PUSH_EXC_INFO:
            return (*stack[:-1], (SAVED, origin), stack[-1])
        if number == _POP_EXCEPT:
            popped = stack[-1]
            # Its copy further down, in a clean-up handler, no longer stands for anything.
            return tuple((TEMPORARY, item[1]) if item == popped else item for item in stack[:-1])
        if number == _BEFORE_WITH:
            return (*stack[:-1], (EXIT, origin), (VALUE, origin))
        if number == _BEFORE_ASYNC_WITH:
            return (*stack[:-1], (EXIT, origin), (TEMPORARY, origin))
        if number == _LOAD_SPECIAL:
            if arg in _EXITS:
                return (*stack[:-1], (EXIT, origin), (EXIT_SELF, origin))
            return (*stack[:-1], (TEMPORARY, origin), (TEMPORARY, origin))
        if number == _CALL and self._enters(stack, arg):
            return (*stack[: -2 - arg], (VALUE, origin))
        if arg == 0 and number in _LOADS_ITERATOR and self.code.co_varnames[:1] == (".0",):
            return (*stack, (ITERATOR, origin))  # what a comprehension is given
        if number == _RETURN_GENERATOR:
            return (*stack, (TEMPORARY, origin))
        if number == _CHECK_EG:
            return (*stack[:-2], (EXCEPTION, origin), (TEMPORARY, origin))
        if number == _BUILD_LIST and arg == 0 and stack and stack[-1][0] == EXCEPTION:
            return (*stack, (GROUP, origin))
        effect = _effect(number, arg, jump)
        if number in _SILENT:
            return stack[:effect] if effect else stack
        if (number == _SEND and jump and _END_SEND == _NONE) or number == _END_SEND:
            # What an `async for` or `async with` awaited is parked until its target takes it.
            below = stack[:-2]
            kind = VALUE if below and below[-1][0] in (ITERATOR, EXIT, EXIT_SELF) else TEMPORARY
            if number == _END_SEND:
                below = stack[: len(stack) + effect - 1]
                kind = VALUE if below and below[-1][0] in (ITERATOR, EXIT, EXIT_SELF) else TEMPORARY
            return (*below, (kind, origin))
        results = _MANY.get(number, 1)
        if results < 0:
            results = effect + 1  # UNPACK_SEQUENCE, UNPACK_EX take one
        if effect > results:
            results = effect
        keep = len(stack) + effect - results
        if keep < 0:
            raise IndexError(keep)
        return stack[:keep] + ((TEMPORARY, origin),) * results

    def _enters(self, stack: Stack, arg: int) -> bool:
        """Whether this CALL is the one of `__enter__` (3.14+)."""
        if _LOAD_SPECIAL == _NONE or arg != 0 or len(stack) < 3:
            return False
        maker = self.instructions[self.index[stack[-2][1]]]
        return maker.opcode == _LOAD_SPECIAL and maker.arg == _ENTER and maker.offset == stack[-2][1]
