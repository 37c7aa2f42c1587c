"""While a person is asked at the terminal, the held thread is there for others as well: for clients, for calls."""

from __future__ import annotations

import contextlib
import sys
import termios
from collections.abc import Iterator
from typing import Final

from daifu_bc.errors import DaifuError
from daifu_bc.frontends import switching
from daifu_bc.frontends.calls import calls
from daifu_bc.frontends.reader import BrokenOffError
from daifu_bc.frontends.service import LOOKING, METHODS, is_over
from daifu_bc.frontends.station import LOOK_AFTER, station
from daifu_bc.recovery import attaching, signals
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.interrupts import undisturbed
from daifu_bc.recovery.telling import tell
from daifu_bc.recovery.working import came_from_outside

#: What is said to somebody who types while another one acts.
TAKEN: Final = "Another terminal acts; `take` takes over."
#: Faults of ours after which nobody but the person is heard.
MOST_FAULTS: Final = 5
_MOST: Final = 70


@contextlib.contextmanager
def open_to_others() -> Iterator[None]:
    """This held thread can be reached within, if that is possible; if it is not, nobody misses it here."""
    entered = False
    if attaching.allowed():
        with contextlib.suppress(DaifuError, OSError):
            station.enter(tells=False)
            entered = True
    try:
        with calls.heard():
            yield
    finally:
        if entered:
            station.leave()


class _Person:
    """The person at the terminal, who may act and does not go; the same one whatever is asked about."""

    open = True

    def __init__(self) -> None:
        self.news: list[str] = []

    def overtaken(self) -> None:
        """A client acts from now on."""
        self.news.append("Another terminal has taken over; `take` takes it back.")


_person: Final = _Person()


class Others:
    """All but the person at the terminal, as that one sees them.

    Args:
        hold: the hold that is asked about.
    """

    def __init__(self, hold: HoldLike) -> None:
        self._hold = hold
        self._faults = 0

    @contextlib.contextmanager
    def served(self) -> Iterator[None]:
        """The hold is asked about within; whoever is connected is told."""
        number = self._hold.number
        with station.asking():
            station.service.announce(self._hold)
            station.tell_all("held", {"hold": number})
            try:
                yield
            finally:
                if self._hold.decision is not None:
                    station.tell_all("over", {"hold": number})

    # -- who acts ------------------------------------------------------------------------------------------------

    def let_act(self) -> bool:
        """Let the person act, if nobody else does; whether that is so."""
        if not station.service.may_act(_person):
            return False
        station.service.actor = _person
        return True

    def take(self) -> None:
        """Let the person act from now on."""
        station.service.acts(_person)

    def news(self) -> list[str]:
        """Return what has happened elsewhere; each once."""
        done, decided = station.service.done, self._hold.decision is not None
        while done:
            first, _, more = done.popleft().strip().partition("\n")
            cut = first if len(first) <= _MOST else f"{first[: _MOST - 3]}..."
            what = "Decided from another terminal" if decided and not done else "From another terminal"
            _person.news.append(f"{what}: {cut}{' ...' if more else ''}")
        news, _person.news = _person.news, []
        return news

    # -- the thread ----------------------------------------------------------------------------------------------

    def wait(self, descriptor: int) -> None:
        """Wait until the person has typed something; meanwhile clients look around.

        Args:
            descriptor: what can be read then.

        Raises:
            BrokenOffError: somebody else wants the thread, or there is something to tell.
            KeyboardInterrupt: a signal's handler has raised something.
        """
        try:
            while self._faults <= MOST_FAULTS:
                with undisturbed():
                    station.answer(self._hold, LOOKING)
                    station.stay_in_place()
                if self._have_to_be_heard():
                    raise BrokenOffError
                if station.look(LOOK_AFTER, descriptor):
                    return
        except BrokenOffError:
            raise
        except Exception as error:  # noqa: BLE001 - see `_failed`
            self._failed(error)
            raise BrokenOffError from None

    def _have_to_be_heard(self) -> bool:
        return (
            station.wants_thread()
            or bool(station.service.done or _person.news)
            or signals.untold()
            or switching.has_news(self._hold)
            or is_over(self._hold)
        )

    def attend(self) -> None:
        """Do what they want of the thread."""
        try:
            calls.run(self._hold)
            station.answer(self._hold, METHODS)
        except Exception as error:  # noqa: BLE001 - see `_failed`
            self._failed(error)
        if self._hold.decision is None:
            return
        if not station.service.done:
            _person.news.append("Decided elsewhere.")
        # What has been begun at the prompt is for nobody now.
        with contextlib.suppress(OSError, ValueError, AttributeError, termios.error):
            termios.tcflush(sys.__stdin__.fileno(), termios.TCIFLUSH)  # type: ignore[union-attr]

    def _failed(self, error: Exception) -> None:
        """Rule 1: a fault of ours costs the clients their connection, and not the person the prompt."""
        if came_from_outside(error):
            raise error
        self._faults += 1
        tell(f"daifu_bc failed inside ({type(error).__name__}: {error}); all clients are sent away.")
        station.send_away()

    @contextlib.contextmanager
    def minded(self) -> Iterator[None]:
        """What the person has typed runs within; clients that are there are answered meanwhile."""
        if not station.has_visitors:
            yield
            return
        with station.minded(self._hold):
            yield
