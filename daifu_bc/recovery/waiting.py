"""Where the exception of a job in a thread pool arrives: in whoever waits for the future's result."""

from __future__ import annotations

import sys
import threading
from types import FrameType

from daifu_bc.recovery.answers import Route
from daifu_bc.recovery.lookups import UNKNOWN, attribute, local_value

_WORKER = ("concurrent.futures.thread", "_WorkItem.run")
_RESULT = ("concurrent.futures._base", "Future.result")
_EXCEPTION = ("concurrent.futures._base", "Future.exception")


def worker_future(frame: FrameType) -> object:
    """The future of the pool's job that runs in `frame`; UNKNOWN if it is no such frame."""
    return attribute(_first_local(frame), "future") if _is(frame, _WORKER) else UNKNOWN


def _is(frame: FrameType, place: tuple[str, str]) -> bool:
    return frame.f_code.co_qualname == place[1] and frame.f_globals.get("__name__") == place[0]


def _first_local(frame: FrameType) -> object:
    names = frame.f_code.co_varnames
    return local_value(frame, names[0]) if names else UNKNOWN


def routes_of_worker(frame: FrameType) -> list[Route] | None:
    """The routes from the end of a pool's job: every thread that waits in `result()` of its future."""
    future = worker_future(frame)
    if future is UNKNOWN:
        return None
    routes = []
    own = threading.get_ident()
    for thread, innermost in sys._current_frames().items():
        waiting: FrameType | None = innermost if thread != own else None
        while waiting is not None:
            if _is(waiting, _RESULT) and _first_local(waiting) is future:
                if waiting.f_back is not None:
                    routes.append(
                        Route(
                            (waiting.f_back,), True, False, "", "A thread waits for the result of this job."
                        )
                    )
                break
            if _is(waiting, _EXCEPTION) and _first_local(waiting) is future:
                return [
                    Route((), False, False, "A thread has asked for the exception of this job, as a value.")
                ]
            waiting = waiting.f_back
    return routes
