"""Whether a run that is held may be reached from another terminal, and for how long it waits for somebody."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Final

from daifu_bc.errors import UsageError
from daifu_bc.recovery import meeting

#: Whether a hold that neither a playbook nor a terminal answers waits for `daifu attach`: 1 or 0; if it is left out,
#: it does where that is possible.
VARIABLE: Final = "DAIFU_ATTACH"
#: For how many seconds a hold waits for somebody: a number, or `none`.
TIMEOUT: Final = "DAIFU_HOLD_TIMEOUT"
#: What then becomes of it.
ON_TIMEOUT: Final = "DAIFU_ON_TIMEOUT"
#: Whether root may attach as well: 1 or 0.
ROOT: Final = "DAIFU_ATTACH_ROOT"
_USUAL: Final = 30 * 60.0
#: More than that is a mistake, and no system can wait for it.
_MOST: Final = 10 * 365 * 24 * 3600.0
_ANSWERS: Final = ("raise",)


#: The process for which it was found out whether there is a way to attach, and what was found.
_possible = (0, False)


def asked_for() -> bool:
    """Tell whether somebody has said that holds are to wait for who attaches."""
    return os.environ.get(VARIABLE) == "1"


def wanted() -> bool:
    """Tell whether a hold waits for somebody who attaches: where nothing was said, it does if that is possible."""
    global _possible
    said = os.environ.get(VARIABLE)
    if said in ("0", "1"):
        return said == "1"
    if _possible[0] != os.getpid():
        _possible = (os.getpid(), meeting.is_possible())
    return _possible[1]


def allowed() -> bool:
    """Tell whether the run may be reached from another terminal at all."""
    return os.environ.get(VARIABLE) != "0"


def may_come(user: int | None) -> bool:
    """Tell whether somebody may attach.

    Args:
        user: the number of the user; None if the system does not tell.
    """
    return user == os.getuid() or (user == 0 and os.environ.get(ROOT) == "1")


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


class _Limit(threading.local):
    """For how many seconds the hold of this thread waits, if a rule has said so."""

    seconds: float | None = None


_limit: Final = _Limit()


@contextlib.contextmanager
def own_limit() -> Iterator[None]:
    """Within, a hold is answered, which may be given a limit of its own."""
    before, _limit.seconds = _limit.seconds, None
    try:
        yield
    finally:
        _limit.seconds = before


def limit_to(seconds: float) -> None:
    """Have the hold that this thread answers wait for so long.

    Args:
        seconds: that long.
    """
    _limit.seconds = seconds


def limit_of_rule() -> float | None:
    """For how many seconds the hold that this thread answers waits, if a rule has said so."""
    return _limit.seconds


def timeout() -> float | None:
    """For how many seconds the hold that this thread answers waits; None for no limit."""
    if _limit.seconds is not None:
        return _limit.seconds
    try:
        found = checked_timeout(os.environ.get(TIMEOUT) or str(_USUAL))
    except UsageError:  # the program has set it meanwhile
        return _USUAL
    return None if found == "none" else float(found)
