"""Stops a running thread at its next statement, without a crash, and lets it go on.

The thread is held in the middle of a call that the interpreter makes before the statement; `pass` returns from it,
and nothing has happened. Every other way on raises `Paused` there, which takes the frame to its barrier.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

from daifu_bc.errors import DaifuError, InternalError, Refusal
from daifu_bc.recovery import intercept, interlude, journal, observers, policy, signals, unwinding
from daifu_bc.recovery.between import Paused, at_statement
from daifu_bc.recovery.boundaries import Watch, watch
from daifu_bc.recovery.capture import Capture
from daifu_bc.recovery.decision import Decision, Unwinding
from daifu_bc.recovery.hold import Hold
from daifu_bc.recovery.spots import Verdict
from daifu_bc.recovery.working import came_from_outside, program_runs, working

_ASKED: Final = "A pause was asked for."
_STDERR: Final = 2
#: The pause that a signal has asked for last.
_by_signal: Pause | None = None


class Pause:
    """A pause that was asked for.

    Args:
        thread: the thread to stop.
        reason: why, in a sentence.
    """

    def __init__(self, thread: threading.Thread, reason: str = _ASKED) -> None:
        if thread.ident is None or not thread.is_alive():
            raise Refusal(f"the thread {thread.name} is not running")
        if not policy.somebody_looks():
            raise Refusal(
                "nobody would answer a pause: there is neither a terminal nor a playbook",
                remedy="Start the program with --playbook, or at a terminal.",
            )
        self.held = threading.Event()
        self._verdict = Verdict(True, (reason,))
        self._waits = False
        self._watch: Watch = watch(thread.ident, self._reached)

    def start(self) -> None:
        """Waits for the thread to come to a statement; returns at once."""
        self._watch.start()
        self._waits = True
        atexit.register(self.cancel)

    @property
    def is_waiting(self) -> bool:
        """Whether the thread has still to come to a statement."""
        return self._waits

    def cancel(self) -> None:
        """Lets the thread run, if it has not been stopped."""
        self._waits = False
        self._watch.stop()
        atexit.unregister(self.cancel)

    def _reached(self, frame: FrameType) -> None:
        """In the thread, where `frame` is about to run an instruction."""
        if working.busy:
            return
        try:
            working.busy = True
            captured = at_statement(frame)
            if captured is None:
                return
            self.cancel()
            self.held.set()
            decision = _answered(captured, self._verdict)
        except Exception as error:
            if came_from_outside(error):
                raise
            self.cancel()
            intercept.report(error)
            return
        finally:
            working.busy = False
            if observers.left:
                observers.leave()
        if decision is not None:
            raise decision


def _answered(captured: Capture, verdict: Verdict) -> Paused | None:
    """Has the pause answered; what is to be raised, if anything."""
    paused = Paused("asked for")
    hold = Hold(captured, paused, verdict, crashed=False)
    try:
        journal.held(hold)
        policy.respond(hold)
        decision = hold.decision
        told = journal.when_running(hold)
    finally:
        hold.close()
    if decision is None or (decision.start is None and decision.unwinding is None):
        return None
    unwinding.begin(decision.unwinding or Unwinding(captured.frame, paused, _same(captured, decision), told))
    return paused


def _same(captured: Capture, decision: Decision) -> Callable[[Capture, BaseException], Decision]:
    """The decision, for the barrier at which what is raised arrives."""

    def decide(arrived: Capture, _exception: BaseException) -> Decision:
        if arrived.items != captured.items:
            raise InternalError("a paused frame has not kept what lay on its stack")
        return decision

    return decide


def pause(thread: threading.Thread | None = None) -> Pause:
    """Stops a running thread at its next statement that is vaccinated; whoever answers holds answers.

    Args:
        thread: the thread to stop; the main thread if it is left out.

    Returns:
        The pause; its `held` is set when the thread stands, and `cancel` takes it back.

    Raises:
        Refusal: the thread does not run, nobody would answer, or another tool watches the program.
    """
    made = Pause(threading.main_thread() if thread is None else thread)
    made.start()
    return made


def by_signal(name: str, frame: FrameType | None) -> None:
    """Stops the main thread at its next statement; it is called by a signal's handler there, and raises nothing.

    Args:
        name: the signal's.
        frame: where the thread is.
    """
    global _by_signal
    if interlude.end():  # a rule's wait is over, and the hold is looked at
        return
    if signals.is_held() or (_by_signal is not None and _by_signal.is_waiting):
        return
    busy = working.busy
    try:
        with program_runs():
            made = Pause(threading.main_thread(), f"{name} asked for a pause.")
        working.busy = True
        made.start()
        _by_signal = made
        where = f" It is at {os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}." if frame else ""
        _tell(
            f"{name}: the run stops at its next statement; a call that it waits for is finished first.{where}"
        )
    except DaifuError as refusal:
        _tell(f"{name}: the run cannot be stopped: {refusal}")
    except Exception as error:
        if came_from_outside(error):
            raise
        intercept.report(error)
    finally:
        working.busy = busy


def _tell(text: str) -> None:
    # Not through `sys.stderr`: the signal may have come in the middle of its own work.
    with contextlib.suppress(OSError):
        os.write(_STDERR, f"daifu_bc: {text}\n".encode(errors="backslashreplace"))
