"""Which frames a debugger shows: those of the user's, each once."""

from __future__ import annotations

import os
import sys
import threading
from types import FrameType
from typing import Any, Final

from daifu_bc.integrations.pydevd import known
from daifu_bc.recovery.bodies import is_launch, is_ours, located
from daifu_bc.recovery.frames import is_running_continuation

_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
#: They are loaded where we start programs.
_LAUNCH: Final = {"daifu_bc.cli"}
#: What lies there and is a user's program all the same.
_DEMO: Final = os.path.join(_PACKAGE, "demo", "")


def file_type(original: Any, db: Any, path: Any) -> Any:
    """Which kind of file one is, for pydevd: ours are like its own."""
    if path[0].startswith(_PACKAGE) and not path[0].startswith(_DEMO):
        return known.hidden_file()
    return original(db, path)


def in_prefix(frame: object) -> bool:
    """Tell whether a continuation has not reached its body yet."""
    if not isinstance(frame, FrameType):
        return False
    found = located(frame.f_code)
    return found is not None and frame.f_lasti < found.shift


def waits(frame: FrameType) -> bool:
    """Tell whether a frame is behind its body, where it waits for a continuation if it has not called us."""
    return is_running_continuation(frame) and not in_prefix(frame)


def is_outside(frame: FrameType) -> bool:
    """Tell whether a frame is further out than the program that we have started in this thread."""
    if threading.current_thread() is not threading.main_thread() or not _LAUNCH & sys.modules.keys():
        return False
    outward: FrameType | None = frame
    while outward is not None:
        if is_launch(outward):
            return False
        outward = outward.f_back
    return True


def users_only(frames: list[Any]) -> list[Any]:
    """The frames of a stack that are shown.

    Args:
        frames: the innermost one first; some may be no real frames.
    """
    kept: list[Any] = []
    inner: FrameType | None = None
    for frame in frames:
        if isinstance(frame, FrameType):
            if is_launch(frame):  # what is further out has started the program
                break
            # A frame that is held is in code of ours, too, but has called us.
            hidden = is_ours(frame) or (inner is not None and not is_ours(inner) and waits(frame))
            inner = frame
            if hidden:
                continue
        kept.append(frame)
    return kept
