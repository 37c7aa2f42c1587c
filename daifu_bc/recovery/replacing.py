"""The text of a module with one statement replaced."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from types import CodeType

from daifu_bc.analysis.counterparts import blocks_of
from daifu_bc.analysis.statements import find_function
from daifu_bc.errors import Refusal


def with_statement(text: str, tree: ast.Module, code: CodeType, line: int, new: str) -> str:
    """A text with the statement that begins on a line replaced; a compound one with all its blocks.

    Args:
        text: the text.
        tree: its syntax tree.
        code: the function that the statement belongs to.
        line: where it begins.
        new: what takes its place.

    Raises:
        Refusal: there is no such statement, or what stands beside it on its lines is in the way.
    """
    function = find_function(tree, code)
    statements = list(_statements((function or tree).body))
    node = next((one for one in statements if one.lineno == line), None)
    if node is None:
        lines = [str(number) for number in sorted({one.lineno for one in statements})]
        some = ", ".join(lines[:12]) + (", ..." if len(lines) > 12 else "")
        raise Refusal(f"no statement of {code.co_name} begins on line {line}", remedy=f"Lines: {some}.")
    lines = text.split("\n")
    last = node.end_lineno or line
    before = _columns(lines[line - 1], 0, node.col_offset)
    after = _columns(lines[last - 1], node.end_col_offset or 0, None)
    given = textwrap.dedent(new).strip("\n").rstrip()
    alone = not before.strip() and (not after.strip() or after.lstrip().startswith("#"))
    if not alone and "\n" in given:
        raise Refusal(
            f"other statements stand on line {line}, and the new text has several lines",
            remedy="Write it in one line, with `;`.",
        )
    placed = textwrap.indent(given, before) if alone else before + given
    return "\n".join([*lines[: line - 1], *(placed + after).split("\n"), *lines[last:]])


def _columns(line: str, first: int, last: int | None) -> str:
    """A part of a line, by columns as syntax trees count them."""
    return line.encode()[first:last].decode()


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a function, those around before those inside."""
    for node in body:
        yield node
        for _, block in blocks_of(node):
            yield from _statements(block)


def in_context(text: str, qualname: str, first: int) -> str:
    """A definition inside the classes that its qualified name tells, beginning at a line if there is room above it."""
    outer = qualname.split(".")[:-1]
    if "<locals>" in outer:
        raise Refusal(
            f"{qualname} is defined inside a function, and without source its variables of that function are not known",
            remedy="Define the new one by an action, and put it where the old one is used.",
        )
    head = [" " * depth + f"class {name}:" for depth, name in enumerate(outer)]
    blank = [""] * max(0, first - 1 - len(head))
    return "\n".join([*blank, *head, textwrap.indent(text, " " * len(head))])
