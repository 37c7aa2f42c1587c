"""The commands for held runs: `daifu ps`, `daifu attach`, `daifu do`."""

from __future__ import annotations

import datetime as dt
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from daifu_bc.errors import UsageError
from daifu_bc.frontends import conversation, rendezvous
from daifu_bc.frontends.connection import AnsweredNoError, Connection, GoneError, connect
from daifu_bc.frontends.protocol import Object
from daifu_bc.frontends.rendezvous import AttachError
from daifu_bc.frontends.switching import columns, described
from daifu_bc.frontends.values import printable
from daifu_bc.frontends.width import terminal_width

#: Seconds in which a run that is not busy says how it is.
_PATIENCE: Final = 2.0
_HELP_FLAGS: Final = ("-h", "--help")
FAILED: Final = 1
#: What the shell reports for a program that Ctrl-C has ended.
INTERRUPTED: Final = 130

PS_HELP = """\
usage: daifu ps

Lists your runs that are held and wait for somebody (`daifu run --attach`): process, state, what was raised and
where, since when, command. A run is busy while something that was typed runs there.
"""

ATTACH_HELP = """\
usage: daifu attach [PID]

Opens the prompt of a held run (`daifu run --attach`) in this terminal; without PID, that of the only one. Beside the
words of the prompt there are two more:
  take              another client acts there: take over
  detach            leave; the run stays held (also: Ctrl-D)
"""

DO_HELP = """\
usage: daifu do [--take] PID 'WORDS' ...

Runs words in a held run (`daifu run --attach`) and prints what they answer. Each argument is a line:
  daifu do 4711 'action batch = batch[:16]' pass
The exit code is 0 if all was done, 1 if something was not.

options:
  --take            take over from another client
"""


DEBUG_HELP = """\
usage: daifu debug PID

Lets a debugger attach to a held run, and prints where it listens: HOST:PORT. VS Code attaches there by a configuration
of type `debugpy`, request `attach`. Needs the extra in the run's environment: pip install 'daifu_bc[debugpy]'.
"""


class Run(NamedTuple):
    """A process with a socket.

    Attributes:
        pid: its number.
        path: the socket.
        status: what it says of itself; None if it is busy.
    """

    pid: int
    path: str
    status: Object | None


def runs() -> list[Run]:
    """Return the user's runs that can be reached; sockets of processes that are gone are removed."""
    found = []
    try:
        for pid, path in rendezvous.found():
            connection = connect(path)
            if connection is None:
                continue
            try:
                found.append(Run(pid, path, connection.ask("status", _PATIENCE)))
            except (TimeoutError, AnsweredNoError):
                found.append(Run(pid, path, None))
            except GoneError:  # it has just gone on
                continue
            finally:
                connection.close()
    except AttachError as error:
        print(f"daifu: {error}", file=sys.stderr)
    return found


def show_runs(words: Sequence[str]) -> int:
    """List the runs: `daifu ps`."""
    if any(word in _HELP_FLAGS for word in words):
        print(PS_HELP, end="")
        return 0
    if words:
        raise UsageError("`daifu ps` takes nothing after it")
    rows = [("PID", "STATE", "HELD AT", "SINCE", "COMMAND"), *map(_row, runs())]
    if len(rows) == 1:
        print("No run is held.")
        return 0
    print(columns(rows, terminal_width(sys.stdout), heading=True))
    return 0


def _row(run: Run) -> tuple[str, str, str, str, str]:
    if run.status is None:
        return str(run.pid), "busy", "", "", _command(run.pid)
    holds: list[Object] = run.status["holds"]
    first = next((hold for hold in holds if hold["number"] == run.status["hold"]), holds[0])
    error: dict[str, Any] = first["error"]
    what = described(error["type"], error["text"])
    place = f"{os.path.basename(first['file'])}:{first['line']}, in {first['function']}"
    more = f" (and {len(holds) - 1} more)" if len(holds) > 1 else ""
    since = dt.datetime.fromtimestamp(first["since"]).isoformat(" ", "seconds")
    command = shlex.join(run.status["command"])
    return str(run.pid), "held", printable(f"{what} at {place}{more}"), since, printable(command)


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    return printable(shlex.join(os.fsdecode(word) for word in words))


