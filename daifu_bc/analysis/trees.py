"""Syntax trees and code of source texts, the latest ones kept: a large module takes tens of milliseconds each time."""

from __future__ import annotations

import ast
import functools
from collections.abc import Container
from types import CodeType
from typing import Final, NamedTuple

from daifu_bc.analysis.code import code_objects

# Few, for a tree of a large module has tens of thousands of objects: the text that runs, the new one, a definition.
_KEPT: Final = 4

Place = tuple[str, int, bytes, bytes]


class Compiled(NamedTuple):
    """What a text compiles to.

    Attributes:
        module: its code object.
        places: what tells the code objects in it apart from those of other texts.
    """

    module: CodeType
    places: frozenset[Place]


@functools.lru_cache(maxsize=_KEPT)
def tree_of(text: str) -> ast.Module:
    """The syntax tree of a text, which nobody may change.

    Raises:
        SyntaxError, ValueError, RecursionError: as `ast.parse`.
    """
    return ast.parse(text)


@functools.lru_cache(maxsize=_KEPT)
def compiled(text: str, filename: str, flags: int = 0) -> Compiled:
    """What a text compiles to.

    Args:
        text: the source.
        filename: the name that the code gets.
        flags: futures that it was compiled under beside its own.

    Raises:
        SyntaxError, ValueError, RecursionError: as `compile`.
    """
    module = compile(tree_of(text), filename, "exec", flags, dont_inherit=True)
    return Compiled(module, frozenset(map(place_of, code_objects(module))))


def place_of(code: CodeType) -> Place:
    """What tells a code object apart from those of other texts, under the same name of the file."""
    return code.co_qualname, code.co_firstlineno, code.co_code, code.co_linetable


def said(node: object, without: Container[str] = ()) -> object:
    """What a part of a tree says, wherever it stands: equal and hashable if it says the same.

    Args:
        node: the part.
        without: fields of it that do not count.
    """
    # `ast.dump` says the same, but takes three times as long, and imports half a colour scheme on its first use (3.15).
    if isinstance(node, ast.AST):
        return type(node), *[said(getattr(node, name, None)) for name in node._fields if name not in without]
    if isinstance(node, list):
        return tuple(map(said, node))
    if node is None or type(node) is str:
        return node
    return type(node), repr(node)  # 1, 1.0 and True are equal, but not the same
