"""A client's connection to a held run."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from daifu_bc.frontends import protocol, rendezvous
from daifu_bc.frontends.protocol import FaultyLineError, Object
from daifu_bc.recovery.meeting import AttachError

_CHUNK: Final = 1 << 16
#: Seconds in which a run takes a connection, busy or not: the system does it.
_PATIENCE: Final = 5.0


class AnsweredNoError(Exception):
    """The run does not do what was asked.

    Args:
        code: why, as in `daifu_bc.frontends.protocol`.
        text: the same in words.
    """

    def __init__(self, code: int, text: str) -> None:
        self.code = code
        super().__init__(text)


class GoneError(Exception):
    """The run has closed the connection: nothing is held there any more."""


class Connection:
    """Asks a run and hears what it tells.

    Args:
        path: the run's socket.
        user: whose run it is; this user's if it is left out.

    Raises:
        AttachError: it belongs to another user.
        OSError: nobody answers there.

    Attributes:
        notices: what it has told without being asked, the oldest first.
    """

    def __init__(self, path: str, user: int | None = None) -> None:
        self._socket = rendezvous.connect(path, _PATIENCE)
        found = rendezvous.user_of(self._socket)
        if found is not None and found != (os.getuid() if user is None else user):
            self._socket.close()
            raise AttachError(f"{path} is not used", why=f"it belongs to another user ({found})")
        self.notices: deque[Object] = deque()
        self._come = bytearray()
        self._numbers = itertools.count(1)
        # The Tab key is pressed in a thread of the prompt's.
        self._lock = threading.RLock()
        #: Whether it waits for the run, and whether Ctrl-C was pressed while it did not.
        self._waits = self._pressed = False

    def ask(self, method: str, seconds: float | None = None, **parameters: Any) -> Object:
        """Return what the run answers.

        Args:
            method: what is asked for.
            seconds: how long to wait; None for as long as it takes.
            parameters: of the method.

        Raises:
            AnsweredNoError: the run does not do it.
            GoneError: the run is not held any more.
            TimeoutError: it has not answered in that time.
        """
        with self._lock:
            return self.result(self.send(method, seconds, **parameters), seconds)

    def send(self, method: str, seconds: float | None = None, **parameters: Any) -> int:
        """Ask for something without waiting for the answer; the request's number.

        Args:
            method: what is asked for.
            seconds: how long to wait until it is on its way.
            parameters: of the method.

        Raises:
            TimeoutError: it has not been taken in that time.
        """
        number = next(self._numbers)
        self._socket.settimeout(seconds)
        try:
            self._socket.sendall(protocol.request(number, method, parameters))
        except TimeoutError:
            raise
        except OSError:  # what it has said before is still to be read
            pass
        return number

    def result(
        self, number: int, seconds: float | None = None, printed: Callable[[str], None] | None = None
    ) -> Object:
        """Return what the run answers to a request.

        Args:
            number: the request's.
            seconds: how long to wait; None for as long as it takes.
            printed: is given what an action prints meanwhile.

        Raises:
            AnsweredNoError: the run does not do it.
            GoneError: the run is not held any more.
            TimeoutError: it has not answered in that time.
        """
        while True:
            content = self._read(seconds)
            if content.get("id") == number and "result" in content:
                return dict(content["result"])
            error = content.get("error")
            if isinstance(error, dict) and content.get("id") in (number, None):
                raise AnsweredNoError(int(error.get("code", 0)), str(error.get("message", "")))
            if (
                printed is not None
                and content.get("method") == "output"
                and content["params"]["id"] == number
            ):
                printed(content["params"]["text"])
            elif "method" in content:
                self.notices.append(content)

    def fileno(self) -> int:
        """Return the file descriptor by which it can be waited for."""
        return self._socket.fileno()

    def take_in(self) -> None:
        """Take what the run has told, without waiting for it.

        Raises:
            GoneError: it is not held any more.
        """
        with self._lock:
            try:
                while True:
                    content = self._read(0)
                    if "method" in content:
                        self.notices.append(content)
            except TimeoutError:
                return
            except GoneError:
                if not self.notices:
                    raise

    def wait(self) -> Object:
        """Return what the run tells next.

        Raises:
            GoneError: it is not held any more.
        """
        while not self.notices:
            content = self._read(None)
            if "method" in content:
                self.notices.append(content)
        return self.notices.popleft()

    def _read(self, seconds: float | None) -> Object:
        while True:
            end = self._come.find(b"\n")
            if end >= 0:
                text = bytes(self._come[:end])
                del self._come[: end + 1]
                try:
                    return protocol.parse_object(text)
                except FaultyLineError as error:
                    raise GoneError(f"it does not speak as daifu_bc does: {error}") from None
            self._wait_until_readable(seconds)
            try:
                part = self._socket.recv(_CHUNK)
            except (ConnectionError, BrokenPipeError):
                part = b""
            if not part:
                raise GoneError("the run has closed the connection")
            self._come += part

    def _wait_until_readable(self, seconds: float | None) -> None:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        self._waits = True
        try:
            if self._pressed:
                self._pressed = False
                raise KeyboardInterrupt
            if not poll.poll(None if seconds is None else seconds * 1000):
                raise TimeoutError
        finally:
            self._waits = False

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Within, Ctrl-C raises KeyboardInterrupt only while the run is waited for, so that nothing is lost by it."""

        def pressed(*_: object) -> None:
            if self._waits:
                raise KeyboardInterrupt
            self._pressed = True

        before = signal.signal(signal.SIGINT, pressed)
        self._pressed = False
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def close(self) -> None:
        """Leave."""
        self._socket.close()


def connect(path: str, user: int | None = None) -> Connection | None:
    """Return a connection to a run; None if there is nobody any more, and then its socket is taken away.

    Args:
        path: the run's socket.
        user: whose run it is; this user's if it is left out.

    Raises:
        AttachError: it belongs to another user, or does not answer.
    """
    try:
        return Connection(path, user)
    except (ConnectionRefusedError, FileNotFoundError):
        if rendezvous.is_dead(path):
            try:
                os.unlink(path)
            except OSError:
                pass
        return None
    except (TimeoutError, OSError) as error:
        raise AttachError(f"{path} does not answer", why=str(error)) from None
