"""How a frame returns a value through its `finally` blocks: in a body whose crashed statement says `return`."""

from __future__ import annotations

import ast
import copy
import inspect
import warnings
from types import CodeType
from typing import Final, cast

from daifu_bc.analysis.code import code_objects
from daifu_bc.analysis.flow import EXIT, Flow
from daifu_bc.analysis.statements import FUTURES, Statements, find_function, parse
from daifu_bc.errors import NoPoint
from daifu_bc.recovery.bodies import flow_of
from daifu_bc.recovery.capture import Capture
from daifu_bc.recovery.origins import flags_for
from daifu_bc.recovery.restarts import Restarts, statements_of
from daifu_bc.rewrite.continuation import Start

#: The local that holds the value; no identifier, so that no program can have it.
VALUE_NAME: Final = ".value to return"


def return_through(captured: Capture, restarts: Restarts, *, has_value: bool) -> tuple[Flow, Start]:
    """A body in which the crashed statement is `return`, and where it is entered.

    The compiler makes of it what leaves the blocks in the right order, their `finally` included.

    Args:
        captured: the crashed frame.
        restarts: its crash.
        has_value: whether a value is given back; else None is.

    Raises:
        NoPoint: there is no source, or no such place.
    """
    code = captured.code
    tree = parse(code)
    statement = restarts.statement
    node = statement.node if statement is not None else None
    base = restarts.base()
    if (
        tree is None
        or node is None
        or any(captured.flow.kind(item) == EXIT for item in restarts.open[len(base) :])
    ):
        raise NoPoint(
            "a `finally` would have to run on the way out, and without source it cannot be told how",
            remedy="Use `goto` to a line that leaves the `try`.",
        )
    if has_value and code.co_flags & inspect.CO_ASYNC_GENERATOR:
        raise NoPoint("an asynchronous generator returns no value", remedy="Say `return` alone.")
    edited = cast(
        ast.Module, _Replacing(node, has_value=has_value).visit(copy.deepcopy(tree, {id(node): node}))
    )
    changed = find_function(edited, code)
    if has_value and isinstance(changed, ast.FunctionDef | ast.AsyncFunctionDef):
        # Never run: it makes the name a local of the function.
        store = ast.parse("if 0: x = 0").body
        store[0].body[0].targets[0].id = VALUE_NAME  # type: ignore[attr-defined]
        changed.body = [*changed.body, *(ast.copy_location(one, changed.body[-1]) for one in store)]
    ast.fix_missing_locations(edited)
    flow = flow_of(_find(_compiled(edited, code), code))
    table = Statements(flow, edited)
    kinds = [captured.flow.kind(item) for item in base]
    found = [
        place
        for place, owner in enumerate(table.of)
        if owner is not None and isinstance(owner.node, ast.Return) and owner.first == node.lineno
        if table.is_start(place) and flow.kinds(place) == kinds
    ]
    if not found:
        raise NoPoint("the function has no place from which it could return here", remedy="Use `goto`.")
    old = statements_of(captured.flow)
    copies = [
        place
        for place, owner in enumerate(old.of)
        if owner is statement and old.is_start(place) and captured.flow.kinds(place) == kinds
    ]
    rank = max(0, sum(place <= captured.place for place in copies) - 1) if len(copies) == len(found) else 0
    bound = restarts.bound | ({VALUE_NAME} if has_value else frozenset())
    place = found[rank]
    return flow, Start(
        place, flow.stacks[place] or (), frozenset(name for name in bound if name in flow.code.co_varnames)
    )


class _Replacing(ast.NodeTransformer):
    """Puts `return` in the place of one statement."""

    def __init__(self, node: ast.stmt, *, has_value: bool) -> None:
        self._node = node
        self._has_value = has_value

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self._node:
            value = ast.Name(VALUE_NAME, ast.Load()) if self._has_value else None
            return ast.copy_location(ast.Return(value), node)
        return self.generic_visit(node)


def _compiled(edited: ast.Module, code: CodeType) -> CodeType:
    flags = code.co_flags & FUTURES | flags_for(code.co_filename)
    with warnings.catch_warnings():
        # Nobody wrote that `return`, which may stand in a `finally`; and what the program is warned of it knows.
        warnings.simplefilter("ignore")
        built = compile(edited, code.co_filename, "exec", flags, dont_inherit=True)
    return cast(CodeType, built)


def _find(module: CodeType, code: CodeType) -> CodeType:
    for here in code_objects(module):
        if here.co_qualname == code.co_qualname and here.co_firstlineno == code.co_firstlineno:
            return here
    raise NoPoint(f"{code.co_name} is not in the text of its file")
