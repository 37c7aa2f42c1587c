"""The journal: every hold and what was done about it, a JSON object on each line.

It holds what happened, where, and the code that was run; never the value of a variable, and so no exception's
message either, unless that was asked for. It never fails the run: what goes wrong with the file is told once on stderr.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator

from daifu_bc.recovery.attributes import plain_text
from daifu_bc.recovery.interface import FrameLike, HoldLike
from daifu_bc.recovery.private import (
    DIRECTORY_MODE,
    FILE_MODE,
    opened,
    prepare_state_directory,
    state_directory,
)
from daifu_bc.recovery.telling import tell

VARIABLE = "DAIFU_JOURNAL"
#: Whether values may be written, too: 1 or 0.
VALUES = "DAIFU_JOURNAL_VALUES"
#: Characters of an exception's text.
MOST_TEXT = 1000
#: Seconds to wait, one after the other, for the end of a line that another process may be writing; half a second in all.
PAUSES = tuple(0.002 * 2**n for n in range(8))


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"


# The program may change its directory; a relative name is meant from where it started.
_STARTED_IN = _working_directory()
_chosen: str | None = None


class _Author(threading.local):
    """Who does what this thread does to a hold: the name of a rule; empty for whoever answers."""

    rule = ""


_author = _Author()
_told = False


def started_in() -> str:
    """Return the directory that the program was started in."""
    return _STARTED_IN


def values_wanted() -> bool:
    """Tell whether values may be written."""
    return os.environ.get(VALUES) == "1"


def path() -> str:
    """Return the journal's file: what was set, else that of the environment, else the user's own."""
    name = _chosen or os.environ.get(VARIABLE)
    return os.path.join(_STARTED_IN, os.path.expanduser(name)) if name else _own_path()


def _own_path() -> str:
    return os.path.join(_STARTED_IN, state_directory(), "journal.jsonl")


def set_file(name: str | None) -> None:
    """Write to this file from now on; None goes back to the environment's or the user's own."""
    global _chosen
    _chosen = name


@contextlib.contextmanager
def by(rule: str) -> Iterator[None]:
    """Within, what is recorded in this thread was done by a rule.

    Args:
        rule: its name.
    """
    before, _author.rule = _author.rule, rule
    try:
        yield
    finally:
        _author.rule = before


def held(hold: HoldLike) -> None:
    """Record that a hold began."""
    again = hold.repetition.again
    if again:
        record("held", hold=hold, again=again)
    else:
        record("held", hold=hold)


def done(
    hold: HoldLike,
    word: str,
    *,
    code: str = "",
    seconds: float | None = None,
    outcome: str = "done",
    selected: bool = False,
) -> None:
    """Record that a word was run against a hold.

    Args:
        hold: the hold.
        word: `action`, `surgery`, or one of the words that decide.
        code: the text of the action, of the surgery's new definition, or of the expression.
        seconds: how long it took; for a word that decides, leave it out: it is how long the hold lasted.
        outcome: `done`, or why not. It must not contain values.
        selected: whether it was about the frame that is selected.
    """
    lasted = time.monotonic() - hold.began if seconds is None else seconds
    record(word, hold=hold, code=code, seconds=lasted, outcome=outcome, selected=selected)


def when_running(hold: HoldLike) -> Callable[[], None]:
    """Return what records that the run goes on after a hold; it keeps nothing of the hold alive."""
    place, began, asked = whereabouts(hold), hold.began, hold.asked

    def note() -> None:
        now = time.monotonic()
        record("running again", place=place, seconds=now - asked, held=round(now - began, 6))

    return note


def record(
    event: str,
    *,
    hold: HoldLike | None = None,
    place: dict[str, object] | None = None,
    code: str = "",
    seconds: float | None = None,
    outcome: str = "",
    selected: bool = False,
    **more: str | float,
) -> None:
    """Append one line to the journal. Whatever goes wrong, the program is not to feel it."""
    try:
        # Imported with the engine at the latest, and no sooner: children import this module at their start.
        import json
        from datetime import UTC, datetime

        entry: dict[str, object] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "pid": os.getpid(),
            "event": event,
        }
        if hold is not None:
            entry |= whereabouts(hold)
            if selected and not hold.selected.held:
                frame = hold.selected
                entry["frame"] = f"{frame.name} at {frame.filename}:{frame.line}"
        elif place is not None:
            entry |= place
        if code:
            entry["code"] = code
        if seconds is not None:
            entry["seconds"] = round(max(seconds, 0.0), 6)
        if outcome:
            entry["outcome"] = outcome
        if _author.rule:
            entry["rule"] = _author.rule
        entry |= more
        # ASCII, so that a name that is no valid text (a surrogate) can be written too.
        _write(json.dumps(entry, ensure_ascii=True, default=str).encode("ascii") + b"\n")
    except Exception as error:  # noqa: BLE001 - a full disk or too little memory must not end the run
        _tell(error, "What happens is not recorded")


def _write(line: bytes) -> None:
    name, own = path(), _own_path()
    try:
        _append(name, line)
    except OSError as error:
        if name == own:
            raise
        # The line is not to be lost with a file that was named wrongly, or is full.
        with contextlib.suppress(OSError):
            _append(own, line)
            _tell(error, f"It is written to {own} instead")
            return
        raise


def whereabouts(hold: HoldLike) -> dict[str, object]:
    """Return where a hold is and what was raised; the exception's text only if values are wanted."""
    kind = type(hold.exception)
    frame = _held_frame(hold)
    place = {} if frame is None else {"file": frame.filename, "line": frame.line, "function": frame.name}
    what = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    facts = {"hold": hold.number, "thread": hold.thread_name, "what": what, **place}
    text = plain_text(hold.exception) if values_wanted() else ""
    return facts | {"text": text[:MOST_TEXT]} if text else facts


def _held_frame(hold: HoldLike) -> FrameLike | None:
    return next((frame for frame in hold.frames if frame.held), None)


def _append(name: str, line: bytes) -> None:
    # No lock: one line is one write, appended as a whole, and a lock could be left locked in a forked child.
    flags = os.O_WRONLY | os.O_APPEND
    if name == _own_path():
        prepare_state_directory()
        descriptor = opened(name, flags)
    else:  # whatever the user has named: a link, a pipe, a terminal
        os.makedirs(os.path.dirname(name), mode=DIRECTORY_MODE, exist_ok=True)
        # O_NONBLOCK: a named pipe that nobody reads would otherwise stop the program here.
        descriptor = os.open(name, flags | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, FILE_MODE)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and _is_broken(name):
            # A process died, or the disk was full, in the middle of a line: damage that one only.
            line = b"\n" + line
        written = os.write(descriptor, line)
        if written != len(line):
            raise OSError(f"only {written} of {len(line)} bytes could be written")
    finally:
        os.close(descriptor)


def _is_broken(name: str) -> bool:
    """Tell whether the last line has no end. Another process's may be on its way: it grows page by page.

    Its writer may have to wait for a processor between two pages.
    """
    for pause in PAUSES:
        if _ends_with_newline(name):
            return False
        time.sleep(pause)
    return not _ends_with_newline(name)


def _ends_with_newline(name: str) -> bool:
    try:
        with open(name, "rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return True
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"
    except OSError:
        return True  # it may be written but not read


def _tell(error: Exception, instead: str) -> None:
    global _told
    if _told:
        return
    _told = True
    tell(
        f"daifu_bc: cannot write the journal {path()} ({type(error).__name__}: {error}). {instead}; the program is"
        f" not affected. Name another file with --journal or {VARIABLE}."
    )
