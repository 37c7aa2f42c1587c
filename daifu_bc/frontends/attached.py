"""A hold waits for whoever attaches to it from another terminal."""

from __future__ import annotations

import os
import socket
import time
from typing import Final

from daifu_bc.errors import DaifuError
from daifu_bc.frontends import switching
from daifu_bc.frontends.calls import calls
from daifu_bc.frontends.deadline import let_go, time_is_over
from daifu_bc.frontends.log import duration
from daifu_bc.frontends.patience import report_in_time
from daifu_bc.frontends.service import METHODS, is_over
from daifu_bc.frontends.station import LOOK_AFTER, station
from daifu_bc.frontends.terminal import flush_program_output
from daifu_bc.frontends.values import printable
from daifu_bc.frontends.visitor import Visitor
from daifu_bc.recovery import attaching, journal, signals
from daifu_bc.recovery.interface import HoldLike, Responder
from daifu_bc.recovery.interrupts import close_to, open_sections
from daifu_bc.recovery.telling import tell
from daifu_bc.recovery.turns import turns

#: Faults of ours after which the hold is given up.
MOST_FAULTS: Final = 5


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
            with calls.heard():
                _wait(hold, began)
        finally:
            station.leave()


def invitation(hold: HoldLike) -> str:
    """Return the line that says what to type, and for how long."""
    limit = attaching.timeout()
    what = "the exception" if getattr(hold, "crashed", True) else "the run"
    rest = "" if limit is None else f" If nobody does for {duration(limit)}, {what} goes on."
    return f"Held. Type `daifu attach {os.getpid()}` in another terminal on {socket.gethostname()}.{rest}"


def _wait(hold: HoldLike, began: float) -> None:
    with turns.entered(hold, asks=True) as place:
        tell(invitation(hold))
        switching.ask_in_turn(hold, place, lambda: serve(hold, began))


def serve(hold: HoldLike, began: float) -> None:
    """Do what the clients ask for, until the hold is decided or another one is to be asked about.

    Args:
        hold: it.
        began: when it began, as `time.monotonic()` tells it.
    """
    with station.asking():
        station.service.announce(hold)
        station.tell_all("held", {"hold": hold.number})
        calls.ask_first(hold)
        _serve(hold, began)
        if hold.decision is not None:
            station.tell_all("over", {"hold": hold.number})


def _serve(hold: HoldLike, began: float) -> None:
    told_of_request, faults = False, 0
    while not is_over(hold):
        name = "" if told_of_request else signals.request_to_end()
        if name:
            told_of_request = True
            let_go(hold, name, "a signal asks the program to end")
            continue
        left = station.service.left(began)
        if left is not None and left <= 0:
            time_is_over(hold, attaching.timeout() or 0.0)
            continue
        if station.stay_in_place():
            tell(invitation(hold))
        calls.run(hold)
        if isinstance(station.service.actor, Visitor):  # there is somebody to be told
            for text in (*signals.news(person=True), *switching.news(hold)):
                station.tell_all("news", {"text": printable(text)})
        try:
            # Whatever that was, it may have taken a while, and this may be a forked child now.
            if not station.answer(hold, METHODS, left) and not is_over(hold):
                _look(LOOK_AFTER if left is None else min(left, LOOK_AFTER))
        except Exception as error:
            # Rule 1: a fault of ours costs the clients their connection, and not the run its hold.
            faults += 1
            if faults > MOST_FAULTS:
                raise
            tell(f"daifu_bc failed inside ({type(error).__name__}: {error}); all clients are sent away.")
            station.send_away()


def _look(seconds: float) -> None:
    sections = open_sections()
    try:
        with signals.person_is_waited_for():
            station.look(seconds)
    except KeyboardInterrupt:  # a signal's handler has raised something
        close_to(sections)
