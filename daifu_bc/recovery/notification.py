"""Telling somebody elsewhere what happens to a hold: by a command of the user's, or by a message to an address."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Final

from daifu_bc.errors import UsageError
from daifu_bc.recovery import journal
from daifu_bc.recovery.announcements import Kind
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.telling import tell
from daifu_bc.recovery.working import came_from_outside

#: A shell's command line, which gets the message on its standard input.
COMMAND: Final = "DAIFU_NOTIFY"
#: The address that the message is posted to. It may be a secret: it is never shown.
ADDRESS: Final = "DAIFU_WEBHOOK"
_SCHEMES: Final = ("http", "https")
#: Characters of a text that a message contains; a message has to go at once.
_MOST: Final = 2000

_told = False


def checked_address(text: str) -> str:
    """An address as the user has written it.

    Raises:
        UsageError: no message can be posted to it. The error does not tell the address.
    """
    from urllib.parse import urlsplit  # most users have none

    found = text.strip()
    try:
        parts = urlsplit(found)
        right = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        right = False
    if right and found.isascii() and found.isprintable() and " " not in found:
        return found
    raise UsageError(
        "the webhook is no address that a message can be posted to",
        remedy="Write http://HOST/... or https://HOST/...",
    )


def wanted() -> bool:
    """Tell whether anybody is to be told."""
    return bool(os.environ.get(COMMAND) or os.environ.get(ADDRESS))


def prepare() -> None:
    """Import what is needed for it; at a crash it may be too late."""
    if wanted():
        from daifu_bc.recovery import courier  # noqa: F401


def notify(kind: Kind, hold: HoldLike, reason: str) -> None:
    """Tell what has happened to a hold; nobody waits for that, and the run does not feel it.

    Args:
        kind: what has happened.
        hold: the hold.
        reason: why, in a few words.
    """
    global _told
    if not wanted():
        return
    try:
        from daifu_bc.recovery import courier

        courier.courier.send(
            {
                "command": os.environ.get(COMMAND, ""),
                "address": os.environ.get(ADDRESS, ""),
                "folder": journal.started_in(),
                "place": journal.whereabouts(hold),
                "message": message(kind, hold, reason),
            }
        )
    except Exception as error:
        if came_from_outside(error):
            raise
        if not _told:
            _told = True
            what = f"{type(error).__name__}: {error}"
            tell(f"daifu_bc: nobody is told of hold {hold.number} ({what}). The run is not affected.")
        journal.record("not told", hold=hold, outcome=f"{kind}: {type(error).__name__}")


def message(kind: Kind, hold: HoldLike, reason: str) -> dict[str, Any]:
    """Return what is told: no value of a variable is in it, nor an exception's text, unless that was asked for.

    Args:
        kind: what has happened.
        hold: the hold.
        reason: why, in a few words.
    """
    from datetime import UTC, datetime

    place = journal.whereabouts(hold)
    pid, host = os.getpid(), os.uname().nodename
    content: dict[str, Any] = {
        "event": kind,
        "time": datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds"),
        "host": host,
        "pid": pid,
        "command": _cut(sys.orig_argv),
        "folder": journal.started_in(),
        "hold": place["hold"],
        "thread": place["thread"],
        "error": place["what"],
    }
    content |= {name: place[name] for name in ("file", "line", "function", "text") if name in place}
    if reason:
        content["reason"] = reason
    content["attach"] = f"daifu attach {pid}"
    content["summary"] = _summary(kind, reason, place, f"process {pid} on {host}")
    return content


def _summary(kind: Kind, reason: str, place: dict[str, Any], where: str) -> str:
    """Return the message in a sentence, as chat programs show it."""
    text = f": {str(place['text']).partition(chr(10))[0]}" if place.get("text") else ""
    at = (
        f" at {os.path.basename(str(place['file']))}:{place['line']}, in {place['function']}"
        if "file" in place
        else ""
    )
    what = f"{where}, hold {place['hold']} ({place['what']}{text}{at})"
    if kind == "held":
        return f"daifu: held: {what}. Type `daifu attach {os.getpid()}` there."
    return f"daifu: {kind}: {what}{f': {reason}' if reason else ''}."


def _cut(words: list[str]) -> list[str]:
    """Return the beginning of a command line that may be very long."""
    kept: list[str] = []
    room = _MOST
    for word in words:
        room -= len(word) + 1
        if room < 0:
            return [*kept, "..."]
        kept.append(word)
    return kept
