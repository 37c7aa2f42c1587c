"""The skip oracle: a program in which an injected crash ends its innermost statement, and only that."""

from __future__ import annotations

import ast
from types import CodeType
from typing import TypeVar

INJECTED_NAME = "_is_injected"
ERROR_NAME = "_injected_error"

_BLOCKS = ("body", "orelse", "finalbody")
_NEVER_CRASH = (ast.Global, ast.Nonlocal, ast.Pass, ast.Break, ast.Continue)
Node = TypeVar("Node", bound=ast.AST)


def compile_skipping(source: str, filename: str) -> CodeType:
    """Compile the source with each statement wrapped, so that an injected exception stands for ``pass``.

    A header of a compound statement stands for the whole compound statement; the statements in its blocks
    are wrapped themselves. Nothing of the engine is used.
    """
    tree = ast.parse(source)
    _Skipping().visit(tree)
    return compile(ast.fix_missing_locations(tree), filename, "exec", dont_inherit=True)


class _Skipping(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                setattr(node, name, [self._wrapped(statement, node, i) for i, statement in enumerate(block)])
        return node

    def _wrapped(self, statement: ast.stmt, parent: ast.AST, index: int) -> ast.stmt:
        if isinstance(statement, _NEVER_CRASH) or _is_docstring(statement, parent, index):
            return statement
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            return statement
        # try: statement
        # except BaseException as error: if not injected: raise
        template = ast.parse(
            f"try:\n    pass\nexcept BaseException as {ERROR_NAME}:\n    if not {INJECTED_NAME}({ERROR_NAME}):\n        raise"
        )
        wrapper = template.body[0]
        assert isinstance(wrapper, ast.Try)
        for part in ast.walk(wrapper):
            ast.copy_location(part, statement)
        wrapper.body = [statement]
        return wrapper


def _is_docstring(statement: ast.stmt, parent: ast.AST, index: int) -> bool:
    return (
        index == 0
        and isinstance(parent, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        and isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
    )
