"""A client's connection to a held run."""

from __future__ import annotations

import itertools
import os
from collections import deque
from typing import Any, Final

from daifu_bc.frontends import protocol, rendezvous
from daifu_bc.frontends.protocol import FaultyLineError, Object
from daifu_bc.frontends.rendezvous import AttachError

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

    Raises:
        AttachError: it belongs to another user.
        OSError: nobody answers there.

    Attributes:
        notices: what it has told without being asked, the oldest first.
    """

    def __init__(self, path: str) -> None:
        self._socket = rendezvous.connect(path, _PATIENCE)
        user = rendezvous.user_of(self._socket)
        if user is not None and user != os.getuid():
            self._socket.close()
            raise AttachError(f"{path} is not used", why=f"it belongs to another user ({user})")
        self.notices: deque[Object] = deque()
        self._come = bytearray()
        self._numbers = itertools.count(1)

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
        number = next(self._numbers)
        self._socket.settimeout(seconds)
        try:
            self._socket.sendall(protocol.request(number, method, parameters))
        except TimeoutError:
            raise
        except OSError:  # what it has said before is still to be read
            pass
        while True:
            content = self._read()
            if content.get("id") == number and "result" in content:
                return dict(content["result"])
            error = content.get("error")
            if isinstance(error, dict) and content.get("id") in (number, None):
                raise AnsweredNoError(int(error.get("code", 0)), str(error.get("message", "")))
            if "method" in content:
                self.notices.append(content)

    def wait(self) -> Object:
        """Return what the run tells next.

        Raises:
            GoneError: it is not held any more.
        """
        self._socket.settimeout(None)
        while not self.notices:
            content = self._read()
            if "method" in content:
                self.notices.append(content)
        return self.notices.popleft()

    def _read(self) -> Object:
        while True:
            end = self._come.find(b"\n")
            if end >= 0:
                text = bytes(self._come[:end])
                del self._come[: end + 1]
                try:
                    return protocol.parse_object(text)
                except FaultyLineError as error:
                    raise GoneError(f"it does not speak as daifu_bc does: {error}") from None
            try:
                part = self._socket.recv(_CHUNK)
            except (ConnectionError, BrokenPipeError):
                part = b""
            if not part:
                raise GoneError("the run has closed the connection")
            self._come += part

    def close(self) -> None:
        """Leave."""
        self._socket.close()


def connect(path: str) -> Connection | None:
    """Return a connection to a run; None if there is nobody any more, and then its socket is taken away.

    Raises:
        AttachError: it belongs to another user, or does not answer.
    """
    try:
        return Connection(path)
    except (ConnectionRefusedError, FileNotFoundError):
        if rendezvous.is_dead(path):
            try:
                os.unlink(path)
            except OSError:
                pass
        return None
    except (TimeoutError, OSError) as error:
        raise AttachError(f"{path} does not answer", why=str(error)) from None
