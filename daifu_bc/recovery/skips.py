"""Where a run goes on behind a statement."""

from __future__ import annotations

import ast
from typing import Final

from daifu_bc.analysis.flow import Stack
from daifu_bc.analysis.statements import Statement
from daifu_bc.errors import BlocksFirst, NoPoint
from daifu_bc.recovery.restarts import Restarts, reached
from daifu_bc.rewrite.continuation import Start

_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
_TAKES: Final = ("FOR_ITER", "GET_ANEXT")
_WITHS: Final = (ast.With, ast.AsyncWith)


class Skip:
    """The way on behind the crashed statement.

    Args:
        restarts: the crash.
    """

    def __init__(self, restarts: Restarts) -> None:
        self.restarts = restarts

    def start(self) -> Start:
        """Where the run goes on behind the crashed statement; a compound one stands for all of it.

        A loop's element that could not be assigned is passed over: the loop goes on with the next one.

        Raises:
            NoPoint: there is no such place.
        """
        statement = self.restarts.statement
        if statement is None:
            raise NoPoint("the crashed instruction belongs to no statement", remedy="Use `goto` or `return`.")
        found = self._next_element(statement) or self._after(statement, self.restarts.base())
        if found is None:
            raise NoPoint("there is no code behind this statement", remedy="Use `goto` or `return`.")
        return found

    def _next_element(self, statement: Statement) -> Start | None:
        """The next element of a loop, if the one that it has taken could not be assigned to its variables."""
        flow = self.restarts.flow
        element = self.restarts.element()
        if element is None:
            return None
        for place in self.restarts.region(statement):
            if flow.stacks[place] == element and flow.instructions[place].name in _TAKES:
                return self.restarts.start_at(place)
        return None

    def body(self) -> Start:
        """With the next iteration of the innermost loop.

        Raises:
            NoPoint: no loop is being run, or there is no such place.
        """
        loop = self._loop()
        restarts = self.restarts
        flow, open_ = restarts.flow, restarts.open
        for place in sorted(restarts.copy_that_crashed(set(restarts.region(loop)))):
            stack = flow.stacks[place] or ()
            if restarts.statements.of[place] is not loop or not restarts.statements.is_start(place):
                continue
            looping = flow.instructions[place].name in _TAKES
            if stack == open_[: len(stack)] and looping == (not isinstance(loop.node, ast.While)):
                return self._checked(place, f"going on with the next iteration, line {loop.first}")
        raise NoPoint("the loop's head cannot be told", remedy="Use `goto` with the loop's line.")

    def loop(self) -> Start:
        """Behind the innermost loop, its `else` left out as by `break`.

        Raises:
            NoPoint: no loop is being run, or there is no such place.
        """
        loop = self._loop()
        flow = self.restarts.flow
        bases = [
            flow.stacks[place] or ()
            for place in self.restarts.region(loop)
            if self.restarts.statements.of[place] is loop and self.restarts.statements.is_start(place)
        ]
        found = self._after(loop, min(bases, key=len)) if bases else None
        if found is None:
            raise NoPoint("there is no code behind the loop", remedy="Use `goto` or `return`.")
        if found.returns or found.half:
            return found
        return self._checked(found.place, "going on behind the loop")

    def _checked(self, place: int, then: str) -> Start:
        if self.restarts.finally_between(place):
            raise BlocksFirst(then, place)
        return self.restarts.start_at(place)

    def _loop(self) -> Statement:
        """The innermost loop whose body is being run."""
        inner, statement = None, self.restarts.statement
        if statement is not None and statement.node is None:
            raise NoPoint(
                "without source it cannot be told where the loop begins and ends",
                remedy="Use `goto` with its line.",
            )
        while statement is not None:
            node = statement.node
            if isinstance(node, _LOOPS) and (inner is None or inner.node in node.body):
                return statement
            inner, statement = statement, statement.parent
        raise NoPoint("no loop is being run in this function", remedy="Use `skip`.")

    def _after(self, statement: Statement, base: Stack) -> Start | None:
        region = set(self.restarts.region(statement))
        good, halves = self._ways_out(statement, base, self.restarts.copy_that_crashed(region))
        if not good and not halves:
            # A `raise`; or, without source, a line whose code does not hang together.
            good, halves = self._ways_out(statement, base, region)
        if halves:
            return Start(halves[0], self.restarts.open, self.restarts.bound, half=True)
        if statement.node is None:
            return self._behind_line(region, good, base)
        sibling = self._sibling(statement)
        if good:
            for place in good if sibling is not None else []:
                owner = self.restarts.statements.of[place]
                if owner is not None and sibling is not None and owner.within(sibling):
                    return self.restarts.start_at(place)
            behind = [place for place in good if place > self.restarts.place]
            return self.restarts.start_at((behind or good)[0])
        if sibling is not None:
            inside = [
                place for place in self.restarts.region(sibling) if self.restarts.flow.stacks[place] == base
            ]
            starts = [place for place in inside if self.restarts.statements.is_start(place)]
            return self.restarts.start_at(starts[0]) if starts else self._after(sibling, base)
        return self._after_block(statement, base)

    def _ways_out(self, statement: Statement, base: Stack, region: set[int]) -> tuple[list[int], list[int]]:
        """Where the run may go on behind a region, and where it may in the second half of a fused instruction."""
        flow = self.restarts.flow
        # What comes before a block of the region, such as the start of a handler, leads out of it elsewhere.
        inside = [place for place in region if (flow.stacks[place] or ())[: len(base)] == base]
        exits = {after for place in inside for after in flow.successors(place) if after not in region}
        good = sorted(place for place in exits if flow.stacks[place] == base and flow.is_restart_point(place))
        if not isinstance(statement.node, ast.Return):
            good += sorted(
                place
                for place in region
                if flow.stacks[place] == base
                and (
                    self._is_implicit_return(place)
                    or self._leaves_handler(place)
                    or flow.instructions[place].name == "RERAISE"  # the end of a `finally` with its exception
                )
            )
        halves = sorted(
            place
            for place in region
            if place + 1 in exits
            and self.restarts.statements.begins_in_half(place)
            and (flow.stacks[place] or ())[:-1] == base
        )
        return good, halves

    def _behind_line(self, region: set[int], good: list[int], base: Stack) -> Start | None:
        """Without source: where all ways out of the line come together, so that a header stands for all of its block."""
        if len(good) > 1:
            common = set.intersection(*(reached(place, self.restarts.flow.successors) for place in good))
            joined = sorted(
                place
                for place in common - region
                if self.restarts.flow.stacks[place] == base and self.restarts.statements.is_start(place)
            )
            if joined:
                return self.restarts.start_at(joined[0])
        if good:
            behind = [place for place in good if place > self.restarts.place]
            return self.restarts.start_at((behind or good)[0])
        return self._next_start(base) or (self._ends(base) if self._returns(region) else None)

    def _returns(self, region: set[int]) -> bool:
        return any(self.restarts.flow.instructions[place].name.startswith("RETURN_") for place in region)

    def _ends(self, base: Stack) -> Start | None:
        """The end of the function, where the compiler has left out the code that returns None."""
        if base or self.restarts.finally_between(None):
            return None
        return Start(self.restarts.place, self.restarts.open, self.restarts.bound, returns=True)

    def _after_block(self, statement: Statement, base: Stack) -> Start | None:
        """Behind the last statement of a block."""
        flow, parent = self.restarts.flow, statement.parent
        if parent is None:
            for place, stack in enumerate(flow.stacks):
                if stack == base and self._is_implicit_return(place):
                    return self.restarts.start_at(place)
            return self._ends(base)
        region = self.restarts.region(parent)
        if isinstance(parent.node, _LOOPS):
            for place in sorted(self.restarts.copy_that_crashed(set(region))) or region:
                if flow.stacks[place] != base or not self.restarts.statements.is_start(place):
                    continue
                looping = flow.instructions[place].name in _TAKES
                if looping or isinstance(parent.node, ast.While):
                    return self.restarts.start_at(place)
            return None
        if isinstance(parent.node, _WITHS):
            for place in region:
                if (
                    flow.stacks[place] == base
                    and self.restarts.statements.of[place] is parent
                    and place > self.restarts.place
                ):
                    names = [instruction.name for instruction in flow.instructions[place : place + 4]]
                    if names[3:] and names[0] == names[1] == names[2] and "CONST" in names[0]:
                        return self.restarts.start_at(place)
            return None
        if isinstance(parent.node, ast.Try) and parent.node.finalbody:
            return None
        return self._after(parent, base)

    def _sibling(self, statement: Statement) -> Statement | None:
        """The statement that follows in the same block."""
        node, parent = statement.node, statement.parent
        if node is None:
            return None
        owner = parent.node if parent is not None else self.restarts.statements.function
        for body in _bodies(owner):
            if node in body:
                following = body[body.index(node) + 1 : body.index(node) + 2]
                return next(
                    (other for other in self.restarts.statements.all() if other.node in following), None
                )
        return None

    def _next_start(self, base: Stack) -> Start | None:
        for place in range(self.restarts.place + 1, len(self.restarts.flow.instructions)):
            if (
                self.restarts.flow.stacks[place] == base
                and self.restarts.statements.is_start(place)
                and self.restarts.statements.of[place] is not self.restarts.statement
            ):
                return self.restarts.start_at(place)
        return None

    def _leaves_handler(self, place: int) -> bool:
        """Whether the end of an `except` body, which the compiler counts to its last statement, begins here."""
        instructions = self.restarts.flow.instructions
        if not self.restarts.flow.is_restart_point(place):
            return False
        if instructions[place].name == "POP_EXCEPT":
            return True
        names = [instruction.name for instruction in instructions[place : place + 3]]
        if len(names) < 3 or not names[0].startswith("LOAD_CO"):
            return False
        stores = names[1].startswith("STORE_") and names[2].startswith("DELETE_")
        return stores and instructions[place + 1].arg == instructions[place + 2].arg

    def _is_implicit_return(self, place: int) -> bool:
        instructions = self.restarts.flow.instructions
        if not self.restarts.flow.is_restart_point(place):
            return False
        names = [instruction.name for instruction in instructions[place : place + 2]]
        consts = self.restarts.flow.code.co_consts
        if names[0] == "RETURN_CONST":
            return consts[instructions[place].arg] is None
        if names != ["LOAD_CONST", "RETURN_VALUE"] and names != ["LOAD_COMMON_CONSTANT", "RETURN_VALUE"]:
            return False
        return names[0] == "LOAD_COMMON_CONSTANT" or consts[instructions[place].arg] is None


def _bodies(owner: object) -> list[list[ast.stmt]]:
    bodies = [getattr(owner, name, []) for name in ("body", "orelse", "finalbody")]
    bodies += [handler.body for handler in getattr(owner, "handlers", [])]
    bodies += [case.body for case in getattr(owner, "cases", [])]
    return [body for body in bodies if isinstance(body, list)]
