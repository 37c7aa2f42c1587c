"""Where the exception of a job in a thread pool arrives: in whoever waits for the future's result."""

from __future__ import annotations

import sys
import threading
from types import FrameType

from daifu_bc.recovery import verdict
from daifu_bc.recovery.answers import Route
from daifu_bc.recovery.lookups import UNKNOWN, attribute, local_value

_WORKER = ("concurrent.futures.thread", "_WorkItem.run")
_RESULT = ("concurrent.futures._base", "Future.result")


def _is(frame: FrameType, place: tuple[str, str]) -> bool:
    return frame.f_code.co_qualname == place[1] and frame.f_globals.get("__name__") == place[0]


def _first_local(frame: FrameType) -> object:
    names = frame.f_code.co_varnames
    return local_value(frame, names[0]) if names else UNKNOWN


def routes_of_worker(frame: FrameType) -> list[Route] | None:
    """The routes from the end of a pool's job: every thread that waits in `result()` of its future."""
    if not _is(frame, _WORKER):
        return None
    future = attribute(_first_local(frame), "future")
    if future is UNKNOWN:
        return []
    routes = []
    own = threading.get_ident()
    for thread, innermost in sys._current_frames().items():
        waiting: FrameType | None = innermost if thread != own else None
        while waiting is not None:
            if _is(waiting, _RESULT) and _first_local(waiting) is future:
                if waiting.f_back is not None:
                    routes.append(Route((waiting.f_back,), True, False, "", "A thread waits for the result of this job."))
                break
            waiting = waiting.f_back
    return routes


def install() -> None:
    """Lets the verdict ask here; once is enough."""
    if routes_of_worker not in verdict.deliveries:
        verdict.deliveries.append(routes_of_worker)