def attach(words: Sequence[str]) -> int:
    """Open the prompt of a run: `daifu attach`."""
    if any(word in _HELP_FLAGS for word in words):
        print(ATTACH_HELP, end="")
        return 0
    if len(words) > 1:
        raise UsageError("`daifu attach` takes one PID, or nothing")
    try:
        connection = _to(_pid(words[0]) if words else _only_one())
    except AttachError as error:
        print(f"daifu: {error}", file=sys.stderr)
        return FAILED
    try:
        return conversation.converse(connection)
    finally:
        connection.close()


def do(words: Sequence[str]) -> int:
    """Run words in a run: `daifu do`."""
    rest = list(words)
    if rest and rest[0] in _HELP_FLAGS:
        print(DO_HELP, end="")
        return 0
    take = rest[:1] == ["--take"]
    if take:
        del rest[0]
    if len(rest) < len(("PID", "WORDS")):
        raise UsageError("`daifu do` needs a PID and words; `daifu do --help` tells more")
    output = _Output()
    try:
        connection = _to(_pid(rest[0]))
        try:
            result = _done(connection, "\n".join(rest[1:]), output, take=take)
        finally:
            connection.close()
    except (AttachError, AnsweredNoError) as error:
        print(f"daifu: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("daifu: what was sent still runs there", file=sys.stderr)
        return INTERRUPTED
    except GoneError as error:
        print(f"daifu: it is not known what has become of it: {error}", file=sys.stderr)
        return FAILED
    output.line(result["text"])
    return FAILED if result["failed"] else 0


def _done(connection: Connection, words: str, output: _Output, *, take: bool) -> Object:
    """Have words run; Ctrl-C interrupts what they do, a second one leaves it alone."""
    with connection.interruptible():
        number = connection.send("do", words=words, take=take, stream=True)
        try:
            return connection.result(number, printed=output.write)
        except KeyboardInterrupt:
            connection.send("interrupt")
            return connection.result(number, printed=output.write)


class _Output:
    """Standard output, for what an action prints and for what words answer."""

    def __init__(self) -> None:
        self._line_ended = True

    def write(self, text: str) -> None:
        """Write a part; characters that the encoding does not have are escaped."""
        self._line_ended = text.endswith("\n")
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()

    def line(self, text: str) -> None:
        """End the line that has been begun, and write a text on lines of its own if there is one."""
        if not self._line_ended:
            self.write("\n")
        if text:
            self.write(f"{text}\n")


def debug(words: Sequence[str]) -> int:
    """Print where a debugger may attach to a run: `daifu debug`."""
    if any(word in _HELP_FLAGS for word in words):
        print(DEBUG_HELP, end="")
        return 0
    if len(words) != 1:
        raise UsageError("`daifu debug` takes one PID")
    try:
        connection = _to(_pid(words[0]))
        try:
            result = connection.ask("do", words="debug")
        finally:
            connection.close()
    except (AttachError, AnsweredNoError, GoneError) as error:
        print(f"daifu: {error}", file=sys.stderr)
        return FAILED
    *before, last = result["text"].splitlines() or [""]
    print(*before, sep="\n", end="\n" if before else "", file=sys.stderr)
    address = last.removeprefix("Debugger listens at ").removesuffix(".")
    if result["failed"] or address == last:
        print(f"daifu: {last}", file=sys.stderr)
        return FAILED
    print(address)
    return 0


def _pid(word: str) -> int:
    if not word.isdecimal():
        raise UsageError(f"{word!r} is no PID; `daifu ps` lists the runs that are held")
    return int(word)


def _only_one() -> int:
    found = runs()
    if not found:
        raise AttachError("no run is held")
    if len(found) > 1:
        numbers = ", ".join(str(run.pid) for run in found)
        raise AttachError(f"several runs are held: {numbers}", remedy="Name one; `daifu ps` tells more.")
    return found[0].pid


def _to(pid: int) -> Connection:
    for number, path in rendezvous.found():
        connection = connect(path) if number == pid else None
        if connection is not None:
            return connection
    raise AttachError(f"process {pid} is not held", remedy="`daifu ps` lists the runs that are.")
