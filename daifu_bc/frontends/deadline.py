"""A hold that waits no longer than is said: at the terminal as a rule says, elsewhere as ever."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Final

from daifu_bc.frontends.calls import calls
from daifu_bc.recovery import attaching, journal
from daifu_bc.recovery.announcements import announce
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.telling import tell

#: Seconds after which it is tried again, where another hold is being asked about.
_AGAIN: Final = 1.0


class Deadline:
    """Lets a hold go when nothing has been typed for some time.

    Args:
        hold: the hold.
        seconds: for how long.
    """

    def __init__(self, hold: HoldLike, seconds: float) -> None:
        self._hold = weakref.ref(hold)
        self._seconds = seconds
        self._ended = threading.Event()

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Within, the hold is asked about."""
        thread = threading.Thread(target=self._wait, name="daifu deadline", daemon=True)
        with contextlib.suppress(RuntimeError):  # there is no memory for a thread: then without a limit
            thread.start()
        try:
            yield
        finally:
            self._ended.set()

    def _left(self) -> float:
        hold = self._hold()
        return self._seconds if hold is None else hold.asked + self._seconds - time.time()

    def _wait(self) -> None:
        left = self._left()
        while not self._ended.wait(min(max(left, 0.0), threading.TIMEOUT_MAX)):
            left = self._left()
            if left <= 0:
                calls.put(self._let_go)
                left = _AGAIN

    def _let_go(self, hold: HoldLike) -> None:
        """In the held thread."""
        if hold is not self._hold() or hold.decision is not None or self._left() > 0:
            return
        time_is_over(hold, self._seconds)


def time_is_over(hold: HoldLike, seconds: float) -> None:
    """Let a hold go for which nobody has come, and tell.

    Args:
        hold: the hold.
        seconds: for how long it has waited.
    """
    reason = f"nobody has come for {seconds:g} s"
    announce("timed out", hold, reason)
    let_go(hold, None, reason)


def let_go(hold: HoldLike, name: str | None, reason: str) -> None:
    """Let a hold go about which nobody is asked, and tell; if that cannot be, tell that.

    Args:
        hold: the hold.
        name: the class of what a handler has raised, which goes on instead; None for what it is held for.
        reason: why.
    """
    try:
        text = hold.let_go(name)
    except Exception as refusal:  # noqa: BLE001 - what a handler has raised may not be able to go on here
        tell(f"daifu_bc: {name} cannot go on here: {refusal}")
        return
    journal.done(hold, "raise", code=name or "", outcome=reason)
    tell(f"daifu_bc: hold {hold.number}: {reason}; {text}.")


def limited(hold: HoldLike) -> contextlib.AbstractContextManager[None]:
    """Within, a hold is asked about, for as long as a rule has said; for any time if none has."""
    seconds = attaching.limit_of_rule()
    return contextlib.nullcontext() if seconds is None else Deadline(hold, seconds).kept()
