"""The commands for held runs: `daifu ps`, `daifu attach`, `daifu do`."""

from __future__ import annotations

import datetime as dt
import json
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Final

from daifu_bc.errors import UsageError
from daifu_bc.frontends import conversation, roster
from daifu_bc.frontends.connection import AnsweredNoError, Connection, GoneError, connect
from daifu_bc.frontends.exit_codes import FAILED, INTERRUPTED
from daifu_bc.frontends.protocol import Object
from daifu_bc.frontends.roster import Run
from daifu_bc.frontends.switching import columns, described
from daifu_bc.frontends.values import printable
from daifu_bc.frontends.width import terminal_width
from daifu_bc.recovery import meeting
from daifu_bc.recovery.meeting import AttachError

TAKE: Final = "--take"
RANKS: Final = "--ranks"
_DO_FLAGS: Final = (TAKE, RANKS)
_HELP_FLAGS: Final = ("-h", "--help")

PS_HELP = """\
usage: daifu ps [--json]

Lists your runs: process, state (running or held), what was raised and where, since when, command. What processes have
left that are gone is removed.

options:
  --json            as a list of objects, for other programs
"""

ATTACH_HELP = """\
usage: daifu attach [PID]

Opens the prompt of a held run in this terminal; without PID, that of the only one. Beside the
words of the prompt there are two more:
  take              another client acts there: take over
  detach            leave; the run stays held (also: Ctrl-D)
"""

DO_HELP = """\
usage: daifu do [--take] [--ranks] PID 'WORDS' ...

Runs words in a held run and prints what they answer. Each argument is a line:
  daifu do 4711 'action batch = batch[:16]' pass
The exit code is 0 if all was done, 1 if something was not.

options:
  --take            take over from another client
  --ranks           do it in all held ranks of the distributed run that PID belongs to, as far as they are on this machine
"""


DEBUG_HELP = """\
usage: daifu debug PID

Lets a debugger attach to a held run, and prints where it listens: HOST:PORT. VS Code attaches there by a configuration
of type `debugpy`, request `attach`. Needs the extra in the run's environment: pip install 'daifu_bc[debugpy]'.
"""


def runs() -> list[Run]:
    """Return the user's runs; why some cannot be seen is told."""
    found, problems = roster.runs()
    for problem in problems:
        print(f"daifu: {problem}", file=sys.stderr)
    return found


def show_runs(words: Sequence[str]) -> int:
    """List the runs: `daifu ps`."""
    if any(word in _HELP_FLAGS for word in words):
        print(PS_HELP, end="")
        return 0
    if [word for word in words if word != "--json"]:
        raise UsageError("`daifu ps` takes --json, or nothing")
    found = runs()
    if words:
        print(json.dumps([{**run.facts, "socket": run.socket} for run in found], indent=1))
        return 0
    rows = [("PID", "STATE", "HELD AT", "SINCE", "COMMAND"), *map(_row, found)]
    if len(rows) == 1:
        print("There is no run.")
        return 0
    print(columns(rows, terminal_width(sys.stdout), heading=True))
    return 0


def _row(run: Run) -> tuple[str, str, str, str, str]:
    hold: Object | None = run.facts.get("hold")
    since = run.facts.get("started") if hold is None else hold["since"]
    moment = "" if since is None else dt.datetime.fromtimestamp(since).isoformat(" ", "seconds")
    command = shlex.join(map(str, run.facts["command"]))
    return str(run.pid), str(run.facts["state"]), held_at(hold), moment, printable(command)


def held_at(hold: Object | None) -> str:
    """Return what was raised and where, in a few words.

    Args:
        hold: what is told of a hold; None for none.
    """
    if hold is None:
        return ""
    error: Object = hold["error"]
    place = f"{os.path.basename(hold['file'])}:{hold['line']}, in {hold['function']}"
    return printable(f"{described(error['type'], error['text'])} at {place}")


def attach(words: Sequence[str]) -> int:
    """Open the prompt of a run: `daifu attach`."""
    if any(word in _HELP_FLAGS for word in words):
        print(ATTACH_HELP, end="")
        return 0
    if len(words) > 1:
        raise UsageError("`daifu attach` takes one PID, or nothing")
    try:
        connection = _to(pid_in(words[0]) if words else _only_one())
    except AttachError as error:
        print(f"daifu: {error}", file=sys.stderr)
        return FAILED
    try:
        return conversation.converse(connection)
    except AnsweredNoError as error:
        print(f"daifu: {error}", file=sys.stderr)
        return FAILED
    finally:
        connection.close()


