"""The command that stops a running program from another terminal: `daifu pause`."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

from daifu_bc.errors import UsageError
from daifu_bc.frontends import roster
from daifu_bc.frontends.client import held_at, pid_in, runs
from daifu_bc.frontends.exit_codes import FAILED
from daifu_bc.frontends.protocol import Object
from daifu_bc.frontends.roster import Run
from daifu_bc.recovery import processes
from daifu_bc.recovery.meeting import AttachError

PAUSE_HELP: Final = """\
usage: daifu pause [--wait SECONDS] PID

Stops a run at its next statement, and says where that is; `daifu attach PID` then opens its prompt, and `pass` lets
it go on. A call that it waits for is finished first.

options:
  --wait SECONDS    for how long to wait until it stands: 60 if left out
"""

_USUAL: Final = 60.0
_PAUSE: Final = 0.05
#: Seconds in which a run that is held already can be reached, if it can be.
_SOON: Final = 2.0
_HELP_FLAGS: Final = ("-h", "--help")


def pause(words: Sequence[str]) -> int:
    """Stop a run: `daifu pause`."""
    rest = list(words)
    if any(word in _HELP_FLAGS for word in rest):
        print(PAUSE_HELP, end="")
        return 0
    seconds = _USUAL
    if rest and rest[0].partition("=")[0] == "--wait":
        _, equals, value = rest.pop(0).partition("=")
        if not equals:
            value = rest.pop(0) if rest else ""
        seconds = _seconds(value)
    if len(rest) != 1:
        raise UsageError("`daifu pause` needs a PID; `daifu pause --help` tells more")
    try:
        print(_stopped(pid_in(rest[0]), seconds))
    except AttachError as error:
        print(f"daifu: {error}", file=sys.stderr)
        return FAILED
    return 0


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise UsageError(f"{text!r} is no number of seconds")
    return found


def _stopped(pid: int, seconds: float) -> str:
    run = next((run for run in runs() if run.pid == pid), None)
    if run is None:
        raise AttachError(f"process {pid} is none of your runs", remedy="`daifu ps` lists them.")
    if run.held:
        if run.socket is None and run.facts.get("pause_signal"):
            _break_off(run, seconds)
        return f"It is held already: {held_at(run.facts['hold'])}."
    _send(run)
    deadline = time.monotonic() + seconds
    while True:
        facts = roster.read(run.path)
        if facts is None or not roster.is_there(run.facts):
            raise AttachError(f"process {pid} has ended meanwhile")
        if facts.get("state") == "held":
            return f"Held: {held_at(facts['hold'])}."
        if time.monotonic() > deadline:
            raise AttachError(
                f"process {pid} has not come to a statement in {seconds:g} s",
                remedy="It stops when it does; `daifu ps` tells.",
            )
        time.sleep(_PAUSE)


def _break_off(run: Run, seconds: float) -> None:
    """A rule may be waiting before it goes on; then the hold is left to people, who can reach it."""
    with contextlib.suppress(AttachError):
        _send(run)
    deadline = time.monotonic() + min(seconds, _SOON)
    while time.monotonic() < deadline:
        if any(other.pid == run.pid and other.socket is not None for other in runs()):
            return
        time.sleep(_PAUSE)


def _send(run: Run) -> None:
    """Send the signal to the very process that has told of it, if it has a handler for it: others would be ended.

    Raises:
        AttachError: it cannot be done.
    """
    number = _signal(run.facts)
    send: Callable[[int], None] = lambda number: os.kill(run.pid, number)  # noqa: E731
    descriptor = -1
    try:
        if hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal"):
            descriptor = os.pidfd_open(run.pid)
            send = lambda number: signal.pidfd_send_signal(descriptor, number)  # noqa: E731
    except OSError:  # an old kernel; or it has gone, which is found out below
        pass
    try:
        if not roster.is_there(run.facts) or run.facts.get("namespace") != processes.namespace():
            raise AttachError(f"process {run.pid} cannot be sent a signal", why="it is not there")
        if processes.catches(run.pid, number) is False:
            raise AttachError(
                f"process {run.pid} cannot be paused",
                why=f"it has no handler for {signal.Signals(number).name} any more, which would end it",
            )
        send(number)
    except OSError as error:
        raise AttachError(f"process {run.pid} cannot be paused", why=str(error)) from None
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _signal(facts: Object) -> int:
    name = facts.get("pause_signal")
    if name not in signal.Signals.__members__:
        raise AttachError(
            f"process {facts['pid']} cannot be paused",
            why="no signal is free for it: the program has a use for it, or none was wanted",
            remedy="Start it with another --pause-signal.",
        )
    return int(signal.Signals[str(name)])
