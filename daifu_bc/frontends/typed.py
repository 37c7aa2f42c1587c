"""What is typed at a prompt: where a text ends, and which commands it is."""

from __future__ import annotations

import codeop
from typing import Final

from daifu_bc.frontends.commands import ACTION, read
from daifu_bc.frontends.reader import BrokenOffError, Reader
from daifu_bc.frontends.script import Command, here_document_end, parse

PROMPT: Final = "daifu> "
CONTINUATION: Final = "...    "


def parse_typed(text: str) -> list[Command]:
    """Return the commands of a text that was typed; a statement over several lines is one action."""
    first, newline, _ = text.partition("\n")
    source = _python_of(text)
    if newline and source is not None and here_document_end(first) is None and unfinished(first):
        return [Command(1, "action", source + "\n")]
    return parse(text)


def read_text(reader: Reader, begun: str = "") -> str:
    """Return a line, with the lines after it that belong to it.

    Args:
        reader: gives them.
        begun: those that were there when the prompt was broken off.

    Raises:
        BrokenOffError: the prompt is broken off.
    """
    text = begun or reader.read(PROMPT)
    try:
        while unfinished(text):
            text += "\n" + reader.read(CONTINUATION)
    except BrokenOffError as error:
        error.begun = text
        raise
    return text


def unfinished(text: str) -> bool:
    """Tell whether more lines belong to a text: a here-document is open, or a statement is not complete."""
    first, *rest = text.split("\n")
    end = here_document_end(first)
    if end is not None:
        return end not in (line.strip() for line in rest)
    source = _python_of(text)
    if source is None:
        return False
    try:
        return codeop.compile_command(source, "<action>", "single") is None
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return False  # complete, and wrong: the action says how


def _python_of(text: str) -> str | None:
    """Return the code of a text that is an action; None if it is another word."""
    first, newline, rest = text.partition("\n")
    if not first.strip() or first.lstrip().startswith("#"):
        return None
    word, request = read(Command(1, first.strip()))
    if word is not ACTION or request.argument.startswith("@") or not request.argument:
        return None
    return request.argument + newline + rest
