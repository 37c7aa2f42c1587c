"""Which definition of a text is which: by its qualified name, and its rank among those of that name."""

from __future__ import annotations

import ast
from types import CodeType

from daifu_bc.recovery.edits import definitions, first_lines

#: Qualified name, and rank among the definitions of that name in a module.
Key = tuple[str, int]


def key_of(code: CodeType, tree: ast.Module) -> Key:
    """Which definition of a text a code object was compiled from."""
    lines = first_lines(tree).get(code.co_qualname, [])
    return code.co_qualname, lines.index(code.co_firstlineno) if code.co_firstlineno in lines else 0


def by_key(tree: ast.Module) -> dict[Key, ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a text."""
    counts: dict[str, int] = {}
    nodes: dict[Key, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    for path, node in definitions(tree):
        rank = counts.get(path, 0)
        counts[path] = rank + 1
        if not isinstance(node, ast.ClassDef):
            nodes[path, rank] = node
    return nodes


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> list[str]:
    """The lines of a definition, decorators included."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return lines[first - 1 : node.end_lineno]
