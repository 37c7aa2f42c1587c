"""The socket of a held run: whoever attaches looks around there, and one of them acts.

The held thread serves it itself, as long as it is its turn to be asked; the next one goes on with the same clients.
Before the first hold there is nothing of it, after the last one nothing is left.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import socket
import threading
import time
from typing import Final

from daifu_bc.frontends import protocol, rendezvous
from daifu_bc.frontends.log import duration
from daifu_bc.frontends.protocol import Object
from daifu_bc.frontends.service import Service, is_over
from daifu_bc.frontends.switching import ended_while
from daifu_bc.frontends.visitor import Visitor
from daifu_bc.recovery import attaching, journal, signals
from daifu_bc.recovery.announcements import announce
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.interrupts import close_to, open_sections
from daifu_bc.recovery.telling import tell

#: Clients at the same time.
MOST_VISITORS: Final = 16
#: Seconds after which it is looked whether the socket is still in its place: directories of that kind are tidied up.
LOOK_AFTER: Final = 10.0
#: Seconds that a client which does not read may keep the run from going on.
PATIENCE: Final = 1.0
#: Faults of ours after which the hold is given up.
MOST_FAULTS: Final = 5
_PAUSE: Final = 0.1


class Station:
    """The socket of this process, and who has come to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The threads that are held, by their numbers; one may be held several times.
        self._held: list[int] = []
        self._listener: socket.socket | None = None
        self._path = ""
        self._identity = (0, 0)
        #: Whether the program has come to its end.
        self._ended = False
        self._visitors: list[Visitor] = []
        self._service = Service()

    # -- opening and closing -------------------------------------------------------------------------------------

    def enter(self) -> None:
        """This thread is held; the first one opens the socket.

        Raises:
            AttachError: there can be none.
            OSError: there can be none.
        """
        with self._lock:
            if self._listener is None:
                self._open()
            if not self._held:
                self._service = Service()
            self._held.append(threading.get_ident())

    def leave(self) -> None:
        """This thread is not held any more; the last one closes the socket."""
        with self._lock:
            self._held.remove(threading.get_ident())
            if not self._held:
                self._close()

    def _open(self) -> None:
        self._listener, self._path = rendezvous.listen()
        found = os.stat(self._path)
        self._identity = (found.st_dev, found.st_ino)
        atexit.register(self._at_exit)

    def _close(self) -> None:
        self._stop_listening()
        self._remove()
        deadline = time.monotonic() + PATIENCE
        for visitor in self._visitors:
            visitor.finish(deadline)
        self._visitors = []
        self._service = Service()

    def _stop_listening(self) -> None:
        atexit.unregister(self._at_exit)
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _remove(self) -> None:
        if self._in_place():
            with contextlib.suppress(OSError):
                os.unlink(self._path)

    def _in_place(self) -> bool:
        try:
            found = os.lstat(self._path)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity

    def _at_exit(self) -> None:
        """The program ends while a daemon thread is held, which runs on until it is stopped."""
        with self._lock:
            self._ended = True
            self._remove()
        tell(ended_while("a thread was still held"))

    def in_child(self) -> None:
        """In a forked child the socket and the clients are the parent's; a hold there opens its own."""
        self._lock = threading.Lock()
        self._stop_listening()
        for visitor in self._visitors:
            visitor.close()
        self._visitors = []
        self._ended = False
        self._path, self._identity = "", (0, 0)
        self._service.actor = None
        self._service.pending.clear()
        own = threading.get_ident()
        self._held = [ident for ident in self._held if ident == own]

    # -- the thread whose turn it is -----------------------------------------------------------------------------

    def serve(self, hold: HoldLike, began: float) -> None:
        """Do what the clients ask for, until the hold is decided or another one is to be asked about.

        Args:
            hold: it.
            began: when it began, as `time.monotonic()` tells it.
        """
        self._service.announce(hold)
        self._tell_all("held", {"hold": hold.number})
        told_of_request, faults = False, 0
        while not is_over(hold):
            name = "" if told_of_request else signals.request_to_end()
            if name:
                told_of_request = True
                self._let_go(hold, name, "a signal asks the program to end")
                continue
            left = self._service.left(began)
            if left is not None and left <= 0:
                announce("timed out", hold, f"nobody has come for {attaching.timeout():g} s")
                self._let_go(hold, None, f"nobody has come for {attaching.timeout():g} s")
                continue
            self._stay_in_place()
            try:
                self._wait(LOOK_AFTER if left is None else min(left, LOOK_AFTER))
            except Exception as error:
                # Rule 1: a fault of ours costs the clients their connection, and not the run its hold.
                faults += 1
                if faults > MOST_FAULTS:
                    raise
                tell(f"daifu_bc failed inside ({type(error).__name__}: {error}); all clients are sent away.")
                for visitor in self._visitors:
                    visitor.close()
                continue
            for visitor in tuple(self._visitors):
                if is_over(hold):
                    break
                if visitor.has_line:
                    self._service.answer(hold, visitor, visitor.line(), began)
        if hold.decision is not None:
            self._tell_all("over", {"hold": hold.number})

    def _let_go(self, hold: HoldLike, name: str | None, reason: str) -> None:
        try:
            text = hold.let_go(name)
        except Exception as refusal:  # noqa: BLE001 - what a handler has raised may not be able to go on here
            tell(f"daifu_bc: {name} cannot go on here: {refusal}")
            return
        journal.done(hold, "raise", code=name or "", outcome=reason)
        tell(f"daifu_bc: hold {hold.number}: {reason}; {text}.")

    def _stay_in_place(self) -> None:
        """Open the socket anew if somebody has tidied it away, or if this is a forked child."""
        if self._listener is not None and self._in_place():
            return
        with self._lock:
            if self._ended:
                return
            self._stop_listening()
            # Without a socket the hold goes on: the clients that are there may still decide it, else the time is over.
            with contextlib.suppress(rendezvous.AttachError, OSError):
                self._open()
                tell(invitation())

    def _wait(self, seconds: float) -> None:
        """Wait until something has come, and take it."""
        self._forget_the_gone()  # it may have been found out while they were answered
        if any(visitor.has_line for visitor in self._visitors):
            seconds = 0.0
        poll = select.poll()
        listener, sections = self._listener, open_sections()
        if listener is not None:
            poll.register(listener, select.POLLIN)
        by_number = {visitor.connection.fileno(): visitor for visitor in self._visitors}
        for number, visitor in by_number.items():
            # Who sends more than is done is not listened to meanwhile.
            wanted = 0 if visitor.has_line else select.POLLIN
            poll.register(number, wanted | (select.POLLOUT if visitor.waits else 0))
        try:
            with signals.person_is_waited_for():
                ready = poll.poll(max(0.0, seconds) * 1000)
        except KeyboardInterrupt:  # a signal's handler has raised something
            close_to(sections)
            return
        for number, event in ready:
            if number not in by_number:
                continue
            visitor = by_number[number]
            if event & select.POLLOUT:
                visitor.flush()
            if not visitor.has_line:
                visitor.receive()
            elif event & (select.POLLERR | select.POLLHUP):
                visitor.close()
        self._forget_the_gone()
        # After those who have gone, so that there is room for who comes.
        if any(number not in by_number for number, _ in ready):
            self._accept()

    def _forget_the_gone(self) -> None:
        self._visitors = [visitor for visitor in self._visitors if visitor.open]
        self._service.forget_the_gone()

    def _accept(self) -> None:
        assert self._listener is not None
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:  # no file descriptors are left, say: it would be tried again at once
            time.sleep(_PAUSE)
            return
        visitor = Visitor(connection)
        if rendezvous.user_of(connection) != os.getuid():
            visitor.send(protocol.failure(None, protocol.NO_REQUEST, "this run is another user's"))
            visitor.close()
        elif len(self._visitors) >= MOST_VISITORS:
            text = f"{MOST_VISITORS} clients are here already"
            visitor.send(protocol.failure(None, protocol.NO_REQUEST, text))
            visitor.close()
        else:
            self._visitors.append(visitor)

    def _tell_all(self, method: str, parameters: Object) -> None:
        for visitor in self._visitors:
            visitor.send(protocol.notice(method, parameters))


def invitation() -> str:
    """Return the line that says what to type, and for how long."""
    limit = attaching.timeout()
    rest = "" if limit is None else f" If nobody does for {duration(limit)}, the exception goes on."
    return f"Held. Type `daifu attach {os.getpid()}` in another terminal on {socket.gethostname()}.{rest}"


#: Of this process.
station: Final = Station()

os.register_at_fork(after_in_child=station.in_child)
