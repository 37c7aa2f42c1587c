"""The signal that pauses the run, where the program has no use for it.

To whoever asks, the signal has its default action: libraries look at `signal.getsignal` before they put in handlers of
their own, and one that is put in later takes the place of ours.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import contextlib
import os
import signal
import threading
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Final

from daifu_bc.errors import UsageError
from daifu_bc.recovery import policy
from daifu_bc.recovery.working import program_runs

#: Which signal it is: its name, or `none`.
VARIABLE: Final = "DAIFU_PAUSE_SIGNAL"
_USUAL: Final = "SIGUSR1"
_NONE: Final = "none"


class _Handler(int):
    """What the interpreter calls; as a number it is that of `signal.SIG_DFL`, which `signal.getsignal` makes of it."""

    __slots__ = ()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Runs in the main thread."""
        with program_runs():  # it may have come in the middle of our own work
            answers = policy.somebody_looks()
        if _pause is None or not answers:
            # The person has gone meanwhile: as if nothing of ours had been there.
            _take_away()
            os.kill(os.getpid(), number)
            return
        _pause(signal.Signals(number).name, frame)


_handler: Final = _Handler(signal.SIG_DFL)
#: Stops the main thread; called with the signal's name and the frame that it has come to.
_pause: Callable[[str, FrameType | None], None] | None = None
_number = 0
_ready = False


def named() -> str:
    """The name of the signal that the environment wants, or `none`.

    Raises:
        UsageError: it is neither.
    """
    return checked(os.environ.get(VARIABLE) or _USUAL)


def checked(text: str) -> str:
    """The name of a signal, or `none`, as a user has written it.

    Raises:
        UsageError: it is neither.
    """
    name = text.strip()
    if name.lower() == _NONE:
        return _NONE
    name = name.upper()
    name = name if name.startswith("SIG") else f"SIG{name}"
    if name not in signal.Signals.__members__ or name in ("SIGINT", "SIGKILL", "SIGSTOP"):
        raise UsageError(f"{text!r} is no signal to pause by", remedy="Name one, SIGUSR2, say, or none.")
    return name


def installed() -> str | None:
    """Return the name of the signal that pauses the run now; None if none does."""
    if not _number or _signal.getsignal(_number) is not _handler:
        return None
    return signal.Signals(_number).name


def install() -> None:
    """Let the signal pause the run, if somebody answers and it is free; another one that did so is given back.

    Raises:
        UsageError: the environment names none.
    """
    global _number, _pause, _ready
    _ready = True
    name = named()
    wanted = 0 if name == _NONE else int(signal.Signals[name])
    if wanted == _number or threading.current_thread() is not threading.main_thread():
        return
    _take_away()
    if wanted and policy.somebody_looks() and _is_free(wanted):
        # Not when the signal comes: then it may be too late to import.
        _pause = import_module("daifu_bc.recovery.pause").by_signal
        try:
            _signal.signal(wanted, _handler)
        except (OSError, ValueError):  # it cannot be caught; or this interpreter may not
            return
        _number = wanted


def update() -> None:
    """Do as the environment says now, if the signal has been installed before.

    Raises:
        UsageError: see `install`.
    """
    if _ready:
        install()


def _is_free(number: int) -> bool:
    """Whether a signal has its default action; a handler in C may stand behind Python's back."""
    if signal.getsignal(number) is not signal.SIG_DFL:
        return False
    system = import_module("daifu_bc.recovery.dispositions")  # brings ctypes along
    return not any(system.handler_of(system.disposition(number)))


def _take_away() -> None:
    """Gives the signal back, unless the program has put in a handler of its own."""
    global _number
    number, _number = _number, 0
    if number and _signal.getsignal(number) is _handler:
        with contextlib.suppress(OSError, ValueError):
            _signal.signal(number, int(signal.SIG_DFL))  # it takes no enumeration


# A forked child that is not prepared for it is not to be stopped.
os.register_at_fork(after_in_child=_take_away)
