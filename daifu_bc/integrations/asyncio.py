"""Where the exception of an asyncio task arrives: in those who await it, through `gather`, `TaskGroup` and the like.

asyncio itself is looked at only if the program has loaded it.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections import deque
from collections.abc import Iterable
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final

from daifu_bc.recovery import verdict
from daifu_bc.recovery.answers import Route
from daifu_bc.recovery.lookups import UNKNOWN, attribute, evaluate, find_in_class, frame_scope, is_a
from daifu_bc.recovery.spots import spot_at
from daifu_bc.recovery.waiting import worker_future

_MOST_AWAITED: Final = 1000
_MOST_CALLBACKS: Final = 100
_WRAPPERS: Final = frozenset({"coroutine_wrapper", "async_generator_asend", "async_generator_athrow"})


def install(_module: ModuleType | None = None) -> None:
    """Lets the verdict ask here; once is enough.

    Args:
        _module: `asyncio.tasks`, as soon as it is imported; it is looked for when it is needed.
    """
    if routes not in verdict.deliveries:
        verdict.deliveries.append(routes)


def routes(frame: FrameType) -> list[Route] | None:
    """Where an exception goes that leaves a task's outermost frame, or a job whose result a task awaits.

    Args:
        frame: the frame that it leaves.

    Returns:
        None if the frame is neither.
    """
    tasks = sys.modules.get("asyncio.tasks")
    if tasks is None:
        return None
    job = worker_future(frame)
    if job is not UNKNOWN:
        return _after(attribute(job, "_done_callbacks"), 0)
    task = _task_of(tasks, frame)
    if task is not None:
        return _after(_callbacks(task), 0)
    around = _awaiting_unlinked(tasks, frame)
    return [Route(around, outward=False, group=False)] if around else None


def _task_of(tasks: ModuleType, frame: FrameType) -> Any:
    """The task whose coroutine's outermost frame this is."""
    loop = sys.modules["asyncio.events"]._get_running_loop()
    if loop is None:
        return None
    current = tasks.current_task(loop)
    if current is not None and _outermost_frame(current) is frame:
        return current
    return next((task for task in tasks.all_tasks(loop) if _outermost_frame(task) is frame), None)


def _awaiting_unlinked(tasks: ModuleType, frame: FrameType) -> tuple[FrameType, ...]:
    """The frames that await an asynchronous generator's frame into which an exception was thrown.

    The interpreter leaves them out of the stack meanwhile, so `f_back` does not lead to them.
    """
    loop = sys.modules["asyncio.events"]._get_running_loop()
    current = tasks.current_task(loop) if loop is not None else None
    work: list[tuple[object, tuple[FrameType, ...]]] = [(attribute(current, "_coro"), ())]
    seen: set[int] = set()
    while work and len(seen) < _MOST_AWAITED:
        awaitable, outer = work.pop()
        own = _frame_of(awaitable)
        if own is frame:
            return outer
        if id(awaitable) in seen or (own is None and type(awaitable).__name__ not in _WRAPPERS):
            continue
        seen.add(id(awaitable))
        frames = outer if own is None else (own, *outer)
        work += [(inside, frames) for inside in gc.get_referents(awaitable)]
    return ()


def _outermost_frame(task: Any) -> FrameType | None:
    return _frame_of(attribute(task, "_coro"))


def _frame_of(awaitable: object) -> FrameType | None:
    if type(awaitable) is CoroutineType:
        return awaitable.cr_frame
    if type(awaitable) is GeneratorType:
        return awaitable.gi_frame
    if type(awaitable) is AsyncGeneratorType:
        return awaitable.ag_frame
    return None


def _awaited_by(awaitable: object) -> object:
    if type(awaitable) is CoroutineType:
        return awaitable.cr_await
    if type(awaitable) is GeneratorType:
        return awaitable.gi_yieldfrom
    if type(awaitable) is AsyncGeneratorType:
        return awaitable.ag_await
    return None


def suspended_frames(awaitable: object) -> tuple[FrameType, ...]:
    """The frames of a coroutine that waits, inner to outer."""
    frames: list[FrameType] = []
    for _ in range(_MOST_AWAITED):
        if type(awaitable).__name__ in _WRAPPERS:
            inside = (CoroutineType, AsyncGeneratorType)
            awaitable = next((value for value in gc.get_referents(awaitable) if type(value) in inside), None)
        frame = _frame_of(awaitable)
        if frame is None:
            break
        frames.append(frame)
        awaitable = _awaited_by(awaitable)
    frames.reverse()
    return tuple(frames)


