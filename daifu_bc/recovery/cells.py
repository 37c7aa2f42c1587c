"""The cells of a notebook: each has a text and a name of a file of its own, and all have the same globals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from daifu_bc.errors import Refusal


class Edited(NamedTuple):
    """A cell whose text in the notebook's file is another than what has run.

    Attributes:
        scope: the globals.
        filename: that of the code that runs.
        old: the text that has run.
        new: the text in the file.
        new_name: the file name that new code gets.
    """

    scope: dict[str, Any]
    filename: str
    old: str
    new: str
    new_name: str


#: By the name of the file what a person calls the cell.
_labels: Final[dict[str, str]] = {}
#: Finds the cells that were edited in the notebook's file; raises Refusal if there is none.
_finders: Final[list[Callable[[], list[Edited]]]] = []


def add(filename: str, label: str) -> None:
    """Take note that code of this file's name is from a cell.

    Args:
        filename: as the code gives it.
        label: what the cell is called: `In[3]`.
    """
    _labels[filename] = label


def is_cell(filename: str) -> bool:
    """Tell whether code of this file's name is from a cell."""
    return filename in _labels


def label(filename: str) -> str:
    """Return what a person calls the cell that code of this file's name is from; empty if it is from none."""
    return _labels.get(filename, "")


def find_by(finder: Callable[[], list[Edited]]) -> None:
    """Say who finds the cells that were edited."""
    _finders.append(finder)


def edited(*, needed: bool) -> list[Edited]:
    """Return the cells whose text in the notebook's file is another than what has run.

    Args:
        needed: whether nothing else would do.

    Raises:
        Refusal: it is needed, and there is no such file.
    """
    found: list[Edited] = []
    for finder in _finders:
        try:
            found += finder()
        except Refusal:
            if needed:
                raise
    return found


def forget() -> None:
    """Look for edited cells no more; what is known of those that have run stays."""
    _finders.clear()
