"""Hands messages over to a process of its own, which delivers them: the run does not wait, and may end meanwhile.

That process is started with the first message. It is no child of the program's (`os.wait` never meets it), holds none
of its files but standard error, which it gives up with the program's end, and ends when it has nothing left to do.
"""

from __future__ import annotations

import _socket
import contextlib
import json
import os
import signal
import sys
from typing import Any, Final

from daifu_bc.recovery import journal

#: Where the process that delivers finds what comes.
DESCRIPTOR: Final = 3
_SHELL: Final = "/bin/sh"
#: The process that is started is the shell, which leaves the other one alone and ends at once.
_DETACHED: Final = '"$0" "$@" &'
_ROOT: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
#: Appended to the path, so that nothing beside us takes the place of a module of the standard library.
_PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv[1]); from daifu_bc.recovery.delivery import main; main()"
)
#: What the user's command is not to inherit: it would be vaccinated, or tell of itself.
_NOT_INHERITED: Final = ("DAIFU", "DAIFU_SCOPE", "DAIFU_NOTIFY", "DAIFU_WEBHOOK", "DAIFU_PLAYBOOK")
_KEPT: Final = (signal.SIGKILL, signal.SIGSTOP)


class Courier:
    """The process that delivers, as the run sees it.

    No lock: it could be left locked in a forked child, or be asked for by a signal's handler of the same thread. What
    two threads may do at the same time is to start two such processes, and one of them soon ends.
    """

    def __init__(self) -> None:
        #: Our end of the socket, and which one it is: the program may close any descriptor, and get its number anew.
        self._descriptor = -1
        self._identity = (0, 0)

    def send(self, job: dict[str, Any]) -> None:
        """Hand over what is to be delivered.

        Args:
            job: see `daifu_bc.recovery.delivery`.

        Raises:
            OSError: it cannot be handed over.
        """
        line = json.dumps(job, ensure_ascii=True, default=str).encode("ascii") + b"\n"
        if self._is_there():
            try:
                self._write(line)
                return
            except BlockingIOError:  # it does not come after
                raise OSError("too many messages wait") from None
            except OSError:  # it has been ended
                self.forget()
        self._start()
        self._write(line)

    def forget(self) -> None:
        """Close our end: what was handed over is still delivered. In a forked child it is the parent's."""
        if self._is_there():
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
        self._descriptor = -1

    def _is_there(self) -> bool:
        if self._descriptor < 0:
            return False
        try:
            found = os.fstat(self._descriptor)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity

    def _write(self, line: bytes) -> None:
        connection = _socket.socket(fileno=self._descriptor)
        try:
            # The program may have SIGPIPE end it.
            sent = connection.send(line, _socket.MSG_NOSIGNAL | _socket.MSG_DONTWAIT)
        finally:
            connection.detach()
        if sent != len(line):
            self.forget()  # it drops a line that has no end
            raise OSError("too many messages wait")

    def _start(self) -> None:
        # Neither `socket` nor `subprocess`: the program may have put something else in their places.
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            command = [sys.executable, "-I", "-S", "-c", _PROGRAM, _ROOT]
            environment = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
            pid = os.posix_spawn(
                _SHELL,
                [_SHELL, "-c", _DETACHED, *command],
                environment | {journal.VARIABLE: journal.path()},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), DESCRIPTOR),
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                ],
                setsigmask=(),
                setsigdef=[number for number in signal.valid_signals() if number not in _KEPT],
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._descriptor = ours.detach()
        found = os.fstat(self._descriptor)
        self._identity = (found.st_dev, found.st_ino)
        with contextlib.suppress(ChildProcessError):  # the program does not want to know of its children
            _, status = os.waitpid(pid, 0)
            if status:  # no process may be added, say
                self.forget()
                raise OSError(f"{_SHELL} has failed")


#: Of this process.
courier: Final = Courier()

os.register_at_fork(after_in_child=courier.forget)