def do(words: Sequence[str]) -> int:
    """Run words in a run: `daifu do`."""
    rest = list(words)
    if rest and rest[0] in _HELP_FLAGS:
        print(DO_HELP, end="")
        return 0
    flags = set()
    while rest and rest[0] in _DO_FLAGS:
        flags.add(rest.pop(0))
    if len(rest) < len(("PID", "WORDS")):
        raise UsageError("`daifu do` needs a PID and words; `daifu do --help` tells more")
    pid, text = pid_in(rest[0]), "\n".join(rest[1:])
    if RANKS not in flags:
        return _do_in(pid, text, take=TAKE in flags)
    try:
        members = _ranks_with(pid)
    except AttachError as error:
        print(f"daifu: {error}", file=sys.stderr)
        return FAILED
    codes = []
    for run in members:
        print(f"rank {run.facts['ranks']['rank']} (process {run.pid}):", flush=True)
        codes.append(_do_in(run.pid, text, take=TAKE in flags))
    return max(codes)


def _ranks_with(pid: int) -> list[Run]:
    """Return the held runs that belong together with one, in the order of their ranks.

    Raises:
        AttachError: it is on its own.
    """
    known = runs()
    group = next((run.facts.get("ranks") for run in known if run.pid == pid), None)
    if not group:
        raise AttachError(
            f"process {pid} is none of several ranks", remedy="`daifu ps` lists the runs that there are."
        )
    found = [run for run in known if run.held and _is_of(run, group)]
    if not found:
        raise AttachError(f"none of the ranks that process {pid} belongs to is held")
    return sorted(found, key=lambda run: int(run.facts["ranks"]["rank"]))


def _is_of(run: Run, group: Object) -> bool:
    ranks: Object = run.facts.get("ranks") or {}
    return all(ranks.get(name) == group[name] for name in ("group", "size"))


def _do_in(pid: int, text: str, *, take: bool) -> int:
    """Run words in a run, and return the exit code."""
    output = _Output()
    try:
        connection = _to(pid)
        try:
            result = _done(connection, text, output, take=take)
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
        """Write a part."""
        self._line_ended = text.endswith("\n")
        sys.stdout.write(text)
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
        connection = _to(pid_in(words[0]))
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


def pid_in(word: str) -> int:
    """Return the number of a process.

    Raises:
        UsageError: it is none.
    """
    if not word.isdecimal():
        raise UsageError(f"{word!r} is no PID; `daifu ps` lists the runs that are held")
    return int(word)


def _only_one() -> int:
    found = [run for run in runs() if run.held]
    if not found:
        raise AttachError("no run is held")
    if len(found) > 1:
        numbers = ", ".join(str(run.pid) for run in found)
        raise AttachError(f"several runs are held: {numbers}", remedy="Name one; `daifu ps` tells more.")
    return found[0].pid


def _to(pid: int) -> Connection:
    there = [run for run in runs() if run.pid == pid]
    for run in there:
        connection = connect(run.socket) if run.socket is not None else None
        if connection is not None:
            return connection
    if not there and os.getuid() == 0:
        connection = _as_root(pid)
        if connection is not None:
            return connection
    if any(not run.held for run in there):
        raise AttachError(f"process {pid} runs, and is not held", remedy=f"`daifu pause {pid}` stops it.")
    if there:
        raise AttachError(
            f"process {pid} is held, but not by anybody who can be reached",
            remedy=f"If a rule is waiting, `daifu pause {pid}` ends that.",
        )
    raise AttachError(f"process {pid} is not held", remedy="`daifu ps` lists the runs that are.")


def _as_root(pid: int) -> Connection | None:
    """Return a connection to another user's run, which lets root in if it was told to."""
    try:
        user, directories = meeting.directories_of(pid)
    except OSError:
        return None
    for directory in directories:
        try:
            meeting.check(directory, user)
        except (AttachError, OSError):
            continue
        path = os.path.join(directory, f"{pid}.sock")
        connection = connect(path, user) if os.path.exists(path) else None
        if connection is not None:
            return connection
    return None
