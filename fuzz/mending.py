"""The failing calls of a program's text: their keys, how one is mended, and how more are put in."""

from __future__ import annotations

import ast
import re

from tests.grid.program import mended

FAILING = ("crash", "unit", "Guard", "Stream")
#: Keys of the calls that `with_statements` puts in begin here.
FIRST_INSERTED = 1000

_KEY = re.compile(r"\bkey=(\d+)\)")
_NAME = re.compile(r"(\w+)$")


def keys_of(source: str) -> tuple[int, ...]:
    """The keys of the calls that can fail."""
    return tuple(sorted({key for _, _, key in _failing_calls(source)}))


def with_mended(source: str, key: int) -> str:
    """The text with the failing calls of one key replaced by ones that cannot fail; lines stay where they are."""
    for start, opening, other in sorted(_failing_calls(source), reverse=True):
        if other == key:
            source = source[:start] + mended(source[start : opening + 1]) + source[opening + 1 :]
    return source


def _failing_calls(source: str) -> list[tuple[int, int, int]]:
    """Where the name of each begins, where its parenthesis opens, and its key."""
    found = []
    for match in _KEY.finditer(source):
        depth, position = 0, match.start()
        while position > 0:
            position -= 1
            if source[position] == ")":
                depth += 1
            elif source[position] == "(":
                if not depth:
                    break
                depth -= 1
        name = _NAME.search(source[:position])
        if name is not None and name[1] in FAILING:
            found.append((name.start(), position, int(match[1])))
    return found


def with_statements(source: str) -> str:
    """The program with a failing call as a statement of its own before each statement and behind each block."""
    tree = ast.parse(source)
    _Inserting().visit(tree)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


class _Inserting(ast.NodeTransformer):
    def __init__(self) -> None:
        self._key = FIRST_INSERTED

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                setattr(node, name, self._filled(block))
        return node

    def _filled(self, block: list[ast.stmt]) -> list[ast.stmt]:
        filled: list[ast.stmt] = []
        for place, statement in enumerate(block):
            documents = (
                place == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            )
            if not documents and not isinstance(statement, (ast.Global, ast.Nonlocal)):
                filled.append(self._call())
            filled.append(statement)
        if not isinstance(block[-1], (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            filled.append(self._call())
        return filled

    def _call(self) -> ast.stmt:
        self._key += 1
        return ast.parse(f"crash(key={self._key})").body[0]


def has_dropped_code(source: str) -> bool:
    """Whether the compiler drops statements because a `return` with a value always comes before them.

    Were that `return` skipped, the run would go on there.
    """
    for node in ast.walk(ast.parse(source)):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and any(_leaves(statement) for statement in block[:-1]):
                return True
    return False


def _leaves(statement: ast.AST) -> bool:
    if isinstance(statement, ast.If) and isinstance(statement.test, ast.Constant):
        block = statement.body if statement.test.value else statement.orelse
        return any(map(_leaves, block))
    if isinstance(statement, ast.If) and statement.orelse:
        return any(map(_leaves, statement.body)) and any(map(_leaves, statement.orelse))
    if isinstance(statement, (ast.With, ast.AsyncWith, ast.Try)):
        return any(map(_leaves, statement.body))
    return isinstance(statement, ast.Return)
