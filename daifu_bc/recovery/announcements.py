"""What happens to holds, told to whoever listens: who keeps a record for others, or calls somebody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.telling import tell
from daifu_bc.recovery.working import came_from_outside

#: `held` comes before anybody is asked, `resumed` when it is decided how the run goes on, `timed out` in between if
#: nobody has come in time.
Kind = Literal["held", "resumed", "timed out"]
#: Called in the held thread with what has happened, the hold, and a few words of why; it is not to wait for anything.
Listener = Callable[[Kind, HoldLike, str], None]

_listeners: list[Listener] = []


def listen(listener: Listener) -> None:
    """Call a listener from now on; once, however often it is put in."""
    if listener not in _listeners:
        _listeners.append(listener)


def announce(kind: Kind, hold: HoldLike, reason: str = "") -> None:
    """Tell what has happened to a hold.

    Args:
        kind: what it is.
        hold: the hold.
        reason: why, in a few words: the word that decided, say.
    """
    for listener in _listeners:
        try:
            listener(kind, hold, reason)
        except Exception as error:
            if came_from_outside(error):
                raise
            # Rule 1: a fault of ours is told, and the hold goes its way.
            tell(f"daifu_bc: who is told of holds has failed ({type(error).__name__}: {error}).")
