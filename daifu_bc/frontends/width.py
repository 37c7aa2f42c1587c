"""How many columns of a terminal a text takes: a letter of Chinese two, an accent of its own none."""

from __future__ import annotations

import functools
import os
import sys
import unicodedata
from collections.abc import Sequence
from typing import Final

#: What stands for what has been cut off.
_CUT: Final = "..."
_BETWEEN: Final = "  "
#: Columns that are enough to read a text in, over several lines.
_ENOUGH: Final = 20


@functools.lru_cache(maxsize=4096)
def _of(character: str) -> int:
    category = unicodedata.category(character)
    if category in ("Mn", "Me", "Cf"):
        return 0
    # Of what is no character, CPython does not say reliably how wide it is.
    return 2 if category != "Cn" and unicodedata.east_asian_width(character) in ("W", "F") else 1


def width(text: str) -> int:
    """Return how many columns a line takes."""
    return len(text) if text.isascii() else sum(map(_of, text))


def padded(text: str, columns: int, fill: str = " ") -> str:
    """Return a line that takes so many columns, if it does not take more."""
    return text + fill * (columns - width(text))


def cut(text: str, columns: int) -> str:
    """Return a line that takes at most so many columns; what is cut off is shown by dots."""
    if width(text) <= columns:
        return text
    room = columns - len(_CUT)
    kept = ""
    for character in text:
        room -= _of(character)
        if room < 0:
            break
        kept += character
    return kept + _CUT


def terminal_width(stream: object = None) -> int | None:
    """Return how many columns the terminal has that a stream writes to; None if it is none, or does not know.

    Args:
        stream: standard error if left out.
    """
    stream = sys.__stderr__ if stream is None else stream
    try:
        number = stream.fileno()  # type: ignore[attr-defined]
        if not os.isatty(number):
            return None
        return os.get_terminal_size(number).columns or None
    except (OSError, ValueError, AttributeError):
        return None


def fits(before: int, last: int, room: int | None) -> bool:
    """Tell whether lines can be shown in columns: there is room for some of the last one, which may go on below.

    Args:
        before: how many columns the parts before it take.
        last: how many it would take.
        room: how many there are; None for any number.
    """
    return room is None or before + min(last, _ENOUGH) <= room


def table(rows: Sequence[Sequence[str]], room: int | None = None, *, heading: bool = False) -> str:
    """Return rows as lines, each part below that of the row before.

    Args:
        rows: they have the same number of parts.
        room: columns that there are; None for any number. Where they are too few, each part but the first is put on a
            line of its own.
        heading: whether the first row names the parts.
    """
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    before_last = sum(widths[:-1]) + len(_BETWEEN) * (len(widths) - 1)
    if fits(before_last, widths[-1], room):
        return "\n".join(
            _BETWEEN.join(padded(part, most) for part, most in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )
    # The names of the parts would stand above nothing.
    return "\n".join(
        "\n".join([row[0], *(f"  {part}" for part in row[1:] if part)]) for row in rows[1 if heading else 0 :]
    )
