"""A hold waits for whoever attaches to it from another terminal."""

from __future__ import annotations

import time

from daifu_bc.errors import DaifuError
from daifu_bc.frontends.patience import report_in_time
from daifu_bc.frontends.station import invitation, station
from daifu_bc.frontends.switching import ask_in_turn
from daifu_bc.frontends.terminal import flush_program_output
from daifu_bc.recovery import journal, signals
from daifu_bc.recovery.interface import HoldLike, Responder
from daifu_bc.recovery.telling import tell
from daifu_bc.recovery.turns import turns


def responder() -> Responder:
    """Return what waits for somebody."""
    return answer


def answer(hold: HoldLike) -> None:
    """Wait, whenever it is this hold's turn, until it is decided or the time is over."""
    began = time.monotonic()
    with signals.guarded():
        flush_program_output()
        tell("\n" + report_in_time(hold))
        try:
            station.enter()
        except (DaifuError, OSError) as error:
            reason = str(error).rstrip(".")
            tell(f"daifu_bc: nobody can attach: {reason}. {hold.let_go()}.")
            journal.done(hold, "raise", outcome="nobody can attach")
            return
        try:
            _wait(hold, began)
        finally:
            station.leave()


def _wait(hold: HoldLike, began: float) -> None:
    with turns.entered(hold, asks=True) as place:
        tell(invitation())
        ask_in_turn(hold, place, lambda: station.serve(hold, began))
