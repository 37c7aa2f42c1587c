"""Signals that arrive while the main thread is held: what their handlers raise does not end the hold.

Handlers of the program run as always, in the main thread, between any two instructions: also in the middle of ours.
As long as the main thread is held, each of them stands behind a `Guard`, which calls it, takes note of what it raises,
and has it told; `raise NAME` lets it go on. Afterwards everything is as it was. Between the decision to go on and the
first instruction of the program, nothing may be raised, as the blocks that are open would not be left: signals that
come then are delivered again once the program runs.

Only Python code is guarded against: signals that are ignored, have their default action or a handler in C are left
alone. Threads other than the main one run no handlers.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from daifu_bc.recovery import interrupts
from daifu_bc.recovery.arrival import later, program_runs, raise_later
from daifu_bc.recovery.attributes import context_of, set_context, set_traceback
from daifu_bc.recovery.dispositions import dispose, disposition, handler_of
from daifu_bc.recovery.telling import tell
from daifu_bc.recovery.working import working

_Handler = Callable[[int, FrameType | None], Any]

#: Handlers that do nothing but raise KeyboardInterrupt.
only_interrupts: list[object] = [signal.default_int_handler]


class Noted:
    """What a handler has raised.

    Args:
        number: the signal's.
        error: the exception.
    """

    __slots__ = ("error", "name", "signal", "told")

    def __init__(self, number: int, error: BaseException) -> None:
        self.error = error
        self.name = type(error).__name__
        try:
            self.signal = signal.Signals(number).name
        except ValueError:
            self.signal = f"signal {number}"
        self.told = False

    @property
    def ends(self) -> bool:
        """Whether it asks the program to end."""
        return not isinstance(self.error, Exception)


class Guard:
    """Stands before a handler of the program's; when nothing is held it is as if it were not there.

    Args:
        number: the signal's.
        handler: the program's.
    """

    __slots__ = ("before", "handler", "number")

    def __init__(self, number: int, handler: _Handler) -> None:
        self.number = number
        self.handler = handler
        self.before = disposition(number)

    def __call__(self, number: int, frame: FrameType | None) -> object:
        """Runs in the main thread, when a signal has arrived."""
        if _state.leaving:
            if not program_runs(frame):
                _state.deferred.append(number)
                return None
            gone_on()
        if not _state.depth:
            return self.handler(number, frame)
        ident = threading.get_ident()
        default = any(self.handler is handler for handler in only_interrupts)
        if number == signal.SIGINT:
            ours, _state.ours = _state.ours, False
            if interrupts.may_be_interrupted(ident, frame) and (ours or _state.person or default):
                if not (ours or _state.person):
                    _note(number, KeyboardInterrupt())
                interrupts.note_interrupt(ident)
                raise KeyboardInterrupt
            if ours:  # it has come too late
                return None
        self._run(number, frame)
        waiting = _state.reading and interrupts.may_be_interrupted(ident, frame)
        if waiting and any(not noted.told for noted in _state.noted):
            interrupts.note_interrupt(ident)
            raise KeyboardInterrupt  # so that the prompt shows it
        return None

    def _run(self, number: int, frame: FrameType | None) -> None:
        handled = sys.exception() if hasattr(sys, "exception") else sys.exc_info()[1]
        busy, working.busy = working.busy, True
        try:
            self.handler(number, frame)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the hold stays
            set_traceback(error, None)
            link: BaseException = error
            for _ in range(64):
                context = context_of(link)
                if context is None:
                    break
                if context is handled:  # what is held; nobody wants to read it again there
                    set_context(link, None)
                    break
                link = context
            _note(number, error)
        finally:
            working.busy = busy


def program_handler(handler: Any) -> Any:
    """Return what the program has for a signal, where we stand before it or not.

    Args:
        handler: what `signal.getsignal` gives.
    """
    return handler.handler if isinstance(handler, Guard) else handler


class _State:
    """Of the main thread.

    Attributes:
        depth: how many holds and parts of holds are open.
        leaving: whether the run is going on and the program has not begun yet.
        person: whether there is a person who is asked.
        reading: whether the person is being waited for.
        ours: whether the next SIGINT is one that we have sent.
        guards: by the signals' numbers.
        noted: what was raised.
        deferred: signals that have come in the meantime.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.leaving = self.person = self.reading = self.ours = False
        self.guards: dict[int, Guard] = {}
        self.noted: list[Noted] = []
        self.deferred: list[int] = []


_state = _State()


_main_thread = threading.main_thread().ident


def _in_main_thread() -> bool:
    return threading.get_ident() == _main_thread


def _note(number: int, error: BaseException) -> None:
    _state.noted.append(Noted(number, error))


# -- while the thread is held --------------------------------------------------------------------------------------


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """The main thread is held within; in any other thread this does nothing."""
    if not _in_main_thread():
        yield
        return
    if _state.leaving:
        gone_on()
    if not _state.depth:
        _state.noted.clear()
    _state.depth += 1
    try:
        if _state.depth == 1:
            guard_new_handlers()
        yield
    finally:
        if _state.depth == 1:
            _tell_rest()
        _state.depth = max(0, _state.depth - 1)
        if not _state.depth and not _state.leaving:
            _put_back()
            _state.noted.clear()


def _tell_rest() -> None:
    for text in news(person=False):
        tell(f"daifu_bc: {text}")


