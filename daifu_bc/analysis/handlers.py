"""What the handlers of a code object do with an exception: read from the bytecode, without source.

A handler is the target of an entry of the exception table. One of the user's begins with PUSH_EXC_INFO, which leaves
the saved exception and the new one on the stack; it has *taken* the exception for good where POP_EXCEPT restores
exactly that saved one. A clause from which no path leads there only cleans up, and the exception goes on.
"""

from __future__ import annotations

import opcode
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from daifu_bc import pyversion
from daifu_bc.analysis.code import ExceptionEntry, entry_at
from daifu_bc.analysis.expressions import (
    ANY,
    GLOBAL,
    LOCAL,
    Attribute,
    Call,
    Display,
    Expression,
    Name,
    expression,
    variable_name,
)
from daifu_bc.analysis.filters import BROAD, held_through_from_start
from daifu_bc.analysis.flow import EXCEPTION, EXIT, RETURNS, SAVED, Flow, op_set

WITH_EXIT: Final = "with"
FINALLY: Final = "finally"
CLAUSES: Final = "except"
PLUMBING: Final = "interpreter's own"

_OP: Final = opcode.opmap
_PUSH_EXC_INFO, _POP_EXCEPT, _POP_TOP = _OP["PUSH_EXC_INFO"], _OP["POP_EXCEPT"], _OP["POP_TOP"]
_WITH_EXCEPT_START, _END_ASYNC_FOR = _OP["WITH_EXCEPT_START"], _OP["END_ASYNC_FOR"]
_CHECK_EXC_MATCH, _CHECK_EG_MATCH = _OP["CHECK_EXC_MATCH"], _OP["CHECK_EG_MATCH"]
_RERAISE, _RAISE_VARARGS = _OP["RERAISE"], _OP["RAISE_VARARGS"]
_RETURNS: Final = RETURNS | frozenset({_OP["RETURN_CONST"]} if "RETURN_CONST" in _OP else ())
_SKIPPED: Final = frozenset(_OP[name] for name in ("NOT_TAKEN", "NOP", "CACHE", "TO_BOOL") if name in _OP)
_STORES: Final = op_set("STORE_FAST", "STORE_DEREF", "STORE_NAME", "STORE_GLOBAL", "STORE_FAST_LOAD_FAST")
_COPY, _YIELD_VALUE, _RESUME = _OP["COPY"], _OP["YIELD_VALUE"], _OP["RESUME"]
_AFTER_YIELD: Final = 1  # a RESUME's kind
_BEFORE_WITH: Final = op_set("BEFORE_WITH", "BEFORE_ASYNC_WITH", "LOAD_SPECIAL")
_AFTER_TEST: Final = frozenset(
    number for name, number in _OP.items() if name.startswith("POP_JUMP_") and number < 256
)


class Clause(NamedTuple):
    """One `except` of a chain.

    Attributes:
        offset: where its type is tested, or its body begins if it is bare.
        bare: whether it takes whatever comes.
        types: its type expression; None if it is bare or cannot be told.
        group: whether it is an `except*`.
        swallows: whether a path through its body ends without raising.
        reraises: whether a path raises the same exception again.
        raises: what other paths raise instead, None for what cannot be told.
    """

    offset: int
    bare: bool
    types: Expression | None
    group: bool
    swallows: bool
    reraises: bool
    raises: tuple[Expression | None, ...]


def is_broad(clause: Clause) -> bool:
    """Whether a clause takes whatever comes, or all but what ends the program."""
    types = clause.types
    items = types.items if type(types) is Display else (types,)
    return clause.bare or any(type(item) is Name and item.name in BROAD for item in items)


