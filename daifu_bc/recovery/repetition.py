"""How often the same has happened after retries, and when an answer is not repeated any more."""

from __future__ import annotations

import os
from typing import Final

from daifu_bc.errors import UsageError

#: After how many retries that have changed nothing an answer is not repeated any more: a number, or `none`.
VARIABLE: Final = "DAIFU_RETRY_LIMIT"
_USUAL: Final = 3


class Repetition:
    """How often the same has happened before, one time after the other.

    Args:
        again: retries after which the same exception came at the same place, with the same variables.
        idle: the last of them before which nothing was done, either.
    """

    __slots__ = ("again", "idle")

    # No named tuple or data class: children import this module at their start, and those bring much along.
    def __init__(self, again: int = 0, idle: int = 0) -> None:
        self.again = again
        self.idle = idle

    @property
    def sentence(self) -> str:
        """What there is to say to a person; empty if nothing."""
        if not self.idle:
            return ""
        times = "once" if self.idle == 1 else f"{self.idle} times"
        return f"the same error at the same place; it has been retried {times} with nothing changed."


def checked(text: str) -> str:
    """A limit as the user has written it.

    Raises:
        UsageError: it is neither a number from 1 nor `none`.
    """
    found = text.strip().lower()
    if found == "none" or (found.isdecimal() and int(found)):
        return found
    raise UsageError(f"{text!r} is no limit for retries", remedy="Write a number from 1, or none.")


def limit() -> int | None:
    """After how many retries that have changed nothing an answer is not repeated; None for no limit."""
    try:
        found = checked(os.environ.get(VARIABLE) or str(_USUAL))
    except UsageError:  # the program has set it meanwhile
        return _USUAL
    return None if found == "none" else int(found)