def is_held() -> bool:
    """Tell whether this thread is the main one, and held, or about to go on."""
    return _in_main_thread() and bool(_state.depth or _state.leaving)


def guard_new_handlers() -> None:
    """Guard against handlers that are not guarded against yet; an action may have put them in."""
    if not _state.depth or not _in_main_thread():
        return
    for number in range(1, signal.NSIG):
        try:
            handler = signal.getsignal(number)
        except ValueError:
            continue
        if isinstance(handler, Guard) or not callable(handler):
            continue
        guard = Guard(number, handler)
        try:
            signal.signal(number, guard)
        except (OSError, ValueError):  # one that cannot be caught; or no interpreter that may
            continue
        if guard.before and handler_of(guard.before) != handler_of(disposition(number)):
            # A library has put a handler in C before it, which is the one that runs.
            _restore(number, guard)
            continue
        _state.guards[number] = guard


def _put_back() -> None:
    for number, guard in list(_state.guards.items()):
        _restore(number, guard)
    _state.guards.clear()


def _restore(number: int, guard: Guard) -> None:
    """Puts a handler back, unless the program has put in another one meanwhile."""
    # No function of the standard library's that is written in Python: torch may be watching which ones run.
    present: Any = _signal.getsignal(number)
    if getattr(present, "handler", None) is guard:  # it stands before all that the program has (`preemption`)
        present.handler = guard.handler
    if present is not guard:
        return
    _signal.signal(number, guard.handler)
    dispose(number, guard.before)


@contextlib.contextmanager
def person_is_asked() -> Iterator[None]:
    """Within, Ctrl-C interrupts what the person has typed, whatever the program has made of it."""
    if not _in_main_thread():
        yield
        return
    before, _state.person = _state.person, True
    try:
        yield
    finally:
        _state.person = before


@contextlib.contextmanager
def person_is_waited_for() -> Iterator[None]:
    """Within, what a handler raises is told at once: a KeyboardInterrupt ends the waiting."""
    if not _in_main_thread():
        yield
        return
    with interrupts.Interruptible():
        try:
            _state.reading = True
            yield
        finally:
            _state.reading = False


def news(*, person: bool) -> list[str]:
    """Return what has to be told of handlers that have raised something; each once.

    Args:
        person: whether somebody is told who can decide about it.
    """
    texts: list[str] = []
    if not _in_main_thread():
        return texts
    for noted in _state.noted:
        if noted.told:
            continue
        noted.told = True
        what = f"The handler of {noted.signal} has raised {noted.name} while the run is held; the hold stays."
        if person:
            rest = f"`raise {noted.name}` lets it go on, any other way on drops it."
        elif noted.ends:
            rest = "It asks the program to end, and goes on when the hold is over."
        else:
            rest = "It is dropped, as nobody can be asked."
        texts.append(f"{what} {rest}")
    return texts


def untold() -> bool:
    """Tell whether there is something to be told of handlers that have raised something."""
    return _in_main_thread() and any(not noted.told for noted in _state.noted)


def raised_by_handler(name: str) -> BaseException | None:
    """Return the last exception of that class that a handler has raised during this hold.

    Args:
        name: the class's name.
    """
    if not _in_main_thread():
        return None
    return next((noted.error for noted in reversed(_state.noted) if noted.name == name.strip()), None)


def request_to_end() -> str:
    """Return the name of an exception by which a handler asks the program to end; empty if there is none."""
    if not _in_main_thread():
        return ""
    return next((noted.name for noted in _state.noted if noted.ends), "")


def interrupt(ident: int) -> bool:
    """Interrupt what a held thread runs, if that may be interrupted.

    Args:
        ident: the thread's number.
    """
    if ident == threading.main_thread().ident and signal.SIGINT in _state.guards:
        if not interrupts.may_be_interrupted(ident):
            return False
        # A signal also ends what waits in the system.
        _state.ours = True
        signal.pthread_kill(ident, signal.SIGINT)
        return True
    return interrupts.interrupt(ident)


# -- while the run goes on -----------------------------------------------------------------------------------------


def going_on() -> None:
    """The outermost hold has been decided, and the run goes on: signals wait until `gone_on`."""
    if _state.depth == 1 and _in_main_thread():
        _state.leaving = True


def is_going_on() -> bool:
    """Tell whether `gone_on` is waited for in this thread."""
    return _state.leaving and _in_main_thread()


def gone_on() -> None:
    """The program's next instruction is its own; nothing that a handler raises comes out of here."""
    numbers, started = _state.deferred, False
    try:
        if numbers:
            later(numbers)
            started = True
        _put_back()
        _state.leaving = False
        _state.deferred = []
        if numbers and not started:
            later(numbers)
        _state.noted.clear()
    except BaseException as error:  # noqa: BLE001 - raised by a handler that was put back the moment before
        _state.leaving = False
        with contextlib.suppress(BaseException):
            _put_back()  # the others
        raise_later(error)


def _in_child() -> None:
    """A forked child is not held: it runs what the program has for it, or the rest of an action."""
    global _main_thread
    _main_thread = threading.get_ident()
    _state.depth = 0
    _state.leaving = _state.person = _state.reading = _state.ours = False
    _state.noted.clear()
    _state.deferred.clear()
    interrupts.forget()
    if _in_main_thread():
        _put_back()
    _state.guards.clear()


os.register_at_fork(after_in_child=_in_child)
