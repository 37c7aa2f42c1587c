"""What answers a hold when nobody is there: rules, in order. The first one that matches and decides wins.

Here is which ones there are; front ends make them and do what they say.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Final

#: The file in which rules stand.
VARIABLE: Final = "DAIFU_POLICY"
#: What a rule is for that does not say it.
USUAL: Final = ("Exception",)

#: Returns words, or None if there is nothing to be said; it may also have decided.
Function = Callable[[Any], object]


class Rule:
    """What is to be done about holds of some kind.

    Attributes:
        name: how it is called to people: where it stands.
        raises: classes, or names of classes, of what was raised.
        where: names of functions; empty for anywhere.
        message: finds what the exception has to say, if not any will do.
        do: words, or the program's function, which is given the hold.
        times: at most so often in a row about the same statement; None for as long as it changes something.
        total: at most so often in all; None for any number.
        wait: for how many seconds it waits before.
        factor: how many times longer, each time in a row.
        longest: the longest time that it waits.
        limit: for how many seconds people are waited for, if it leaves the hold to them; None for as long as ever.
        done: how often it has been done.
    """

    # No data class: children import this module at their start, and that brings much along.
    __slots__ = (
        "do",
        "done",
        "factor",
        "limit",
        "longest",
        "message",
        "name",
        "raises",
        "times",
        "total",
        "wait",
        "where",
    )

    def __init__(self, name: str, do: str | Function) -> None:
        self.name = name
        self.do = do
        self.raises: Sequence[str | type[BaseException]] = USUAL
        self.where: Sequence[str] = ()
        self.message: Callable[[str], object] | None = None
        self.times: int | None = None
        self.total: int | None = None
        self.wait = 0.0
        self.factor = 1.0
        self.longest = float("inf")
        self.limit: float | None = None
        self.done = 0

    def pause(self, number: int) -> float:
        """Return for how many seconds it waits before it is done.

        Args:
            number: for the how many-th time in a row.
        """
        try:
            return min(self.wait * self.factor ** (number - 1), self.longest)
        except OverflowError:
            return self.longest


#: Those of the file, and those that the program has made since.
_of_file: list[Rule] = []
_made: list[Rule] = []
#: The file that was read; None if none was.
_file: str | None = None


def loaded() -> bool:
    """Tell whether there are rules; not those of a file that is to be read yet."""
    return bool(_of_file or _made)


def present() -> bool:
    """Tell whether there are rules, or a file that is to be read yet."""
    return loaded() or wanted_file() is not None


def every() -> list[Rule]:
    """Return all rules, those of the file first."""
    return [*_of_file, *_made]


def wanted_file() -> str | None:
    """Return the name of the file that is to be read yet; None if there is none."""
    name = os.environ.get(VARIABLE)
    return name if name and name != _file else None


def take_file(name: str, found: Sequence[Rule]) -> None:
    """Have the rules of a file, in place of those of the one before.

    Args:
        name: the file's.
        found: its rules.
    """
    global _file
    _of_file[:] = found
    _file = name


def add(rule: Rule) -> None:
    """Have one more rule; one that is for the same, made by the same code run again, takes the other's place."""
    for number, known in enumerate(_made):
        if (known.name, known.raises, known.where) == (rule.name, rule.raises, rule.where):
            _made[number] = rule
            return
    _made.append(rule)
