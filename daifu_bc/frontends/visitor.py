"""A client at the socket of a held run. Whatever it does, the run does not wait for it."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections import deque
from typing import Final

from daifu_bc.frontends import protocol
from daifu_bc.frontends.protocol import Call, FaultyLineError
from daifu_bc.recovery.descriptors import close_socket, identity

_CHUNK: Final = 1 << 16
#: Parts of what an action prints that wait to be sent, before the action waits for them.
_MANY_PARTS: Final = 1000
_PAUSE: Final = 0.001
#: Bytes for a client that does not read them, before it is sent away.
_MOST_UNREAD: Final = 16 << 20


class Visitor:
    """A connection, with what has come and what has to go.

    Args:
        connection: it.
        name: see below.

    Attributes:
        open: whether it is still there.
        name: which process it is, for those who are told of it; empty if the system does not tell.
        somebody_sends: whether there is a thread that sends what actions print, while they do.
    """

    somebody_sends = False

    def __init__(self, connection: socket.socket, name: str = "") -> None:
        connection.setblocking(False)
        self.connection = connection
        self._identity = identity(connection.fileno())
        self.name = name
        self.open = True
        self._come = bytearray()
        self._to_go = bytearray()
        self._request: Call | FaultyLineError | None = None
        #: What an action prints for it. The action may be interrupted anywhere, so that it is somebody else who sends it.
        self._printed: deque[tuple[object, str]] = deque()
        # Two threads may tell it something at the same time, if both are being ended.
        self._lock = threading.Lock()

    def receive(self) -> None:
        """Take what has come; a client that has gone, or sends lines without end, is not there any more."""
        try:
            part = self.connection.recv(_CHUNK) if self.is_ours else b""
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            part = b""
        if not part:
            self.close()
            return
        self._come += part
        if len(self._come) > protocol.MOST_BYTES and self._come.find(b"\n", 0, protocol.MOST_BYTES + 1) < 0:
            text = f"a line has at most {protocol.MOST_BYTES} bytes"
            self.send(protocol.failure(None, protocol.NO_REQUEST, text))
            self.close()

    @property
    def request(self) -> Call | FaultyLineError | None:
        """The first request that has come and is not answered yet; what is none says what is wrong with it."""
        if self._request is None and self.open and b"\n" in self._come:
            text, _, self._come = self._come.partition(b"\n")
            try:
                self._request = protocol.parse_call(bytes(text))
            except FaultyLineError as error:
                self._request = error
        return self._request if self.open else None

    def answered(self) -> None:
        """Go on to the next request."""
        self._request = None

    def print(self, number: object, text: str) -> None:
        """Take what an action prints; it is sent by `send_printed`.

        Args:
            number: the request that has started the action.
            text: the part that it has printed.
        """
        while self.open and len(self._printed) > _MANY_PARTS and self.somebody_sends:
            time.sleep(_PAUSE)
        self._printed.append((number, text))

    def send_printed(self) -> None:
        """Send what actions have printed."""
        while self._printed:
            number, text = self._printed.popleft()
            self.send(protocol.notice("output", {"id": number, "text": text}))

    def send(self, text: bytes) -> None:
        """Send a line; what does not go at once goes later."""
        if not self.open:
            return
        with self._lock:
            if len(self._to_go) > _MOST_UNREAD:
                self.close()
                return
            self._to_go += text
        self.flush()

    def overtaken(self) -> None:
        """Another one acts from now on."""
        self.send(protocol.notice("taken", {}))

    @property
    def waits(self) -> bool:
        """Whether something has to go yet."""
        return self.open and bool(self._to_go)

    def flush(self) -> None:
        """Send as much as goes at once."""
        if not self.open:
            return
        with self._lock:
            try:
                while self._to_go:
                    if not self.is_ours:
                        self.close()
                        return
                    del self._to_go[: self.connection.send(self._to_go[:_CHUNK])]
            except (BlockingIOError, InterruptedError):
                pass
            except OSError:
                self.close()

    def finish(self, deadline: float) -> None:
        """Send the rest and close.

        Args:
            deadline: until when the client is waited for, as `time.monotonic()` tells it.
        """
        with contextlib.suppress(OSError, ValueError):
            while self.waits and (left := deadline - time.monotonic()) > 0:
                select.select((), (self.connection,), (), left)
                self.flush()
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.open = False
        close_socket(self.connection, self._identity)

    @property
    def is_ours(self) -> bool:
        """Whether the descriptor is still the connection's; the program may have closed it, and have another file there."""
        return identity(self.connection.fileno()) == self._identity
