"""Whether a run that is held may be reached from another terminal, and for how long it waits for somebody."""

from __future__ import annotations

import os
from typing import Final

from daifu_bc.errors import UsageError

#: Whether a hold that neither a playbook nor a terminal answers waits for `daifu attach`: 1 or 0.
VARIABLE: Final = "DAIFU_ATTACH"
#: For how many seconds a hold waits for somebody: a number, or `none`.
TIMEOUT: Final = "DAIFU_HOLD_TIMEOUT"
#: What then becomes of it.
ON_TIMEOUT: Final = "DAIFU_ON_TIMEOUT"
_USUAL: Final = 30 * 60.0
#: More than that is a mistake, and no system can wait for it.
_MOST: Final = 10 * 365 * 24 * 3600.0
_ANSWERS: Final = ("raise",)


def wanted() -> bool:
    """Tell whether a hold waits for somebody who attaches."""
    return os.environ.get(VARIABLE) == "1"


def allowed() -> bool:
    """Tell whether a run that is held at a terminal can be reached from another one."""
    return os.environ.get(VARIABLE) != "0"


def checked_timeout(text: str) -> str:
    """A limit as the user has written it.

    Raises:
        UsageError: it is neither a number of seconds nor `none`.
    """
    found = text.strip().lower()
    try:
        if found == "none" or 0 < float(found) <= _MOST:
            return found
    except ValueError:
        pass
    raise UsageError(
        f"{text!r} is no time that a hold waits", remedy="Write a number of seconds, or none for no limit."
    )


def checked_answer(text: str) -> str:
    """What becomes of a hold for which nobody has come, as the user has written it.

    Raises:
        UsageError: there is no such answer.
    """
    found = text.strip().lower()
    if found in _ANSWERS:
        return found
    raise UsageError(
        f"{text!r} cannot be done with a hold for which nobody comes", remedy="What can be done is raise."
    )


def timeout() -> float | None:
    """For how many seconds a hold waits; None for no limit."""
    try:
        found = checked_timeout(os.environ.get(TIMEOUT) or str(_USUAL))
    except UsageError:  # the program has set it meanwhile
        return _USUAL
    return None if found == "none" else float(found)