class Handler:
    """What one handler of a code object does.

    Attributes:
        kind: WITH_EXIT, FINALLY, CLAUSES or PLUMBING.
        target: offset of its first instruction.
        clauses: the clauses of an except chain, in order.
        may_catch: whether some clause may take an exception for good.
        is_broad: whether such a clause takes whatever comes.
        outer: the entry that covers the handler itself, where a re-raise arrives next.
        manager: for a `with`, the expression of its context manager, if it can be told.
        bound: for a `with`, the name after `as`, if it is a plain one.
    """

    __slots__ = ("bound", "clauses", "is_broad", "kind", "manager", "may_catch", "outer", "target")

    def __init__(
        self, kind: str, target: int, outer: ExceptionEntry | None, clauses: tuple[Clause, ...] = ()
    ) -> None:
        self.kind = kind
        self.target = target
        self.outer = outer
        self.clauses = clauses
        self.may_catch = any(clause.swallows for clause in clauses)
        self.is_broad = any(clause.swallows and is_broad(clause) for clause in clauses)
        self.manager: Expression | None = None
        self.bound: Name | None = None

    def __repr__(self) -> str:
        return f"<{self.kind} at {self.target}{' may catch' if self.may_catch else ''}>"


_known: WeakKeyDictionary[Flow, dict[int, Handler]] = WeakKeyDictionary()
#: Where the first entry that leads to a handler begins.
_starts: WeakKeyDictionary[Flow, dict[int, int]] = WeakKeyDictionary()


def handler_at(flow: Flow, entry: ExceptionEntry) -> Handler:
    """The handler that an entry of the exception table leads to."""
    known = _known.get(flow)
    if known is None:
        known = _known[flow] = {}
    handler = known.get(entry.target)
    if handler is None:
        handler = known[entry.target] = _classify(flow, entry)
    return handler


def may_catch(flow: Flow, entry: ExceptionEntry) -> bool:
    """Whether the handler of `entry` has a clause that may take an exception for good, if that counts there."""
    handler = handler_at(flow, entry)
    return handler.may_catch and not (handler.is_broad and held_through_from_start(flow.code))


def chain(flow: Flow, offset: int) -> list[Handler]:
    """The handlers that an exception raised at `offset` meets, inner to outer, if each of them raises it again."""
    return chain_from(flow, entry_at(flow.entries, offset))


def chain_from(flow: Flow, entry: ExceptionEntry | None) -> list[Handler]:
    """The handlers from the one of `entry` outward."""
    handlers: list[Handler] = []
    seen: set[int] = set()
    while entry is not None and entry.target not in seen:
        seen.add(entry.target)
        handler = handler_at(flow, entry)
        handlers.append(handler)
        entry = handler.outer
    return handlers


def _classify(flow: Flow, entry: ExceptionEntry) -> Handler:
    target = entry.target
    place = flow.index[target]
    instruction = flow.instructions[place]
    outer = entry_at(flow.entries, instruction.offset)
    stack = flow.stacks[place]
    if instruction.opcode != _PUSH_EXC_INFO or stack is None:
        return Handler(PLUMBING, target, outer)
    if flow.instructions[place + 1].opcode == _WITH_EXCEPT_START:
        handler = Handler(WITH_EXIT, target, outer)
        _find_manager(flow, handler, entry)
        return handler
    base = len(stack) - 1  # where PUSH_EXC_INFO puts the saved exception
    clauses = _clauses(flow, place + 1, base, target)
    if clauses:
        return Handler(CLAUSES, target, outer, tuple(clauses))
    body = _Body(flow, base, target, "")
    body.run(place + 1)
    if body.swallows or not body.reraises:
        # `finally: return` takes the exception for good, just as a bare `except` does.
        clause = Clause(target, True, None, False, body.swallows, body.reraises, tuple(body.raises))
        return Handler(CLAUSES, target, outer, (clause,))
    return Handler(FINALLY, target, outer)


