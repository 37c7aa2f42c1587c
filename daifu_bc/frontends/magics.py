"""What is typed in a cell while nothing is held there: `%surgery`, `%%surgery`, `%daifu`."""

from __future__ import annotations

import ast
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from daifu_bc.errors import DaifuError, Refusal
from daifu_bc.frontends.switching import described
from daifu_bc.frontends.values import printable
from daifu_bc.integrations.ipython import Cells
from daifu_bc.recovery import cells, pause, surgeries
from daifu_bc.recovery.edits import DEFINITIONS, running_source
from daifu_bc.recovery.likeness import saying
from daifu_bc.recovery.swap import live_functions
from daifu_bc.recovery.turns import turns
from daifu_bc.rewrite.barrier import pristine

USAGE = """\
%daifu               what is vaccinated, and which holds wait
%daifu pause         stop the main thread at its next statement (from a subshell)
%daifu undo          take the last surgery back
%daifu patch [FILE]  all surgery so far as a diff
%surgery             take what was edited and saved: cells of this notebook, and modules of the project
%surgery NAME ...    functions and classes that were defined again take the place of those that still run
%%surgery            run the cell, then the same for all that it defines"""


class Magics:
    """The magics of one shell.

    Args:
        shell: IPython's.
        cells: its cells.
        state: says in a line what is vaccinated.
    """

    def __init__(self, shell: Any, cells: Cells, state: Callable[[], str]) -> None:
        self.shell = shell
        self.cells = cells
        self.state = state

    def register(self) -> None:
        """Let the shell know them."""
        self.shell.register_magic_function(self.surgery, "line_cell", "surgery")
        self.shell.register_magic_function(self.daifu, "line", "daifu")

    def unregister(self) -> None:
        """Let the shell forget them."""
        for kind, name in (("line", "surgery"), ("cell", "surgery"), ("line", "daifu")):
            self.shell.magics_manager.magics[kind].pop(name, None)

    def surgery(self, line: str, cell: str | None = None) -> None:
        """Replace functions by what cells or files say now; `%daifu help` tells more."""
        names = line.split()
        if cell is None:
            _say(lambda: self._replace(names) if names else self._take_saved())
            return
        result = self.shell.run_cell(cell, store_history=False, cell_id=self.cells.present_id())
        if result.success:
            _say(lambda: self._replace(names or _defined_in(self.shell.transform_cell(cell))))

    def daifu(self, line: str) -> None:
        """Tell how things are, pause, or take a surgery back; `%daifu help` tells more."""
        word, _, rest = line.strip().partition(" ")
        known = {
            "": self._status,
            "undo": surgeries.undo,
            "patch": lambda: _patch(rest.strip()),
            "pause": _pause,
            "help": lambda: USAGE,
        }
        _say(known.get(word, lambda: _refuse(word)))

    def _status(self) -> str:
        lines = [self.state()]
        for place in turns.places():
            where = cells.label(place.filename) or place.filename
            error = described(place.error[0], printable(place.error[1]))
            lines.append(
                f"hold {place.number}: thread {printable(place.thread)}, {error} at {where}:{place.line}"
            )
        return "\n".join(lines)

    def _take_saved(self) -> str:
        """What the word `surgery` does, and what was run again."""
        return surgeries.surgery()

    def _replace(self, names: list[str]) -> str:
        """Give all older functions and methods of these names the body of those that the names mean now."""
        answers = [answer for name in names for answer in self._replace_one(name)]
        if not answers:
            what = ", ".join(names) or "nothing"
            return f"{what}: no older function is left that would have to be replaced"
        return "\n".join(answers)

    def _replace_one(self, name: str) -> Iterator[str]:
        older, newest = self._versions(name)
        for qualname, old in older:
            function = newest[qualname]
            text = _text_of(function)
            if text is None:
                raise Refusal(
                    f"the text of {qualname} is not known",
                    remedy="Define it in a cell, after `%load_ext daifu_bc`.",
                )
            yield surgeries.surgery(old, text)

    def _versions(self, name: str) -> tuple[list[tuple[str, FunctionType]], dict[str, FunctionType]]:
        """The functions that run older code, one for each code; and what their qualified names mean now."""
        space = self.shell.user_ns
        newest = {function.__code__.co_qualname: function for function in _functions_of(space.get(name))}
        if not newest:
            raise Refusal(f"{name} is no function, and no class, that a cell has defined")
        present = {id(pristine(function.__code__)) for function in newest.values()}
        older: list[tuple[str, FunctionType]] = []
        seen: set[int] = set()
        for function in live_functions(space, lambda _: True):
            code = pristine(function.__code__)
            now = newest.get(code.co_qualname)
            if now is None or id(code) in present or id(code) in seen:
                continue
            seen.add(id(code))
            if saying(code) != saying(pristine(now.__code__)):
                older.append((code.co_qualname, function))
        return older, newest


def _functions_of(thing: object) -> Iterator[FunctionType]:
    """The function that a name means, or those of the class."""
    if isinstance(thing, type):
        for value in vars(thing).values():
            if getattr(value, "__qualname__", "").startswith(f"{thing.__qualname__}."):
                yield from _functions_of(value)
            elif isinstance(value, property):
                for part in (value.fget, value.fset, value.fdel):
                    yield from _functions_of(part)
        return
    found: Any = thing
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    if isinstance(found, staticmethod | classmethod):
        found = found.__func__
    if isinstance(found, FunctionType):
        yield found


def _text_of(function: FunctionType) -> str | None:
    """The text of a function's definition."""
    code = pristine(function.__code__)
    text = running_source(code)
    if text is None:
        return None
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DEFINITIONS) and node.name == code.co_name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == code.co_firstlineno:
                return textwrap.dedent("\n".join(text.split("\n")[first - 1 : node.end_lineno]))
    return None


def _defined_in(text: str) -> list[str]:
    return [node.name for node in ast.parse(text).body if isinstance(node, DEFINITIONS)]


def _patch(path: str) -> str:
    text = surgeries.patch()
    if not text or not path:
        return text.rstrip("\n") or "No surgery has changed anything that is not in the files."
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    return f"written to {path}"


def _pause() -> str:
    if threading.current_thread() is threading.main_thread():
        raise Refusal(
            "this is the main thread, which runs this cell",
            remedy="Say it in a subshell, or send the process the signal SIGUSR1.",
        )
    pause.pause()
    return "the main thread stops at its next statement"


def _refuse(word: str) -> str:
    raise Refusal(f"`%daifu` knows no word {word!r}", remedy=f"It is used like this:\n{USAGE}")


def _say(work: Callable[[], str]) -> None:
    """Print what comes of it; a refusal makes the cell fail, in a line.

    Raises:
        UsageError: IPython's; it was refused.
    """
    from IPython.core.error import UsageError

    try:
        text = work()
    except (DaifuError, OSError) as error:
        raise UsageError(f"daifu: {error}") from None
    sys.stdout.write(f"{text}\n")
