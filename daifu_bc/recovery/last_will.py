"""What is done, if the user has said so, before a SIGTERM ends the program: the run's last will."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, TypeVar

from daifu_bc.errors import UsageError

#: Words, or the name of a file of them.
VARIABLE: Final = "DAIFU_LAST_WILL"
#: For how many seconds after the signal the program's end may be put off.
GRACE: Final = "DAIFU_GRACE"
_USUAL: Final = 20.0

_Function = TypeVar("_Function", bound=Callable[[Any], object])

#: The module whose `perform` does it in a hold, and whose `prepare` reads it; the layers above put it in.
front_end = ""
#: An argument of the children of multiprocessing: their parent ends them, and saves itself what is to be saved.
_CHILD: Final = "--multiprocessing-fork"

#: The program's function; None if there is none.
_function: Callable[[Any], object] | None = None
#: Called when the process is about to be ended by the signal's default action.
at_death: Final[list[Callable[[], None]]] = []


def last_will(function: _Function) -> _Function:
    """Decorate the function that saves what is to be saved before a SIGTERM ends the program.

    Args:
        function: called with a hold of the frame that the program has come to, or is held in.
    """
    global _function
    _function = function
    install()
    return function


def function() -> Callable[[Any], object] | None:
    """Return the program's function, if it has one and nothing else was asked for."""
    return None if os.environ.get(VARIABLE) else _function


def wanted() -> bool:
    """Tell whether there is a last will."""
    return _function is not None or bool(os.environ.get(VARIABLE))


def checked_grace(text: str) -> str:
    """A number of seconds as the user has written it.

    Raises:
        UsageError: it is none.
    """
    try:
        if 0 < float(text) < math.inf:
            return text.strip()
    except ValueError:
        pass
    raise UsageError(f"{text!r} is no time for a last will", remedy="Write a number of seconds, 20, say.")


def grace() -> float:
    """For how many seconds after the signal the program's end may be put off."""
    try:
        return float(checked_grace(os.environ.get(GRACE) or str(_USUAL)))
    except UsageError:  # the program has set it meanwhile
        return _USUAL


def prepare() -> None:
    """Read the words, so that their faults are known before the program starts.

    Raises:
        DaifuError: they cannot be read, or there is a mistake in them.
    """
    if os.environ.get(VARIABLE) and front_end:
        import_module(front_end).prepare()


def install() -> None:
    """Stand before the handler of SIGTERM, if there is a last will."""
    if wanted() and _CHILD not in sys.orig_argv:
        # It brings the engine along: when the signal comes it may be too late to import that.
        import_module("daifu_bc.recovery.preemption").install()
