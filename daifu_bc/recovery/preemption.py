"""A SIGTERM ends the program: the last will is done first, within some seconds, and then what the program has for it.

Where a last will is asked for, we stand before the handler of SIGTERM. To whoever asks there is only the program's
own: `signal.signal` and `signal.getsignal` go by what stands behind us. It is done at the main thread's next statement,
or, where a thread is held, in the frame that is held.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import contextlib
import functools
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Any, Final

from daifu_bc.errors import DaifuError
from daifu_bc.recovery import announcements, intercept, interrupts, journal, last_will, signals, unwinding
from daifu_bc.recovery.between import Paused, at_statement
from daifu_bc.recovery.boundaries import watch
from daifu_bc.recovery.capture import Capture, capture
from daifu_bc.recovery.decision import Decision
from daifu_bc.recovery.dispositions import disposition, handler_of
from daifu_bc.recovery.hold import Hold
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.spots import Verdict
from daifu_bc.recovery.wakeup import silent
from daifu_bc.recovery.working import came_from_outside, working

_NUMBER: Final = int(signal.SIGTERM)
_NAME: Final = "SIGTERM"
_STDERR: Final = 2
#: Seconds after which it is looked again whether it can be done, where it could not; and whether it has heard.
_AGAIN: Final = 0.05
#: How often it is told that it takes too long; then the program's handler is called all the same.
_MOST_TOLD: Final = 40
#: The program uses them to go on.
_GOES_ON: Final = (StopIteration, StopAsyncIteration, GeneratorExit)

#: Does the last will in a hold, and returns why it could not be done; empty if it was.
_performer: Callable[[HoldLike], str] | None = None


class Overtime(BaseException):
    """Raised in a last will that takes too long."""

    __module__ = "builtins"


class _Front(int):
    """What the interpreter calls. As a number it is that of `signal.SIG_DFL`, for who asks past `signal.getsignal`.

    Attributes:
        handler: what the program has for the signal.
    """

    handler: Any = signal.SIG_DFL

    def __call__(self, _number: int, frame: FrameType | None) -> object:
        """Runs in the main thread."""
        return _arrived(frame)


_front: Final = _Front(signal.SIG_DFL)
_plain_signal: Final = signal.signal
_plain_getsignal: Final = signal.getsignal
#: The process in which we stand before the handler; 0 for none.
_process = 0
_present: _Preemption | None = None
#: By threads, the holds that are not decided yet.
_holds: Final[list[tuple[int, weakref.ref[Any]]]] = []


def install() -> None:
    """Stand before the program's handler of SIGTERM from now on."""
    global _performer, _process
    if (
        not last_will.front_end
        or _process == os.getpid()
        or threading.current_thread() is not threading.main_thread()
    ):
        return
    _performer = import_module(last_will.front_end).perform
    announcements.listen(_note_hold)
    signal.signal, signal.getsignal = _signal_signal, _signal_getsignal
    present = _plain_getsignal(_NUMBER)
    in_c = present is signal.SIG_DFL and any(handler_of(disposition(_NUMBER)))
    _process = os.getpid()
    if present is not None and not in_c:
        _stand_before(present)


def _stand_before(handler: Any) -> None:
    """Stands before what the program has; what is ignored stays so, and is no end of the program."""
    _front.handler = handler
    if handler is not signal.SIG_IGN:
        with contextlib.suppress(OSError, ValueError):
            _signal.signal(_NUMBER, _front)


def _stands() -> bool:
    return _process == os.getpid() and _signal.getsignal(_NUMBER) is _front


@functools.wraps(signal.signal)
def _signal_signal(signalnum: Any, handler: Any) -> Any:
    stood, behind = _stands(), _front.handler
    before = _plain_signal(signalnum, handler)
    if signalnum == _NUMBER and _process == os.getpid():
        _stand_before(_plain_getsignal(_NUMBER))
        return behind if stood else before
    return before


@functools.wraps(signal.getsignal)
def _signal_getsignal(signalnum: Any) -> Any:
    found = _plain_getsignal(signalnum)
    return _front.handler if signalnum == _NUMBER and _stands() else found


#: Threads that are forking, with the signals that were blocked in them before.
_forking: Final[dict[int, Any]] = {}


def _before_fork() -> None:
    """One that comes to the child at once would be lost between our handler and the default action."""
    if _stands():
        with contextlib.suppress(OSError, ValueError):
            _forking[threading.get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, (_NUMBER,))


