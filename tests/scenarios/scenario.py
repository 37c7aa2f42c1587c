"""One program that has a mistake, and how a person repairs its run."""

from __future__ import annotations

from typing import NamedTuple


class Scenario(NamedTuple):
    """A program with a mistake.

    Attributes:
        program: its text; it prints its events.
        mistakes: what the bug-free program has in the place of what.
        words: what the person says, a block for each hold.
        holds: how often it is held.
        says: what the person is told, among other things.
        options: of `daifu run`.
    """

    program: str
    mistakes: tuple[tuple[str, str], ...]
    words: str
    holds: int = 1
    says: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def fixed(self) -> str:
        """The text of the bug-free program."""
        text = self.program
        for wrong, right in self.mistakes:
            assert text.count(wrong) == 1, wrong
            text = text.replace(wrong, right)
        return text
