"""A client at the socket of a held run. Whatever it does, the run does not wait for it."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from typing import Final

from daifu_bc.frontends import protocol

_CHUNK: Final = 1 << 16
#: Bytes for a client that does not read them, before it is sent away.
_MOST_UNREAD: Final = 16 << 20


class Visitor:
    """A connection, with what has come and what has to go.

    Args:
        connection: it.

    Attributes:
        open: whether it is still there.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.open = True
        self._come = bytearray()
        self._to_go = bytearray()
        # Two threads may tell it something at the same time, if both are being ended.
        self._lock = threading.Lock()

    def receive(self) -> None:
        """Take what has come; a client that has gone, or sends lines without end, is not there any more."""
        try:
            part = self.connection.recv(_CHUNK)
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
    def has_line(self) -> bool:
        """Whether a whole line has come."""
        return self.open and b"\n" in self._come

    def line(self) -> bytes:
        """Return the first line that has come."""
        text, _, rest = self._come.partition(b"\n")
        self._come = rest
        return bytes(text)

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
        self.connection.close()
