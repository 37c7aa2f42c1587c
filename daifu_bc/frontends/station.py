"""The socket of a held run: whoever attaches looks around there, and one of them acts.

The held thread looks after it itself, as long as it is its turn to be asked; the next one goes on with the same
clients. While something runs in it for a client, a thread of ours does so. Before the first hold there is nothing of
it, after the last one nothing is left.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from typing import Final

from daifu_bc import pyversion
from daifu_bc.frontends import protocol, rendezvous
from daifu_bc.frontends.calls import calls
from daifu_bc.frontends.protocol import Call, Object
from daifu_bc.frontends.service import METHODS, WHILE_BUSY, WORDS, Service, is_over
from daifu_bc.frontends.switching import ended_while
from daifu_bc.frontends.visitor import Visitor
from daifu_bc.recovery import attaching
from daifu_bc.recovery.descriptors import close_socket, identity
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.interrupts import undisturbed
from daifu_bc.recovery.last_will import at_death
from daifu_bc.recovery.meeting import AttachError
from daifu_bc.recovery.telling import tell

#: Clients at the same time.
MOST_VISITORS: Final = 16
#: Seconds after which it is looked whether the socket is still in its place: directories of that kind are tidied up.
LOOK_AFTER: Final = 10.0
#: Seconds that a client which does not read may keep the run from going on.
PATIENCE: Final = 1.0
_PAUSE: Final = 0.1
#: Seconds for which a thread of ours is waited for that is to end.
_END: Final = 5.0


class _Minder(threading.Thread):
    """Answers what can be answered while the held thread is busy.

    Args:
        station: whose clients they are.
        hold: the hold whose thread is busy.
    """

    def __init__(self, station: Station, hold: HoldLike) -> None:
        super().__init__(name="daifu socket", daemon=True)
        # A debugger does not show it among the program's threads, nor watch it.
        self.is_pydev_daemon_thread = self.pydev_do_not_trace = True
        self._station = station
        self.hold: HoldLike = hold
        self.ended = False

    def run(self) -> None:
        """Look around until it is enough."""
        # Without a pipe to be woken by, it looks up often enough.
        seconds = LOOK_AFTER if calls.descriptor >= 0 else _PAUSE
        while not self.ended:
            try:
                self._station.answer(self.hold, WHILE_BUSY)
                if not self.ended:
                    self._station.look(seconds)
            except Exception as error:  # noqa: BLE001 - rule 1: the hold stays, and so do the clients
                tell(f"daifu_bc failed inside ({type(error).__name__}: {error}); clients wait.")
                return


class Station:
    """The socket of this process, and who has come to it."""

    def __init__(self) -> None:
        # A signal's handler may come to a hold of its own while this thread is in here.
        self._lock = threading.RLock()
        #: The threads that are held, by their numbers; one may be held several times.
        self._held: list[int] = []
        self._listener: socket.socket | None = None
        self._path = ""
        self._identity, self._own = (0, 0), identity(-1)
        #: Whether the program has come to its end.
        self._ended = False
        self._tells = True
        self._visitors: list[Visitor] = []
        self.service = Service(self.minded)
        #: Holds whose threads are busy for clients, the latest last.
        self._busy: list[HoldLike] = []
        #: Threads that look after the clients themselves, by their numbers.
        self._idle: list[int] = []
        self._minder: _Minder | None = None

    # -- opening and closing -------------------------------------------------------------------------------------

    def enter(self, *, tells: bool = True) -> None:
        """This thread is held; the first one opens the socket.

        Args:
            tells: whether to tell if the program ends while it is held; at a terminal somebody else does.

        Raises:
            AttachError: there can be none.
            OSError: there can be none.
        """
        with self._lock:
            if self._listener is None:
                self._open()
            if not self._held:
                self.service = Service(self.minded)
            self._tells = tells
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
        self._identity, self._own = (found.st_dev, found.st_ino), identity(self._listener.fileno())
        atexit.register(self._at_exit)

    def _close(self) -> None:
        self._stop_listening()
        self._remove()
        deadline = time.monotonic() + PATIENCE
        for visitor in self._visitors:
            visitor.finish(deadline)
        self._visitors = []
        self.service = Service(self.minded)

    def _stop_listening(self) -> None:
        atexit.unregister(self._at_exit)
        if self._listener is not None:
            close_socket(self._listener, self._own)
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
        if self._tells:
            tell(ended_while("a thread was still held"))

    def in_child(self) -> None:
        """In a forked child the socket and the clients are the parent's; a hold there opens its own."""
        self._lock = threading.RLock()
        self._minder = None
        self._busy.clear()
        self._stop_listening()
        for visitor in self._visitors:
            visitor.close()
        self._visitors = []
        self._ended = False
        self._path, self._identity = "", (0, 0)
        self.service.actor = None
        self.service.pending.clear()
        own = threading.get_ident()
        self._held = [ident for ident in self._held if ident == own]
        self._idle = [ident for ident in self._idle if ident == own]

    # -- who looks after the clients -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Within, this thread looks after the clients, but for what is `minded`."""
        ident = threading.get_ident()
        with self._lock:
            self._idle.append(ident)
            self._see_to_it()
        try:
            yield
        finally:
            with self._lock:
                if ident in self._idle:
                    self._idle.remove(ident)
                self._see_to_it()

    @contextlib.contextmanager
    def minded(self, hold: HoldLike) -> Iterator[None]:
        """Within, this held thread is busy: another one answers what the clients ask for, as far as it can.

        Args:
            hold: the hold of this thread that is asked about.
        """
        ident = threading.get_ident()
        process = os.getpid()
        with self._lock:
            was_idle = ident in self._idle
            if was_idle:
                self._idle.remove(ident)
            self._busy.append(hold)
            self._see_to_it()
        try:
            yield
        finally:
            with self._lock:
                if os.getpid() == process and hold in self._busy:
                    self._busy.remove(hold)
                if was_idle:
                    self._idle.append(ident)
                self._see_to_it()
                for visitor in self._visitors:
                    visitor.send_printed()

    def _see_to_it(self) -> None:
        """Start the thread that looks after the clients, or end it."""
        wanted = self._busy[-1] if self._busy and not self._idle and self._listener is not None else None
        if self._minder is not None and self._minder.hold is not wanted:
            self._end_minder()
        if wanted is not None and self._minder is None:
            minder = _Minder(self, wanted)
            with contextlib.suppress(RuntimeError):  # there is no memory for it: nobody is answered, then
                minder.start()
                self._minder = minder
        for visitor in self._visitors:
            visitor.somebody_sends = self._minder is not None

    def _end_minder(self) -> None:
        minder, self._minder = self._minder, None
        if minder is not None:
            minder.ended = True
            calls.wake()
            minder.join(timeout=_END)

    def before_fork(self) -> None:
        """What is forked is to have no thread of ours: the interpreter would warn, and the thread may hold a lock."""
        with self._lock:
            self._end_minder()

    def after_fork(self) -> None:
        """In the parent it goes on, with the next words at the latest."""
        if pyversion.WARNS_OF_THREADS_AFTER_FORK:
            return
        with self._lock:
            self._see_to_it()

    # -- looking after them --------------------------------------------------------------------------------------

    @property
    def has_visitors(self) -> bool:
        """Whether anybody is connected."""
        return bool(self._visitors)

    def wants_thread(self) -> bool:
        """Tell whether somebody wants something of the held thread that only it can do."""
        return calls.any or any(
            isinstance(visitor.request, Call) and visitor.request.method == WORDS
            for visitor in tuple(self._visitors)
        )

    def answer(self, hold: HoldLike, methods: frozenset[str], left: float | None = None) -> bool:
        """Answer what has come, as long as the hold is asked about; whether there was anything.

        Args:
            hold: it.
            methods: what can be answered now; the rest waits.
            left: for how many seconds the hold waits yet; None for no limit.
        """
        some, any_at_all = True, False
        while some and not is_over(hold):
            some = False
            for visitor in tuple(self._visitors):
                request = visitor.request
                if request is None or is_over(hold):
                    continue
                if isinstance(request, Call) and request.method in METHODS - methods:
                    continue
                visitor.answered()
                self.service.answer(hold, visitor, request, left)
                some = any_at_all = True
        return any_at_all

    def look(self, seconds: float, also: int = -1) -> bool:
        """Wait until something has come, and take it. The waiting may be interrupted.

        Args:
            seconds: for how long.
            also: a file descriptor; it may come from there, too.

        Returns:
            Whether that can be read.
        """
        self._forget_the_gone()  # it may have been found out while they were answered
        poll = select.poll()
        listener = self._listener
        others = {number for number in (also, calls.descriptor) if number >= 0}
        if listener is not None:
            others.add(listener.fileno())
        for number in others:
            poll.register(number, select.POLLIN)
        by_number = {visitor.connection.fileno(): visitor for visitor in self._visitors}
        for number, visitor in by_number.items():
            # Who sends more than is done is not listened to meanwhile.
            wanted = select.POLLIN if visitor.request is None else 0
            poll.register(number, wanted | (select.POLLOUT if visitor.waits else 0))
        ready = poll.poll(max(0.0, seconds) * 1000)
        with undisturbed():
            return self._take(ready, by_number, also)

    def _take(self, ready: list[tuple[int, int]], by_number: dict[int, Visitor], also: int) -> bool:
        found = {number for number, _ in ready}
        if calls.descriptor in found:
            calls.awake()
        for visitor in by_number.values():
            visitor.send_printed()
        for number, event in ready:
            if number not in by_number:
                continue
            visitor = by_number[number]
            if event & select.POLLOUT:
                visitor.flush()
            if visitor.request is None:
                visitor.receive()
            elif event & (select.POLLERR | select.POLLHUP):
                visitor.close()
        self._forget_the_gone()
        # After those who have gone, so that there is room for who comes.
        if self._listener is not None and self._listener.fileno() in found:
            self._accept(self._listener)
        return also in found

    def _forget_the_gone(self) -> None:
        if not all(visitor.open for visitor in self._visitors):
            self._visitors = [visitor for visitor in self._visitors if visitor.open]
        self.service.forget_the_gone()

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            return
        except OSError:  # no file descriptors are left, say: it would be tried again at once
            time.sleep(_PAUSE)
            return
        visitor = Visitor(connection)
        if not attaching.may_come(rendezvous.user_of(connection)):
            visitor.send(protocol.failure(None, protocol.NO_REQUEST, "this run is another user's"))
            visitor.close()
        elif len(self._visitors) >= MOST_VISITORS:
            text = f"{MOST_VISITORS} clients are here already"
            visitor.send(protocol.failure(None, protocol.NO_REQUEST, text))
            visitor.close()
        else:
            visitor.somebody_sends = self._minder is not None
            self._visitors.append(visitor)

    def send_away(self) -> None:
        """Close all connections."""
        for visitor in self._visitors:
            visitor.close()

    def tell_all(self, method: str, parameters: Object) -> None:
        """Tell all clients something for which they have not asked."""
        for visitor in self._visitors:
            visitor.send(protocol.notice(method, parameters))

    def stay_in_place(self) -> bool:
        """Open the socket anew if somebody has tidied it away, or if this is a forked child; whether that was done."""
        if self._listener is not None and identity(self._listener.fileno()) == self._own and self._in_place():
            return False
        with self._lock:
            if self._ended or not self._held:
                return False
            self._stop_listening()
            # Without a socket the hold goes on: the clients that are there may still decide it, else the time is over.
            with contextlib.suppress(AttachError, OSError):
                self._open()
                return True
        return False


#: Of this process.
station: Final = Station()
at_death.append(station._remove)

os.register_at_fork(
    before=station.before_fork, after_in_parent=station.after_fork, after_in_child=station.in_child
)
