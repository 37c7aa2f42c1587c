"""What is put into pydevd, as soon as it is imported."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from daifu_bc.install.notice import say_once
from daifu_bc.integrations.pydevd import known, requests, stops
from daifu_bc.integrations.pydevd.frames import file_type
from daifu_bc.integrations.pydevd.watching import watcher
from daifu_bc.recovery import debuggers, observers

_installed = False


def install(_module: ModuleType | None = None) -> None:
    """Let pydevd know of holds, and leave our own frames alone; if it is not as it is known, leave it alone.

    Args:
        _module: `pydevd`, which was imported.
    """
    global _installed
    if _installed:
        return
    reason = known.unknown()
    if reason:
        say_once(
            "pydevd",
            f"this version of debugpy is not known ({reason}), so a hold is not shown in it; everything else works."
            " debugpy 1.8.22 is known to work.",
        )
        return
    _installed = True
    for name, handler in requests.HANDLERS.items():
        _wrap(known.processor(), f"on_{name}_request", handler)
    known.add_request("daifuStatus", requests.status)
    known.add_request("daifuDo", requests.do)
    for name in ("create_frames_list_from_frame", "create_frames_list_from_traceback"):
        _wrap(sys.modules[known.FRAMES], name, stops.frames_shown)
    database = known.database()
    _wrap(database, "_internal_get_file_type", file_type)
    _wrap(database, "do_wait_suspend", stops.wait_suspended)
    _wrap(database, "do_stop_on_unhandled_exception", stops.unhandled)
    _wrap(known.factory(), "make_thread_suspend_single_notification", stops.stopped_event)
    debuggers.know(attached)
    observers.add(watcher)


def _wrap(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*arguments: Any, **keywords: Any) -> Any:
        return wrapper(original, *arguments, **keywords)

    setattr(owner, name, wrapped)


def installed() -> bool:
    """Tell whether pydevd is there, and as it is known."""
    return _installed


def debugger() -> Any:
    """The debugger of this process, None if it has none that we know."""
    return known.instance() if _installed and known.alive() else None


def attached() -> bool:
    """Tell whether a client is there, and has told all that it wants."""
    found = debugger()
    return found is not None and bool(found.is_attached())