def _find_manager(flow: Flow, handler: Handler, entry: ExceptionEntry) -> None:
    """Tells from where the exit callable came which expression gave the context manager."""
    stack = flow.stacks[flow.index[handler.target]] or ()
    exits = [item for item in stack[: entry.depth] if item[0] == EXIT]
    if not exits:
        return
    maker = flow.index[exits[-1][1]]
    if flow.instructions[maker].opcode in _BEFORE_WITH:
        handler.manager = expression(flow, maker, -1)
    starts = _starts.get(flow)
    if starts is None:
        starts = _starts[flow] = {}
        for other in flow.entries:
            starts.setdefault(other.target, other.start)
    place = flow.index.get(starts[handler.target])
    if place is not None:
        handler.bound = _stored(flow, place)


def _stored(flow: Flow, place: int) -> Name | None:
    """The variable that the instruction at `place` assigns, if it does."""
    instruction = flow.instructions[place]
    code, number, arg = flow.code, instruction.opcode, instruction.arg
    if number not in _STORES:
        return None
    if number == _OP["STORE_NAME"]:
        return Name(code.co_names[arg], ANY)
    if number == _OP["STORE_GLOBAL"]:
        return Name(code.co_names[arg], GLOBAL)
    if number == _OP.get("STORE_FAST_LOAD_FAST"):
        arg >>= 4
    return Name(variable_name(code, arg), LOCAL)


def _clauses(flow: Flow, place: int, base: int, target: int) -> list[Clause]:
    """The clauses of the except chain that begins at `place`; none if it is a `finally`."""
    clauses: list[Clause] = []
    instructions = flow.instructions
    while True:
        if instructions[place].opcode in _SKIPPED and clauses:
            place += 1
            continue
        stack = flow.stacks[place]
        if stack is not None and len(stack) == base + 2 and instructions[place].opcode == _POP_TOP:
            clauses.append(_clause(flow, place, place + 1, base, target, (True, None, "")))
            return clauses
        test = _find_test(flow, place, base, target)
        if test is None:
            return clauses
        group = instructions[test].opcode == _CHECK_EG_MATCH
        jump = test + 1
        while instructions[jump].opcode in _SKIPPED or instructions[jump].opcode == _COPY:
            jump += 1
        if instructions[jump].opcode not in _AFTER_TEST or instructions[jump].target is None:
            return clauses
        no, yes = flow.index[instructions[jump].target or 0], jump + 1
        if instructions[jump].name.endswith(("IF_TRUE", "IF_NOT_NONE")):
            no, yes = yes, no
        while instructions[yes].opcode in _SKIPPED:
            yes += 1
        name = _stored(flow, yes)
        # The body begins with the assignment itself where that is fused with the first load.
        body = yes if instructions[yes].opcode == _OP.get("STORE_FAST_LOAD_FAST") else yes + 1
        types = expression(flow, test, -1)
        if group:
            clauses.append(_group_clause(flow, test, body, base, target, types, name.name if name else ""))
            if instructions[no].opcode == _POP_TOP:
                no += 1
        else:
            clauses.append(_clause(flow, test, body, base, target, (False, types, name.name if name else "")))
        place = no


def _find_test(flow: Flow, place: int, base: int, target: int) -> int | None:
    """The place of the next type test of this handler."""
    instructions, stacks = flow.instructions, flow.stacks
    while place < len(instructions):
        number = instructions[place].opcode
        stack = stacks[place]
        if stack is None or len(stack) < base + 2:
            return None
        if number == _CHECK_EXC_MATCH and len(stack) == base + 3 and stack[-2] == (EXCEPTION, target):
            return place
        if number == _CHECK_EG_MATCH and len(stack) == base + 5 and stack[base + 1] == (EXCEPTION, target):
            return place
        if number in (_RERAISE, _RAISE_VARARGS) or number in _RETURNS:
            return None
        place += 1
    return None


def _clause(
    flow: Flow,
    offset_place: int,
    start: int,
    base: int,
    target: int,
    about: tuple[bool, Expression | None, str],
) -> Clause:
    bare, types, name = about
    body = _Body(flow, base, target, name)
    body.run(start)
    offset = flow.instructions[offset_place].offset
    return Clause(offset, bare, types, False, body.swallows, body.reraises, tuple(body.raises))


