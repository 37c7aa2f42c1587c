"""A held thread waits inside the debugger, as one that has stopped in the user's frame."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final, Protocol

from daifu_bc.integrations.pydevd import known, watching
from daifu_bc.integrations.pydevd.frames import is_outside, users_only, waits
from daifu_bc.recovery.attributes import traceback_of
from daifu_bc.recovery.bodies import is_ours
from daifu_bc.recovery.frames import is_running_continuation


@dataclass
class Answer:
    """What a request is answered by.

    Attributes:
        body: what is told.
        refused: why it is not done; empty if it is.
        over: whether the thread is not to wait any longer.
    """

    body: dict[str, Any] = field(default_factory=dict)
    refused: str = ""
    over: bool = False


class Visit(Protocol):
    """What a client does at a hold. All but `status` is called in the held thread."""

    def evaluate(self, text: str, frame: FrameType | None, context: str) -> Answer | None:
        """Run what was typed; None if it is none of ours."""

    def reachable(self, path: str, line: int) -> str:
        """Return why the run cannot go on at a line, or nothing."""

    def go_to(self, line: int) -> Answer:
        """The run is to go on at a line, when the client lets it."""

    def called(self) -> bool:
        """Tell whether the thread is wanted for something else."""

    def status(self) -> dict[str, Any]:
        """Return what is told of the hold."""


@dataclass
class Stop:
    """A held thread that waits.

    Attributes:
        thread: pydevd's name for it.
        frame: the held frame.
        lines: the lines at which frames are shown.
        visit: what the client does.
        wanted: what the client has asked for: `continue`, or the command of a step.
    """

    thread: str
    frame: FrameType
    lines: dict[FrameType, int]
    visit: Visit
    wanted: str = ""


#: By pydevd's names for the threads.
stops: Final[dict[str, Stop]] = {}
#: By the threads' numbers: the exception that was shown last, as a number.
_shown: Final[dict[int, int]] = {}
#: By the threads' numbers: the step to make as soon as the user's code runs again.
_steps: Final[dict[int, str]] = {}


def stop(
    visit: Visit, frame: FrameType, exception: BaseException, lines: dict[FrameType, int], how: str
) -> str:
    """Let this thread wait until the client has left, wants to go on, or a word has decided.

    Args:
        visit: what the client does meanwhile.
        frame: the held frame.
        exception: what was raised.
        lines: the lines at which frames are shown.
        how: `known.EXCEPTION`, `known.JUMP` or `known.PAUSE`.

    Returns:
        `continue`, the command of a step, or nothing.
    """
    watching.keep_from_watching()
    thread = threading.current_thread()
    found = Stop(known.thread_name(), frame, lines, visit)
    stops[found.thread] = found
    _shown[threading.get_ident()] = id(exception)
    try:
        known.mark_stopped(how)
        # Done as soon as the thread waits: after the client has been told that it has stopped.
        known.do_when_idle(found.thread, lambda *_: known.tell("daifuHeld", visit.status()))
        _look_around(found)
        what = type(exception), exception, traceback_of(exception)
        known.instance().do_wait_suspend(thread, frame, "exception", what, None)
    finally:
        del stops[found.thread]
        known.release()  # also where the debugger has given up meanwhile
        known.information(thread).step_in_initial_location = None  # it would keep the frame alive
    known.answer_rest(found.thread)
    return found.wanted


def _look_around(stop: Stop) -> None:
    """As long as the thread waits, see from time to time whether it is wanted for something else."""

    def look(*_: object) -> None:
        if stops.get(stop.thread) is not stop:
            return
        if stop.visit.called():
            known.release()
        else:
            _look_around(stop)

    known.do_when_idle(stop.thread, look)


def step_on(command: str) -> None:
    """This thread goes on, and is to make a step: over the statement that is run first, say."""
    _steps[threading.get_ident()] = command
    # To the first line of the user's that runs; the step itself begins there.
    known.begin_step(threading.current_thread(), known.INTO, None)


# -- in the place of what pydevd does ---------------------------------------------------------------------------------


def frames_shown(original: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """The frames of a stack, without ours."""
    frames = original(*arguments, **keywords)
    # Without any it would not know where it is.
    frames._frames[:] = users_only(frames._frames) or frames._frames
    for one in list(stops.values()):
        for frame, line in one.lines.items():
            if any(shown is frame for shown in frames._frames):
                frames.frame_id_to_lineno[id(frame)] = line
    return frames


def wait_suspended(
    original: Callable[..., Any],
    db: Any,
    thread: Any,
    frame: Any,
    event: Any,
    arg: Any,
    exception_type: Any = None,
) -> Any:
    """A thread stops, by itself or because it is held."""
    if any(one.frame is frame for one in list(stops.values())):
        return original(db, thread, frame, event, arg, exception_type)
    # In code of ours at either end of a body: it has not come to the user's line yet.
    if event == "line" and isinstance(frame, FrameType) and is_running_continuation(frame):
        known.take_back_stop(thread)
        return False
    while isinstance(frame, FrameType) and waits(frame) and frame.f_back is not None:
        frame = frame.f_back
    if isinstance(frame, FrameType) and is_outside(frame):
        known.take_back_stop(thread)
        return False
    command = _steps.pop(threading.get_ident(), "")
    if command and thread.stop_reason == known.code(known.INTO):
        known.take_back_stop(thread)
        known.begin_step(thread, command, None if command == known.INTO else frame)
        db.set_trace_for_frame_and_parents(threading.get_ident(), frame)
        return False
    return original(db, thread, frame, event, arg, exception_type)


def unhandled(original: Callable[..., Any], db: Any, thread: Any, frame: Any, frames: Any, arg: Any) -> None:
    """An exception ends a thread: what was shown at a hold is not shown again, nor is how we leave."""
    shown = _shown.get(threading.get_ident()) == id(arg[1])
    if not shown and not (isinstance(frame, FrameType) and is_ours(frame)):
        original(db, thread, frame, frames, arg)


def stopped_event(original: Callable[..., Any], factory: Any, db: Any, thread: str, *rest: Any) -> Any:
    """What the client is told of a thread that stops."""
    command = original(factory, db, thread, *rest)
    found = stops.get(thread)
    if found is None:
        return command
    content = command.as_dict
    # The other threads run on, as they do while a person is asked at a terminal.
    content["body"] |= {"allThreadsStopped": False, "preserveFocusHint": False, "daifu": found.visit.status()}
    return type(command)(command.id, command.seq, content, is_json=True)