def _callbacks(future: object) -> list[Any]:
    found = attribute(future, "_callbacks")
    return list(found) if type(found) is list else []


def _after(callbacks: Any, depth: int) -> list[Route]:
    """The routes that begin with the callbacks of a future that is about to have an exception."""
    found: list[Route] = []
    if depth > _MOST_CALLBACKS or type(callbacks) is not list:
        return found
    for entry in callbacks:
        # Of an asyncio future a pair with a context, of one of concurrent.futures the function alone.
        found += _follow(entry[0] if type(entry) is tuple else entry, depth)
    return found


def _follow(callback: Any, depth: int) -> list[Route]:
    """The routes through one callback."""
    if type(callback) in (BuiltinFunctionType, MethodType):
        owner = callback.__self__
        if _is_task(owner):
            return [_into_task(owner, group=False)]
        return _through_method(callback, owner, depth) if type(callback) is MethodType else []
    if type(callback) is functools.partial:
        return _through(callback.args, depth)
    if type(callback) is FunctionType:
        return _through_function(callback, depth)
    return []


def _is_task(value: object) -> bool:
    return is_a(value, sys.modules["asyncio.tasks"].Task)


def _is_future(value: object) -> bool:
    return find_in_class(type(value), "_asyncio_future_blocking") is not UNKNOWN


def _into_task(task: Any, *, group: bool) -> Route:
    name = attribute(task, "_name")
    who = f"The task {name!r} awaits it." if type(name) is str else "A task awaits it."
    return Route(suspended_frames(attribute(task, "_coro")), outward=False, group=group, reason=who)


def _through_method(callback: MethodType, owner: object, depth: int) -> list[Route]:
    function = callback.__func__
    if type(function) is FunctionType and function.__code__.co_qualname == "TaskGroup._on_task_done":
        parent = attribute(owner, "_parent_task")
        return [] if parent is UNKNOWN else [_into_group(_into_task(parent, group=True), owner)]
    queue = attribute(owner, "_done")  # of an iterator of as_completed
    return [] if queue is UNKNOWN else _through_queue(queue, depth)


def _into_group(route: Route, group: object) -> Route:
    """The part of the way that lies outside the `async with` of a TaskGroup."""
    for number, frame in enumerate(route.frames):
        if frame.f_code.co_qualname == "TaskGroup.__aexit__":
            return route._replace(frames=route.frames[number + 1 :])
        spot = spot_at(frame, frame.f_lasti)
        for count, step in enumerate(spot.steps):
            if step.is_with and evaluate(step.handler.bound, frame_scope(frame)) is group:
                return route._replace(frames=route.frames[number:], skipped=count + 1)
    return route


def _through_function(callback: FunctionType, depth: int) -> list[Route]:
    code = callback.__code__
    if code.co_name == "_run_until_complete_cb":
        return _to_the_runner()
    cells = {}
    for name, cell in zip(code.co_freevars, callback.__closure__ or (), strict=False):
        try:
            cells[name] = cell.cell_contents
        except ValueError:
            continue
    if code.co_qualname == "gather.<locals>._done_callback" and cells.get("return_exceptions"):
        return [Route((), outward=False, group=False, handled="`gather` gives it to its caller as a result.")]
    if code.co_qualname.startswith("_wait.<locals>"):
        return [Route((), outward=False, group=False, reason="`asyncio.wait` only takes note of it.")]
    if "done" in cells and code.co_qualname.startswith("as_completed.<locals>"):
        return _through_queue(cells["done"], depth)
    found = _through(cells.values(), depth)
    for value in cells.values():
        # The bridge from a thread pool: the functions that it closes over close over the future.
        if type(value) is FunctionType and code.co_qualname.startswith("_chain_future"):
            found += _through_function(value, depth + 1)
    return found


def _through(values: Iterable[object], depth: int) -> list[Route]:
    """The routes through futures that a callback sets."""
    found: list[Route] = []
    for value in values:
        if _is_future(value) and not _is_task(value):
            found += _after(_callbacks(value), depth + 1)
    return found


def _through_queue(queue: object, depth: int) -> list[Route]:
    waiting = attribute(queue, "_getters")
    return _through(list(waiting), depth) if type(waiting) is deque else []


def _to_the_runner() -> list[Route]:
    """Out of the event loop, to whoever called `run_until_complete` in this thread."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "run_until_complete":
            return [Route((frame,), outward=True, group=False)]
        frame = frame.f_back
    return []
