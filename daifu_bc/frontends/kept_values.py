"""The values that the failed line read, for the journal; only where that was asked for."""

from __future__ import annotations

from daifu_bc.frontends import render
from daifu_bc.frontends.patience import PATIENCE, interrupted_after
from daifu_bc.recovery import journal, signals
from daifu_bc.recovery.announcements import Kind
from daifu_bc.recovery.interface import HoldLike


def keep(kind: Kind, hold: HoldLike, _reason: str) -> None:
    """Write down what a report shows under `Values`.

    Args:
        kind: what has happened; something is written down at the beginning of a hold alone.
        hold: the hold.
    """
    if kind != "held" or not journal.values_wanted():
        return
    with signals.guarded():
        try:
            with interrupted_after(PATIENCE):
                text = "\n".join(line.strip() for line in render.values_in_line(hold.selected))
        except KeyboardInterrupt:
            text = f"(left out: it took more than {PATIENCE:g} seconds)"
    if text:
        journal.record("values", hold=hold, values=text)