def _after_fork() -> None:
    before = _forking.pop(threading.get_ident(), None)
    if before is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _in_child() -> None:
    """A forked child has no last will of its own: it would save over what its parent saves."""
    global _process, _present
    stood = bool(_process)
    _process, _present = 0, None
    _holds.clear()
    if stood and _signal.getsignal(_NUMBER) is _front:
        handler = _front.handler
        with contextlib.suppress(OSError, ValueError):
            _signal.signal(_NUMBER, handler if callable(handler) else int(handler))
    _after_fork()
    _forking.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


def _note_hold(kind: str, hold: HoldLike, _reason: str) -> None:
    """Keeps account of who is held."""
    ident = threading.get_ident()
    if kind == "held":
        _holds.append((ident, weakref.ref(hold)))
    elif kind == "resumed":
        _holds[:] = [one for one in _holds if one[1]() not in (None, hold)]


def _held_in(ident: int) -> Hold | None:
    """The innermost hold of a thread."""
    for number, reference in reversed(_holds):
        hold = reference()
        if number == ident and hold is not None and hold.frames and hold.decision is None:
            return hold if isinstance(hold, Hold) else None
    return None


def _held_elsewhere() -> Hold | None:
    """The oldest hold of another thread."""
    own = threading.get_ident()
    found = (_held_in(ident) for ident, _ in list(_holds) if ident != own)
    return next((hold for hold in found if hold is not None), None)


def _arrived(frame: FrameType | None) -> object:
    """The signal has come, or somebody wants it to be looked at again."""
    global _present
    parent = getattr(sys.modules.get("multiprocessing.process"), "parent_process", None)
    if not last_will.wanted() or _performer is None or sys.is_finalizing() or (parent and parent()):
        return _pass_on(frame)
    if _present is not None and _present.is_past:
        _present = None
    if _present is None:
        _present = _Preemption()
    return _present.look(frame)


def _pass_on(frame: FrameType | None) -> object:
    """Does what the program has for the signal."""
    handler = _front.handler
    if callable(handler):
        return handler(_NUMBER, frame)
    for function in tuple(last_will.at_death):
        with contextlib.suppress(Exception):
            function()
    _signal.signal(_NUMBER, int(signal.SIG_DFL))
    os.kill(os.getpid(), _NUMBER)
    return None


