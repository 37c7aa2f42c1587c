"""Signals that arrive between the decision to go on and the program's next instruction: they wait for it."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from types import FrameType
from typing import Final

from daifu_bc.recovery.attributes import set_traceback
from daifu_bc.recovery.bodies import has_barriers, is_ours, locate

#: How often, and with which pauses, it is looked whether the program runs again.
_ATTEMPTS: Final = 2000
_PAUSE: Final = 0.0005


def program_runs(frame: FrameType | None) -> bool:
    """Tell whether the innermost frame that is vaccinated, or ours, is at an instruction of the program.

    Args:
        frame: where a thread is.
    """
    while frame is not None:
        if is_ours(frame):
            return False
        if has_barriers(frame.f_code):
            return locate(frame)[1] >= 0
        frame = frame.f_back
    return True


def later(numbers: list[int]) -> None:
    """Has signals arrive as soon as the main thread runs code of the program.

    Args:
        numbers: the signals'.
    """
    main = threading.main_thread().ident or 0

    def wait() -> None:
        for _ in range(_ATTEMPTS):
            frame = sys._current_frames().get(main)
            if frame is None or program_runs(frame):
                break
            del frame
            time.sleep(_PAUSE)
        for number in numbers:
            _thread.interrupt_main(signal.Signals(number))

    try:
        threading.Thread(target=wait, name="daifu signals", daemon=True).start()
    except RuntimeError:  # there is no memory for it
        for number in numbers:
            _thread.interrupt_main(signal.Signals(number))


def raise_later(error: BaseException) -> None:
    """Raises in the program what would be raised before it.

    Args:
        error: what a handler has raised.
    """
    set_traceback(error, None)
    before = signal.getsignal(signal.SIGINT)

    def handler(_number: int, _frame: FrameType | None) -> None:
        nonlocal error
        signal.signal(signal.SIGINT, before)
        try:
            raise error
        finally:
            del error

    signal.signal(signal.SIGINT, handler)
    later([signal.SIGINT])
