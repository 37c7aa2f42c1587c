"""Where code comes from that a surgery has given: the file that the code was loaded from in whose place it is."""

from __future__ import annotations

import ast
import itertools
import linecache
import os
from typing import Final

from daifu_bc.recovery import cells

_numbers: Final = itertools.count(1)
#: The files of the code that new text was given for, by the name of that text.
_origins: Final[dict[str, str]] = {}


def origin(filename: str) -> str:
    """The file that code was loaded from, also if a surgery has given it text from elsewhere."""
    return _origins.get(filename, filename)


def takes_place_of(name: str, filename: str) -> None:
    """Takes note that a text is in the place of another one.

    Args:
        name: the file's name that its code gets.
        filename: that of the other one.
    """
    if name != filename:
        _origins[name] = origin(filename)


def invent(filename: str, text: str) -> str:
    """A name for text that is in no file, known to linecache so that tracebacks show it."""
    original = (
        filename[1:-1].rpartition(" of ")[2]
        if filename.startswith("<surgery ")
        else cells.label(filename) or os.path.basename(filename)
    )
    name = f"<surgery {next(_numbers)} of {original}>"
    takes_place_of(name, filename)
    linecache.cache[name] = (len(text), None, [line + "\n" for line in text.split("\n")], name)
    return name


def flags_for(filename: str) -> int:
    """What text in the place of a file may say beside what a module may: a notebook's cell awaits.

    Args:
        filename: the file's name.
    """
    return ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if cells.is_cell(origin(filename)) else 0


def are_of_one_text(filename: str, other: str, *, one_module: bool) -> bool:
    """Tell whether code of two files' names belongs to one text.

    Args:
        filename: the one.
        other: the other.
        one_module: whether both have the same globals: then they do, but for two cells of a notebook.
    """
    here, there = origin(filename), origin(other)
    if here == there:
        return True
    return one_module and not (cells.is_cell(here) and cells.is_cell(there))