def _group_clause(
    flow: Flow, test: int, start: int, base: int, target: int, types: Expression | None, name: str
) -> Clause:
    """A clause of `except*`: its body has ended well where control leaves the range of its own clean-up handler."""
    offset = flow.instructions[test].offset
    guard = flow.entry(start)
    # An empty body has no handler of its own (it is the one around the whole chain that covers it).
    if guard is None or guard.depth != base + 4:
        return Clause(offset, False, types, True, True, False, ())
    body = _Body(flow, base, target, name, guard.target)
    body.run(start)
    return Clause(offset, False, types, True, body.swallows, body.reraises, tuple(body.raises))


class _Body:
    """Follows every path through the body of a clause."""

    def __init__(self, flow: Flow, base: int, target: int, name: str, guard: int | None = None) -> None:
        self.flow = flow
        self.base = base
        self.target = target
        self.name = name
        self.guard = guard
        self.swallows = False
        self.reraises = False
        self.raises: list[Expression | None] = []

    def run(self, start: int) -> None:
        """Visits what can be reached from `start`."""
        flow, base = self.flow, self.base
        seen = {start}
        work = [start]
        while work:
            place = work.pop()
            instruction = flow.instructions[place]
            stack = flow.stacks[place]
            if stack is None:
                continue
            number = instruction.opcode
            entry = entry_at(flow.entries, instruction.offset)
            # A NOT_TAKEN between two instructions of the body may have no entry (3.15).
            if self.guard is not None and number not in _SKIPPED and not self._guarded(entry):
                self.swallows = True
                continue
            if (number == _POP_EXCEPT and len(stack) - 1 == base) or number in _RETURNS:
                self.swallows = True
                continue
            follow = flow.successors(place)
            inner = self._inner(entry)
            if inner is not None:
                follow.append(inner)
            elif number == _RERAISE:
                self.reraises = self.reraises or stack[-1] == (EXCEPTION, self.target)
            elif number == _RAISE_VARARGS:
                self._raise(place, instruction.arg)
            for after in follow:
                if after not in seen:
                    seen.add(after)
                    work.append(after)

    def _guarded(self, entry: ExceptionEntry | None) -> bool:
        while entry is not None and entry.depth > self.base + 3:
            if entry.target == self.guard:
                return True
            entry = entry_at(self.flow.entries, entry.target)
        return False

    def _inner(self, entry: ExceptionEntry | None) -> int | None:
        """The place of a handler inside the body that may take what is raised here.

        The exit of a `with` counts as passing it on, a `finally` and the interpreter's own clean-up do so.
        """
        while entry is not None and entry.depth > self.base:
            place = self.flow.index[entry.target]
            number = self.flow.instructions[place].opcode
            if number == _END_ASYNC_FOR:
                return place
            if number == _PUSH_EXC_INFO and handler_at(self.flow, entry).may_catch:
                return place
            entry = entry_at(self.flow.entries, entry.target)
        return None

    def _raise(self, place: int, arg: int) -> None:
        flow = self.flow
        stack = flow.stacks[place] or ()
        if arg == 0:
            # In a handler further in, a bare `raise` is about another exception.
            self.reraises = self.reraises or not any(item[0] == SAVED for item in stack[self.base + 1 :])
            return
        what = expression(flow, place, -arg)
        same = what
        if (
            isinstance(same, Call)
            and isinstance(same.function, Attribute)
            and same.function.name == "with_traceback"
        ):
            same = same.function.of
        if isinstance(same, Name) and same.name == self.name:
            self.reraises = True
        else:
            self.raises.append(what)


def thrown_in(flow: Flow, place: int) -> bool:
    """Whether an exception at `place` was thrown into a generator at a plain `yield`, which awaits nothing."""
    number = flow.instructions[place].opcode
    if number == _YIELD_VALUE and place + 1 < len(flow.instructions):
        place += 1
    instruction = flow.instructions[place]
    return instruction.opcode == _RESUME and instruction.arg & pyversion.RESUME_KIND_MASK == _AFTER_YIELD
