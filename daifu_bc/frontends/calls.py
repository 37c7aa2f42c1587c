"""What others want of the held thread whose turn it is to be asked: it is woken, and does it itself."""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from daifu_bc.recovery import debuggers
from daifu_bc.recovery.descriptors import identity
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.telling import tell
from daifu_bc.recovery.working import came_from_outside

_MANY: Final = 4096
#: Not imported before it is needed.
_DEBUGGING: Final = "daifu_bc.frontends.debugging"


class Calls:
    """Functions that the held thread is to call, and a pipe that wakes it for them."""

    def __init__(self) -> None:
        # A signal's handler may come to a hold of its own while this thread is in here.
        self._lock = threading.RLock()
        self._waiting: deque[Callable[[HoldLike], None]] = deque()
        #: The threads that wait to be asked, by their numbers; one may do so several times.
        self._threads: list[int] = []
        #: The pipe's ends, to read and to write.
        self._ends: tuple[int, int] | None = None
        self._identity: tuple[int, int] | None = None

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Within, this thread is one that waits for its turn to be asked, or is asked."""
        with self._lock:
            self._threads.append(threading.get_ident())
            self._open()
        try:
            yield
        finally:
            with self._lock:
                self._threads.remove(threading.get_ident())
                if not self._threads:
                    self._close()

    def _open(self) -> None:
        if self._ends is not None:
            return
        # Without it nobody but the person can wake the thread.
        with contextlib.suppress(OSError):
            ends = os.pipe()
            for end in ends:
                os.set_blocking(end, False)
            self._ends, self._identity = ends, identity(ends[0])  # both have the same

    def _is_ours(self, end: int) -> bool:
        """The program may have closed it, and have another file there."""
        return identity(end) == self._identity

    def _close(self) -> None:
        self._waiting.clear()
        self._close_pipe()

    def _close_pipe(self) -> None:
        ends, self._ends = self._ends, None
        for end in ends or ():
            if self._is_ours(end):
                os.close(end)

    def put(self, function: Callable[[HoldLike], None]) -> bool:
        """Have the held thread whose turn it is call a function as soon as nothing else runs there.

        A prompt at the terminal is broken off for it, and opened again afterwards if the hold is still asked about.
        What the function raises is told.

        Args:
            function: it is given the hold, and may decide it.

        Returns:
            Whether anybody is there who will.
        """
        if self._ends is None:
            return False
        self._waiting.append(function)
        self.wake()
        return True

    def ask_first(self, hold: HoldLike) -> None:
        """A hold's turn has come: a debugger that is there, or is wanted, comes before the prompt and the clients.

        Args:
            hold: it.
        """
        if debuggers.wanted() or debuggers.attached():
            self._waiting.appendleft(importlib.import_module(_DEBUGGING).first)
            self.run(hold)

    def wake(self) -> None:
        """Let the one who waits look around."""
        ends = self._ends
        if ends is not None and self._is_ours(ends[1]):
            with contextlib.suppress(OSError):  # it is full: nobody sleeps
                os.write(ends[1], b"x")

    @property
    def descriptor(self) -> int:
        """What can be read when somebody has woken the thread; -1 if there is no such thing."""
        ends = self._ends
        return -1 if ends is None else ends[0]

    def awake(self) -> None:
        """Forget that somebody has woken the thread."""
        ends = self._ends
        if ends is not None and not all(map(self._is_ours, ends)):
            with self._lock:
                self._close_pipe()
                self._open()
            return
        with contextlib.suppress(OSError):
            os.read(self.descriptor, _MANY)

    @property
    def any(self) -> bool:
        """Whether there is something to call."""
        return bool(self._waiting)

    def run(self, hold: HoldLike) -> None:
        """Call what is to be called, until the hold is decided.

        Args:
            hold: the one that is asked about.
        """
        while self._waiting and hold.decision is None:
            function = self._waiting.popleft()
            try:
                function(hold)
            except Exception as error:
                if came_from_outside(error):
                    raise
                tell(f"daifu_bc failed inside ({type(error).__name__}: {error}); the hold stays.")

    def in_child(self) -> None:
        """In a forked child the pipe's other end is the parent's as well."""
        self._lock = threading.RLock()
        self._close()
        own = threading.get_ident()
        self._threads = [ident for ident in self._threads if ident == own]
        if self._threads:
            self._open()


#: Of this process.
calls: Final = Calls()

os.register_at_fork(after_in_child=calls.in_child)
