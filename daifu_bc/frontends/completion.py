"""What the Tab key offers: words, names of the selected frame, attributes. Nothing of the program's is run for it."""

from __future__ import annotations

import builtins
import glob
import inspect
import os
import re
from collections.abc import Callable, Iterable

from daifu_bc.frontends.commands import NAMES, TABLE
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.lookups import UNKNOWN, static_attribute
from daifu_bc.recovery.turns import turns

PATH = re.compile(r"(?:[^\W\d]\w*\.)*(?:[^\W\d]\w*)?$")
MOST_FILES = 200

#: From the line up to the cursor to how many characters before it are replaced, and by what they may be.
Offers = Callable[[str], tuple[int, list[str]]]


def complete(hold: HoldLike, text: str) -> tuple[int, list[str]]:
    """Return how many characters before the cursor are replaced, and by what they may be.

    Args:
        hold: the hold that is being answered.
        text: the line up to the cursor.
    """
    line = text.lstrip()
    head, space, rest = line.partition(" ")
    if not space:
        offered = [name for name in NAMES if name.startswith(line)] if line.isalpha() or not line else []
        length, names = _python(hold, line) if line else (0, [])
        return max(length, len(line) if offered else 0), [*offered, *names]
    if head == "help":
        return len(rest), _beginning(rest, [word.name for word in TABLE])
    if head == "frame":
        return len(rest), _beginning(rest, [frame.name for frame in hold.frames])
    if head == "hold":
        return len(rest), _beginning(rest, [str(place.number) for place in turns.places()])
    if head == "surgery":
        return _files(rest.rpartition(" ")[2])
    if head == "action" and rest.startswith("@"):
        return _files(rest[1:])
    return _python(hold, rest)


def _beginning(prefix: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(prefix)})


def _files(prefix: str) -> tuple[int, list[str]]:
    try:
        found = glob.glob(glob.escape(os.path.expanduser(prefix)) + "*")[:MOST_FILES]
    except (OSError, ValueError):
        return 0, []
    return len(prefix), sorted(name + os.sep if os.path.isdir(name) else name for name in found)


def _python(hold: HoldLike, text: str) -> tuple[int, list[str]]:
    match = PATH.search(text)
    if match is None:
        return 0, []
    *owners, prefix = match.group().split(".")
    frame = hold.selected
    if not owners:
        if not prefix:
            return 0, []
        names = {*frame.locals(), *frame.frame.f_globals, *dir(builtins)}
        return len(prefix), _beginning(prefix, names)
    for scope in (frame.locals(), frame.frame.f_globals, vars(builtins)):
        if owners[0] in scope:
            return len(prefix), _beginning(prefix, _attributes(scope[owners[0]], owners[1:], prefix))
    return 0, []


def _attributes(value: object, path: list[str], prefix: str) -> list[str]:
    """Return an object's attributes; on the way to it no property is read, for it could do anything."""
    try:
        for name in path:
            value = static_attribute(value, name)
            if value is UNKNOWN or (hasattr(type(value), "__get__") and not inspect.isroutine(value)):
                return []
        names = dir(value)
    except Exception:  # noqa: BLE001 - a user's __dir__ may do anything
        return []
    return names if prefix.startswith("_") else [name for name in names if not name.startswith("_")]
