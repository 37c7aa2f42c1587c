"""A report for which nobody waits who could interrupt it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from daifu_bc.frontends import render
from daifu_bc.recovery import signals
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.interrupts import Interruptible

#: Seconds that the report may take.
PATIENCE = 30.0


def report_in_time(hold: HoldLike) -> str:
    """Return the report; a repr that takes for ever is interrupted, as there is nobody who would do it."""
    try:
        with interrupted_after(PATIENCE):
            return render.report(hold)
    except KeyboardInterrupt:
        left_out = f"(The rest of the report is left out: it took more than {PATIENCE:g} seconds.)"
        return f"{render.error(hold.exception)}\n{left_out}"


@contextlib.contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Have code of the program's interrupted that takes longer.

    Raises:
        KeyboardInterrupt: it was.
    """
    timer = threading.Timer(seconds, signals.interrupt, (threading.get_ident(),))
    timer.daemon = True
    timer.name = "daifu report"
    with contextlib.suppress(RuntimeError):  # there is no memory for a thread: then without a limit
        timer.start()
    try:
        with Interruptible():
            yield
    finally:
        timer.cancel()
