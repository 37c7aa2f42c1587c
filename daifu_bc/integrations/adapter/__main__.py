"""Runs debugpy's adapter, and lets in only who may act as its user.

Whoever speaks to the adapter can run code in the process that is debugged, and debugpy takes anybody who reaches its
port: on a machine with several users, each of them. Here a client on this machine has to be the same user's, as Linux
tells (`/proc/net/tcp`, proc_pid_net(5)); one from elsewhere has to know a token, which it sends with its `attach`.
Neither may start programs by the adapter, or attach it to other processes.

It is started in the place of `debugpy/adapter/__main__.py`, with its arguments, by an interpreter that may not find
the rest of daifu_bc: it imports nothing of it.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import socket
import sys
from collections.abc import Callable
from typing import Any, Final

#: The variable with the token; without one nobody is let in who is not known to be the same user.
TOKEN: Final = "DAIFU_DEBUGPY_TOKEN"
#: The key of the `attach` request that has it.
KEY: Final = "daifuToken"
_TABLES: Final = {socket.AF_INET: "/proc/net/tcp", socket.AF_INET6: "/proc/net/tcp6"}
#: What makes the adapter do something else than what it is here for.
_FOREIGN: Final = ("processId", "listen")


def user_of(connection: socket.socket) -> int | None:
    """Return the number of the user at the other end of a connection on this machine; None if it cannot be told.

    Args:
        connection: as it was accepted.
    """
    try:
        theirs, ours = connection.getpeername()[:2], connection.getsockname()[:2]
        if not ipaddress.ip_address(theirs[0]).is_loopback:
            return None
        wanted = [_written(theirs, connection.family), _written(ours, connection.family)]
        with open(_TABLES[connection.family], encoding="ascii") as file:
            for line in file:
                fields = line.split()
                if fields[1:3] == wanted:
                    return int(fields[7])
    except (OSError, ValueError, KeyError, IndexError):
        pass
    return None


def _written(address: tuple[str, int], family: socket.AddressFamily) -> str:
    """Return an address as the kernel's tables have it: words of four bytes in the machine's order, and the port."""
    packed = socket.inet_pton(family, address[0])
    words = [packed[start : start + 4] for start in range(0, len(packed), 4)]
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{address[1]:04X}"


def _guard(known: Callable[[socket.socket], bool], token: str) -> None:
    """Put the question who it is before everything that a client may ask for.

    Args:
        known: whether a connection needs no token.
        token: what others have to send; empty if they are not let in.
    """
    # debugpy is an extra, and these are its inside.
    from debugpy.adapter import clients
    from debugpy.common import sockets

    class Client(clients.Client):
        """A client that is asked who it is."""

        def __init__(self, connection: socket.socket) -> None:
            # Before its first message can come.
            self.daifu_known = known(connection)
            super().__init__(connection)

        def attach_request(self, request: Any) -> Any:
            given = request.arguments.get(KEY)
            right = isinstance(given, str) and token and hmac.compare_digest(given.encode(), token.encode())
            if not right and not self.daifu_known:
                raise request.cant_handle(f"who connects from elsewhere needs the right {KEY!r}")
            if any(name in request.arguments for name in _FOREIGN):
                raise request.cant_handle("only the run that has started this adapter can be attached to")
            return super().attach_request(request)

        def launch_request(self, request: Any) -> Any:
            raise request.cant_handle("a run that is there can be attached to; nothing can be launched here")

    def serve(name: str, handler: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        def handle(connection: socket.socket) -> None:
            # What is debugged is on this machine, and connects to the adapter itself.
            if known(connection) or (token and handler is Client):
                handler(connection)
            else:
                sockets.close_socket(connection)

        return serve_all(name, handle if handler is Client else handler, *arguments, **options)

    serve_all = sockets.serve
    sockets.serve = serve
    clients.Client = Client


def main() -> None:
    """Run the adapter."""
    # The folder of this file stands first, and is none of the adapter's.
    del sys.path[0]
    token = os.environ.pop(TOKEN, "")
    own = os.getuid()
    _guard(lambda connection: user_of(connection) == own, token)
    from debugpy.adapter.__main__ import main as run

    run()


if __name__ == "__main__":
    main()
