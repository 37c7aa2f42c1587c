"""Which functions' clauses the user has said to count otherwise than their code says.

All of it stands in the environment, so that child processes know it too.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from types import CodeType
from typing import Final

from daifu_bc.errors import UsageError

#: Functions whose broad clauses do not count: an exception is held though they would catch it.
HOLD_THROUGH: Final = "DAIFU_HOLD_THROUGH"
#: Functions that deal with whatever is raised in them and in what they call: it is never held.
LEAVE_TO: Final = "DAIFU_LEAVE_TO"
#: Whether a KeyboardInterrupt is held like any other exception.
KEYBOARD_INTERRUPT: Final = "DAIFU_HOLD_KEYBOARD_INTERRUPT"

#: What a clause takes that is broad; a bare one is, too.
BROAD: Final = frozenset({"Exception", "BaseException"})


def names_in(text: str) -> tuple[str, ...]:
    """The names in a list with commas between.

    Raises:
        UsageError: one of them is none.
    """
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        place, colon, function = name.rpartition(":")
        if not function or (colon and not place) or any(map(str.isspace, name)) or ":" in place:
            raise UsageError(
                f"{name!r} names no function",
                remedy="Write fit, Trainer.fit, package.module:Trainer.fit or folder/file.py:fit; * stands for anything.",
            )
    return names


def as_text(names: Iterable[str] | str) -> str:
    """Names as one text, as in the environment.

    Raises:
        UsageError: one of them is none.
    """
    return ",".join(names_in(names if isinstance(names, str) else ",".join(names)))


def names_function(name: str, code: CodeType) -> bool:
    """Whether a name that the user has given stands for a function.

    Args:
        name: `function`, `module:function` or `path.py:function`, with `*` for anything.
        code: the function's code.
    """
    from fnmatch import fnmatchcase  # its import takes time that most programs need not spend

    place, _, function = name.rpartition(":")
    qualified = code.co_qualname.replace("<locals>.", "")
    plain = "." not in function and fnmatchcase(code.co_name, function)
    if not plain and not fnmatchcase(qualified, function):
        return False
    if not place:
        return True
    path = "/" + code.co_filename.replace("\\", "/").lstrip("/")
    if place.endswith(".py") or "/" in place:
        return fnmatchcase(path, "*/" + place.lstrip("/"))
    folder = "*/" + place.replace(".", "/")
    return fnmatchcase(path, folder + ".py") or fnmatchcase(path, folder + "/__init__.py")


def wants_keyboard_interrupt() -> bool:
    """Whether a KeyboardInterrupt is to be held."""
    return os.environ.get(KEYBOARD_INTERRUPT, "") not in ("", "0")


def asked(variable: str) -> tuple[str, ...]:
    """The names that a variable of the environment has now; what cannot be read is left out."""
    try:
        return names_in(os.environ.get(variable, ""))
    except UsageError:
        return ()


@functools.cache
def at_start() -> tuple[str, ...]:
    """The functions that are held through, as they were named when the first code was vaccinated.

    It decides where barriers are, and must be the same for the same code from then on.
    """
    return asked(HOLD_THROUGH)


def held_through_from_start(code: CodeType) -> bool:
    """Whether barriers go inside the `try` of this function though a broad clause is around it."""
    return any(names_function(name, code) for name in at_start())
