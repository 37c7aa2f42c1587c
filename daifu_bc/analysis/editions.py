"""The source text of one code object, where an edit has made several for the same file."""

from __future__ import annotations

from types import CodeType
from typing import Final

from daifu_bc.analysis import sources
from daifu_bc.analysis.identity import ByIdentity

_texts: Final[ByIdentity[str]] = ByIdentity()


def register(code: CodeType, text: str) -> None:
    """Says that `code`, and the code objects in it, were compiled from this text and not from what its file was."""
    register_one(code, text)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            register(constant, text)


def register_one(code: CodeType, text: str) -> None:
    """Says the same of `code` alone."""
    _texts.put(code, text)


def lines(code: CodeType) -> list[str] | None:
    """The lines of the text that a pristine code object was compiled from, or None if they are not known."""
    text = _texts.get(code)
    return sources.lines(code.co_filename) if text is None else text.split("\n")
