"""Makes a failing program small: leaves out statements and simplifies expressions as long as it fails alike."""

from __future__ import annotations

import ast
import copy
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

from fuzz.case import Case

Change = Callable[[list[ast.AST]], None]

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def shrunk(case: Case, fails: Callable[[Case], bool], *, seconds: float = 90.0) -> Case:
    """The smallest case that was found to fail in the same way.

    Args:
        case: a failing case.
        fails: whether another one fails alike.
        seconds: how long to try.
    """
    deadline = time.monotonic() + seconds
    try:
        best = replace(case, source=_text(ast.parse(case.source)))
    except (SyntaxError, ValueError, RecursionError):
        return case
    if not fails(best):
        # Written out again it does not fail: its lines or columns matter.
        return case
    start = 0
    while True:
        tree = ast.parse(best.source)
        changes = [*_without_statements(tree), *_with_simpler_statements(tree), *_with_simpler_values(tree)]
        # Where the last change was found is the best place to look for the next.
        for number in (*range(start, len(changes)), *range(min(start, len(changes)))):
            if time.monotonic() > deadline:
                return best
            source = _changed(tree, changes[number], best.source)
            if source is not None and fails(replace(best, source=source)):
                best, start = replace(best, source=source), number
                break
        else:
            return best


def _text(tree: ast.Module) -> str:
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _changed(tree: ast.Module, change: Change, source: str) -> str | None:
    """The changed text; None if it is no smaller program."""
    changed = copy.deepcopy(tree)
    try:
        change(list(ast.walk(changed)))
        text = _text(changed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "smaller", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, AttributeError, TypeError):
        return None
    return text if text != source and len(text) <= len(source) else None


def _without_statements(tree: ast.AST) -> Iterator[Change]:
    """Leave out halves, quarters, ... and single ones of each block's statements."""
    found: list[tuple[int, int, str, int, int]] = []
    for number, node in enumerate(ast.walk(tree)):
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if not isinstance(block, list):
                continue
            size = len(block)
            while size:
                found += [(size, number, name, start, start + size) for start in range(0, len(block), size)]
                size //= 2
    for _, number, name, start, end in sorted(found, key=lambda item: -item[0]):

        def change(nodes: list[ast.AST], at: tuple[int, str, int, int] = (number, name, start, end)) -> None:
            number, name, start, end = at
            block = getattr(nodes[number], name)
            del block[start:end]
            if not block and name == "body":
                block.append(ast.Pass())

        yield change


def _with_simpler_statements(tree: ast.AST) -> Iterator[Change]:
    """Put the statements of a block in the place of its statement."""
    for number, node in enumerate(ast.walk(tree)):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if not isinstance(block, list):
                continue
            for place, statement in enumerate(block):
                for inner in ("body", "orelse", "finalbody"):
                    if getattr(statement, inner, None) and not isinstance(
                        statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Expr)
                    ):

                        def change(
                            nodes: list[ast.AST],
                            at: tuple[int, str, int, str] = (number, name, place, inner),
                        ) -> None:
                            number, name, place, inner = at
                            block = getattr(nodes[number], name)
                            block[place : place + 1] = getattr(block[place], inner)

                        yield change


def _with_simpler_values(tree: ast.AST) -> Iterator[Change]:
    """Put a part of an expression, or a number, in its place."""
    for number, node in enumerate(ast.walk(tree)):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and not isinstance(value, (ast.Constant, ast.Name)):
                parts = [child for child in ast.iter_child_nodes(value) if isinstance(child, ast.expr)]
                choices: list[ast.expr] = [*parts, ast.Constant(0)]
            elif isinstance(value, list) and len(value) > 1 and isinstance(value[0], ast.AST):
                if name in _BLOCKS:
                    continue
                for place in range(len(value)):

                    def leave_out(
                        nodes: list[ast.AST], at: tuple[int, str, int] = (number, name, place)
                    ) -> None:
                        del getattr(nodes[at[0]], at[1])[at[2]]

                    yield leave_out
                continue
            else:
                continue
            for choice in choices:

                def change(
                    nodes: list[ast.AST], at: tuple[int, str, ast.expr] = (number, name, choice)
                ) -> None:
                    setattr(nodes[at[0]], at[1], copy.deepcopy(at[2]))

                yield change
