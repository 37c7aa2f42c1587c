"""The notebook's file as the front end has saved it: which of its cells were edited since they ran."""

from __future__ import annotations

import ast
import difflib
import json
import os
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from daifu_bc.errors import Refusal
from daifu_bc.integrations.ipython import Cells, Ran, without_last
from daifu_bc.recovery import cells, history
from daifu_bc.recovery.origins import origin

#: The variable by which a Jupyter server tells a kernel which notebook it is for, and the name by which VS Code does.
_VARIABLE: Final = "JPY_SESSION_NAME"
_NAME: Final = "__vsc_ipynb_file__"
#: How much of a cell's text has to be the same for it to be taken for that cell edited, if the front end names none.
_LIKE: Final = 0.5
#: Characters of two texts that are compared one by one.
_LONG: Final = 4000
_REMEDY: Final = "Use `surgery NAME <<END`, the definition line by line, and END; or `surgery FILE`, an edited copy of the cell."


class Saved(NamedTuple):
    """A cell in a notebook's file.

    Attributes:
        cell_id: its identifier; empty in old formats.
        text: its source.
    """

    cell_id: str
    text: str


class NotebookFile:
    """The file of the notebook that a shell is for.

    Args:
        shell: IPython's.
        ran: what has run in it.
    """

    def __init__(self, shell: Any, ran: Cells) -> None:
        self._shell = shell
        self._cells = ran
        #: Texts that were taken from the file, by the file's name of the cell that ran.
        self._taken: set[tuple[str, str]] = set()

    def edited(self) -> list[cells.Edited]:
        """Return the cells that were edited and saved since they ran.

        Raises:
            Refusal: nobody knows the file, or it cannot be read.
        """
        path = self._path()
        saved, when = _read(path)
        # A cell that ran after the notebook was saved has a text that is newer.
        ran = [cell for cell in self._cells.ran.values() if cell.when < when]
        found = []
        for cell, text in _pairs(ran, saved):
            change = self._change(cell, text)
            if change is not None:
                found.append(change)
        return found

    def _path(self) -> str:
        for name in (self._shell.user_ns.get(_NAME), os.environ.get(_VARIABLE)):
            if isinstance(name, str) and name.endswith(".ipynb") and os.path.isfile(name):
                return name
        raise Refusal("the file of this notebook is not known", remedy=_REMEDY)

    def _change(self, cell: Ran, text: str) -> cells.Edited | None:
        """What has become of a cell, if it is another text than the one that runs now."""
        if text.startswith("%%surgery"):
            text = text.partition("\n")[2]  # the rest has run as a cell
        new = self._shell.transform_cell(text)
        if cell.shows:
            try:
                last = ast.parse(new).body[-1]
            except (SyntaxError, ValueError, IndexError):
                last = None
            if isinstance(last, ast.Expr):
                new = without_last(new, last)
        running, from_file = cell.text, False
        for step in history.steps():
            for change in step.texts:
                if change.filename == origin(cell.filename) and change.old == running:
                    running = change.new
                    from_file = from_file or (change.filename, change.new) in self._taken
        # What a person has changed at the prompt is not taken back because it is not in the file.
        if _same(new, running) or (_same(new, cell.text) and not from_file):
            return None
        name = self._shell.compile.cache(self._shell.transform_cell(text), cell.number, text)
        cells.add(name, cells.label(cell.filename))
        self._taken.add((origin(cell.filename), new))
        return cells.Edited(self._shell.user_ns, cell.filename, running, new, name)


def _same(text: str, other: str) -> bool:
    return text.rstrip() == other.rstrip()


def _read(path: str) -> tuple[list[Saved], float]:
    """The cells of code in a notebook's file, and when that was written."""
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
            when = os.stat(file.fileno()).st_mtime
        found = [
            Saved(str(cell.get("id", "")), "".join(cell["source"]))
            for cell in content["cells"]
            if cell["cell_type"] == "code"
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refusal(f"{path} cannot be read", why=str(error), remedy=_REMEDY) from None
    return found, when


def _pairs(ran: Sequence[Ran], saved: Sequence[Saved]) -> Iterable[tuple[Ran, str]]:
    """Which cell of the file has which text now; one that ran several times is meant as it ran last."""
    latest = {cell.cell_id: cell for cell in ran if cell.cell_id}
    left = []
    for candidate in saved:
        known = latest.get(candidate.cell_id) if candidate.cell_id else None
        if known is None:
            left.append(candidate)
        else:
            yield known, candidate.text
    # Some front ends do not tell which cell they run.
    unnamed = [cell for cell in reversed(ran) if not cell.cell_id]
    likeness = sorted(
        (
            (_likeness(cell.text, candidate.text), -place, cell, candidate)
            for place, cell in enumerate(unnamed)
            for candidate in left
        ),
        key=lambda one: one[:2],
        reverse=True,
    )
    used: list[object] = []
    for like, _, cell, candidate in likeness:
        if like >= _LIKE and not any(cell is one or candidate is one for one in used):
            used += [cell, candidate]
            yield cell, candidate.text


def _likeness(text: str, other: str) -> float:
    if len(text) + len(other) > _LONG:
        return difflib.SequenceMatcher(None, text.split("\n"), other.split("\n"), autojunk=False).ratio()
    return difflib.SequenceMatcher(None, text, other, autojunk=False).ratio()