class _Preemption:
    """The program is to end.

    Attributes:
        over: whether the last will has been done, or given up.
    """

    def __init__(self) -> None:
        self.grace = last_will.grace()
        self.until = time.monotonic() + self.grace
        self.over = self._runs = self._told = False
        self._hurried = 0
        self._tried: set[int] = set()
        self._watch: Any = None
        self._ended = threading.Event()
        main = threading.main_thread().ident or 0
        _tell("the last will is done first, at the next statement.")
        with contextlib.suppress(
            RuntimeError
        ):  # there is no memory for a thread: then nobody looks at the time
            # Not through `threading`: the signal may have come in the middle of its own work.
            _thread.start_new_thread(self._remind, (main,))

    @property
    def is_past(self) -> bool:
        """Whether another signal is another end."""
        return self.over and time.monotonic() > self.until

    def _remind(self, main: int) -> None:
        """Has the main thread look again; in a thread of its own."""
        while not self._ended.wait(_AGAIN):
            late = time.monotonic() >= self.until
            if late or self._waits_for_hold:
                signal.pthread_kill(main, _NUMBER)

    @property
    def _waits_for_hold(self) -> bool:
        held = [hold for _, reference in list(_holds) if (hold := reference()) is not None]
        untried = any(hold.number not in self._tried for hold in held)
        return not self._runs and (self._watch is None or untried)

    def look(self, frame: FrameType | None) -> object:
        """Do it if it can be done here; else it is done later.

        Args:
            frame: where the main thread is.
        """
        if self.over:
            return _pass_on(frame)
        late = time.monotonic() >= self.until
        if self._runs:
            return self._hurry(frame) if late else None
        if late:
            self._give_up(f"no statement was reached within {self.grace:g} s, so it is not done")
            return _pass_on(frame)
        ident = threading.get_ident()
        if signals.is_held() and not signals.is_going_on():
            hold = _held_in(ident)
            if hold is None or not interrupts.may_be_interrupted(ident, frame):
                return None
            self._perform(hold)
            return self._end(frame)
        hold = _held_elsewhere()
        if hold is not None and hold.number not in self._tried:
            self._tried.add(hold.number)
            if not self._perform(hold):
                return self._end(frame)
        self._wait_for_statement()
        return None

    def _hurry(self, frame: FrameType | None) -> object:
        """It takes too long."""
        self._hurried += 1
        if not callable(_front.handler) or self._hurried > _MOST_TOLD:
            self._give_up(f"it was not done within {self.grace:g} s")
            return _pass_on(frame)
        if interrupts.may_be_interrupted(threading.get_ident(), frame):
            raise Overtime(f"it was not done within {self.grace:g} s")
        return None

    def _wait_for_statement(self) -> None:
        if self._watch is not None:
            return
        self._watch = watch(threading.get_ident(), self._reached)
        # Barriers ask us for it, but where nobody answers a hold it is not there.
        vars(sys.modules["daifu_bc"])["_intercept"] = intercept.intercept
        intercept.passed_by.append(self._passed_by)
        try:
            self._watch.start()
        except DaifuError as refusal:
            _tell(f"no statement can be waited for: {refusal}")

    def _stop_waiting(self) -> None:
        if self._watch is not None:
            self._watch.stop()
            intercept.passed_by = []

    def _reached(self, frame: FrameType) -> None:
        """In the main thread, where a frame is about to run an instruction."""
        self._do_at(frame, Paused("asked for"), at_statement)

    def _passed_by(self, frame: FrameType, exception: BaseException) -> None:
        """In any thread, where an exception is at a barrier: it may lead out of the program, past all statements."""
        main = threading.main_thread().ident == threading.get_ident()
        if main and unwinding.under_way() is None and not isinstance(exception, _GOES_ON):
            self._do_at(frame, exception, lambda _: capture(frame, exception))

    def _do_at(
        self, frame: FrameType, exception: BaseException, find: Callable[[FrameType], Capture | None]
    ) -> None:
        if working.busy or self.over or self._runs:
            return
        try:
            working.busy = True
            captured = find(frame)
            if captured is None:
                return
            hold = Hold(captured, exception, Verdict(True, (f"{_NAME} ends the run.",)), crashed=False)
            hold.decision = Decision("pass")  # nobody is asked
            try:
                with signals.guarded():  # until here a handler may have raised: then it is done further out
                    self._stop_waiting()
                    self._perform(hold)
            finally:
                hold.close()
        except Exception as error:
            if came_from_outside(error):
                raise
            intercept.report(error)
        finally:
            working.busy = False
        self._end(frame)

    def _perform(self, hold: Hold) -> str:
        """Does it; returns why it could not be done."""
        assert _performer is not None
        self._runs = True
        busy, working.busy = working.busy, True
        selected, began, sections = hold.selected, time.monotonic(), interrupts.open_sections()
        why = "daifu_bc failed inside"
        try:
            with signals.guarded(), silent(_NUMBER), journal.by("last will"):
                why = _performer(hold)
                if why and time.monotonic() >= self.until:
                    why = f"it was not done within {self.grace:g} s"
                done = f"could not be done: {why}" if why else "done"
                journal.record("last will", hold=hold, seconds=time.monotonic() - began, outcome=done)
            _tell(
                f"the last will is done, in {hold.selected.name}."
                if not why
                else f"the last will failed: {why}."
            )
        except Overtime as error:
            why = str(error)
            _tell(f"the last will failed: {why}.")
        except Exception as error:
            if came_from_outside(error):
                raise
            intercept.report(error)
        finally:
            interrupts.close_to(sections)
            hold.selected = selected
            working.busy = busy
            self._runs = False
        return why

    def _give_up(self, why: str) -> None:
        _tell(f"{why}.")
        journal.record("last will", outcome=why)
        self._over()

    def _end(self, frame: FrameType | None) -> object:
        self._over()
        return _pass_on(frame)

    def _over(self) -> None:
        self.over = True
        self._ended.set()
        self._stop_waiting()


def _tell(text: str) -> None:
    # Not through `sys.stderr`: the signal may have come in the middle of its own work.
    with contextlib.suppress(OSError):
        os.write(_STDERR, f"daifu_bc: {_NAME}: {text}\n".encode(errors="backslashreplace"))
