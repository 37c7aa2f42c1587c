"""Which statement an instruction belongs to, and where statements begin in the bytecode.

With source at hand, statements come from the syntax tree and the positions of the instructions. Without, a statement
is what the line table calls a line, and each restart point at which a line begins is a place to go on.
"""

from __future__ import annotations
import __future__

import ast
import bisect
import opcode
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Final, NamedTuple

from daifu_bc.analysis import editions
from daifu_bc.analysis.dominance import dominators
from daifu_bc.analysis.flow import Flow, Stack
from daifu_bc.analysis.regions import first_covered
from daifu_bc.analysis.trees import compiled, place_of, tree_of

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module
_COMPREHENSIONS: Final = frozenset({"<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"})
_FAR: Final = 1 << 30
STORE_THEN_LOAD: Final = opcode.opmap.get("STORE_FAST_LOAD_FAST", -1)
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement of the program; compared by identity.

    Attributes:
        first, last: its lines.
        node: its syntax tree, or None without source.
        parent: the compound statement around it in the same function, or None.
    """

    first: int
    last: int
    node: ast.stmt | None = None
    parent: Statement | None = None

    def within(self, other: Statement) -> bool:
        """Whether this is `other` or lies in it."""
        here: Statement | None = self
        while here is not None:
            if here is other:
                return True
            here = here.parent
        return False


class Begin(NamedTuple):
    """Where a statement begins.

    Attributes:
        place: the instruction.
        half: whether it begins with the second half of that instruction.
        stack: what lies on the stack there.
    """

    place: int
    half: bool
    stack: Stack


def parse(code: CodeType) -> ast.Module | None:
    """The syntax tree of the source that a pristine code object was made from, or None."""
    lines = editions.lines(code)
    if not lines:
        return None
    # Text that was changed since, or is another program's: only what compiles to this very code is its source.
    text = "\n".join(lines)
    wanted = place_of(code)
    futures = code.co_flags & FUTURES
    for awaits in (0, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT):  # as a notebook's cells may
        try:
            for flags in {0: True, futures: True}:
                if wanted in compiled(text, code.co_filename, flags | awaits).places:
                    return tree_of(text)
            return None
        except SyntaxError:
            continue
        except (ValueError, RecursionError):
            return None
    return None


FUTURES: Final = __future__.annotations.compiler_flag | __future__.barry_as_FLUFL.compiler_flag


def find_function(tree: ast.Module, code: CodeType) -> Function | None:
    """The definition that `code` was compiled from; None for lambdas, comprehensions and where nothing fits."""
    if code.co_name == "<module>":
        return tree
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS) and node.name == code.co_name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    return None


class Statements:
    """The statements of one code object.

    Args:
        flow: its analysis.
        tree: the syntax tree of its file, or None without source.

    Attributes:
        function: its definition in the tree, or None.
    """

    def __init__(self, flow: Flow, tree: ast.Module | None) -> None:
        self.flow = flow
        self.function = find_function(tree, flow.code) if tree is not None else None
        self._all: list[tuple[tuple[int, int], tuple[int, int], Statement]] = []
        self._ends: dict[Statement, tuple[int, int]] = {}
        self._by_line: dict[int, Statement] = {}
        if self.function is not None:
            self._collect(self.function.body)
            self._all.sort(key=lambda known: known[0])
            self._ends = {statement: end for _, end, statement in self._all}
        self.of: list[Statement | None] = self._assign()
        self._predecessors: list[list[int]] | None = None
        self._dominators: dict[int, int] | None = None

    def _collect(self, body: list[ast.stmt]) -> None:
        # Not by recursion: each `elif` lies in the one before it.
        work: list[tuple[ast.stmt, Statement | None]] = [(node, None) for node in reversed(body)]
        while work:
            node, parent = work.pop()
            first = node.lineno
            start = (node.lineno, node.col_offset)
            if isinstance(node, _FUNCTIONS):
                for decorator in node.decorator_list:
                    start = min(start, (decorator.lineno, 0))
                first = start[0]
            statement = Statement(first, node.end_lineno or first, node, parent)
            self._all.append((start, (node.end_lineno or first, node.end_col_offset or 0), statement))
            if isinstance(node, _FUNCTIONS):
                continue
            inner = [one for name in ("body", "orelse", "finalbody") for one in getattr(node, name, [])]
            for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
                inner += part.body
            work += [(one, statement) for one in reversed(inner)]

    def _assign(self) -> list[Statement | None]:
        positions = list(self.flow.code.co_positions())
        found: dict[tuple[object, ...], Statement | None] = {}
        result: list[Statement | None] = []
        previous: Statement | None = None
        for instruction in self.flow.instructions:
            position = positions[instruction.offset // 2]
            if position[0] is None:
                result.append(previous)
                continue
            if position not in found:
                found[position] = self._innermost(position)
            previous = found[position]
            result.append(previous)
        return result

    def _innermost(self, position: tuple[int | None, int | None, int | None, int | None]) -> Statement | None:
        line, end_line, column, end_column = position
        assert line is not None
        if not self._all:
            statement = self._by_line.get(line)
            if statement is None:
                statement = self._by_line[line] = Statement(line, line)
            return statement
        if column is None:
            start, end = (line, _FAR), (line, -1)
        else:
            start = (line, column)
            end = (end_line if end_line is not None else line, end_column if end_column is not None else -1)
        # Statements are sorted by where they begin; those around the found one are its parents.
        index = bisect.bisect_right(self._all, start, key=lambda known: known[0]) - 1
        if index < 0:
            return None
        best: Statement | None = self._all[index][2]
        while best is not None and self._ends[best] < end:
            best = best.parent
        return best

    # -- in the bytecode ---------------------------------------------------------------------------------------

    def predecessors(self, place: int) -> list[int]:
        """Places from which the instruction at `place` normally follows."""
        if self._predecessors is None:
            table: list[list[int]] = [[] for _ in self.flow.instructions]
            for here, stack in enumerate(self.flow.stacks):
                if stack is not None:
                    for following in self.flow.successors(here):
                        table[following].append(here)
            self._predecessors = table
        return self._predecessors[place]

    def is_start(self, place: int) -> bool:
        """Whether a statement begins here: a restart point that is reached from another statement.

        A block that begins or ends inside a statement (the iterator of a `for`, an item of a `with`) makes a start
        too: what has already run of the statement must not run again.
        """
        return self._begins(place) or self._begins_inside(place)

    def _begins(self, place: int) -> bool:
        flow = self.flow
        first = first_covered(flow)
        if not flow.is_restart_point(place) or place < first:
            return False
        if flow.code.co_name == "<lambda>":
            return place == first
        if flow.code.co_name in _COMPREHENSIONS:
            return True
        before = self.predecessors(place)
        return not before or any(
            here < first or self.of[here] is not self.of[place] or self._drops_another_ones(here)
            for here in before
        )

    def _drops_another_ones(self, place: int) -> bool:
        """Whether only what another statement has left is dropped here: the subject of a `match` (3.14+)."""
        stack = self.flow.stacks[place]
        if self.flow.instructions[place].name != "POP_TOP" or not stack or self.flow.is_restart_point(place):
            return False
        return self.of[self.flow.index[stack[-1][1]]] is not self.of[place]

    def _begins_inside(self, place: int) -> bool:
        flow = self.flow
        if not flow.is_restart_point(place) or place < first_covered(flow) or flow.code.co_name == "<lambda>":
            return False
        mine = flow.stacks[place]
        return any(
            self._structure(here) != mine or self._came_from_block(here) for here in self.predecessors(place)
        )

    def _came_from_block(self, place: int) -> bool:
        """Whether only what the end of a block has left (the result of an exit) is still to be dropped here."""
        stack, kept = self.flow.stacks[place] or (), self._structure(place)
        if len(stack) != len(kept) + 1:
            return False
        return self._structure(self.flow.index[stack[-1][1]]) != kept

    def _structure(self, place: int) -> Stack:
        return (self.flow.stacks[place] or ())[: self.flow.structural(place)]

    def begins_in_half(self, place: int) -> bool:
        """Whether a statement begins with the second half of a fused store-and-load (3.13+): `x = f(); y = x`."""
        flow = self.flow
        stack = flow.stacks[place]
        if flow.instructions[place].opcode != STORE_THEN_LOAD or stack is None:
            return False
        if flow.structural(place) < len(stack) - 1 or place + 1 >= len(self.of):
            return False
        return self.of[place + 1] is not self.of[place] or flow.code.co_name in _COMPREHENSIONS

    def begin_of(self, place: int) -> Begin | None:
        """The start that dominates the instruction at `place` most closely: where its statement would be repeated.

        Nearest in the flow and not in the order of the code: in `x = (a() if c() else b()) + g()` a crash in `g()`
        must not repeat `b()` alone. Code that is reached only by an exception has its handler as its root.
        """
        kept = self._structure(place)
        for here in self.before(place):
            if here != place and self.begins_in_half(here):
                return Begin(here, True, (self.flow.stacks[here] or ())[:-1])
            # A block that has ended since, or an iterator that has gone into an expression, is no place to go back to.
            inside = self._begins_inside(here) and self._structure(here) == kept[: self.flow.structural(here)]
            if inside or self._begins(here):
                return Begin(here, False, self.flow.stacks[here] or ())
        return None

    def before(self, place: int) -> Iterator[int]:
        """The places through which every way to an instruction leads, from itself outward."""
        if self._dominators is None:
            self._dominators = dominators(self.flow, self.predecessors)
        here: int | None = place
        while here is not None:
            yield here
            here = self._dominators.get(here)

    def base_of(self, place: int) -> Stack | None:
        """What lies on the stack before the statement of an instruction, the header of a loop included."""
        best: Stack | None = None
        for here in self.before(place):
            if self.of[here] is self.of[place] and self.is_start(here):
                stack = self.flow.stacks[here] or ()
                if best is None or len(stack) < len(best):
                    best = stack
        return best

    def all(self) -> list[Statement]:
        """All statements of the function, in the order of the source."""
        return [statement for _, _, statement in self._all]
