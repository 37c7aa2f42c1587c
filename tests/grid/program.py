"""A program of the grid, and what surgery makes of it."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field

REMEDIES = ("nothing", "pass", "skip", "surgery", "action", "raise")

_MENDED = {
    r"\bcrash\(": "work(",
    r"\bunit\(": "one(",
    r"\bGuard\(": "Sound(",
    r"\bStream\(": "Calm(",
    r"\bflaky_(\w+)\b": r"flaky_\1_sound",
}


@dataclass(frozen=True)
class GridProgram:
    """A program with one crashing call.

    Attributes:
        name: says what is special about it.
        source: its text; `tests.programs.world` says what it can call.
        at: the numbers of the failing calls; empty: whichever the caller likes.
        handled: the program itself handles the crash, so that nothing is held.
        remedies: what can be tried on it.
        edited: the text after surgery; without one, the calls in the crashing line are replaced.
        expected: a program that does what must have happened after surgery; without one, the edited text.
        answers: the words that answer each hold when surgery is tried.
        surgery_mode: the plan's mode when surgery is tried; ``line``: the crashing line is mended, and fails
            until then.
        action: the words that mend the cause without touching the text.
        plan_mode: the plan's mode for that action.
        sourceless: its text is not to be found anywhere.
        needs: the lowest Python version that can run it.
        note: why a remedy is left out, or what is peculiar.
    """

    name: str
    source: str
    at: tuple[int, ...] = ()
    handled: bool = False
    remedies: tuple[str, ...] = REMEDIES
    edited: str = ""
    expected: str = ""
    answers: tuple[tuple[str, ...], ...] = (("surgery", "pass"),)
    surgery_mode: str = "line"
    action: str = "mend()"
    plan_mode: str = "unmended"
    sourceless: bool = False
    needs: tuple[int, int] = (3, 11)
    note: str = field(default="", compare=False)

    def runs_here(self) -> bool:
        """Tell whether this Python can run it."""
        return sys.version_info[:2] >= self.needs

    def text_after_surgery(self, line: int) -> str:
        """The edited text.

        Args:
            line: the line that is mended if the program has no edited text of its own.
        """
        if self.edited:
            return self.edited
        lines = self.source.splitlines(keepends=True)
        lines[line - 1] = mended(lines[line - 1])
        return "".join(lines)


def mended(source: str) -> str:
    """Replace each call that can fail by one that cannot; the lines stay where they are."""
    for pattern, replacement in _MENDED.items():
        source = re.sub(pattern, replacement, source)
    return source
