"""What a barrier calls. Nothing that goes wrong here may take the place of the program's own exception."""

from __future__ import annotations

import contextlib
import gc
import inspect
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from types import FrameType

from daifu_bc.analysis.code import cells_at_start
from daifu_bc.analysis.items import SAVED
from daifu_bc.errors import BlocksFirst, DaifuError, Refusal
from daifu_bc.recovery import boundaries, journal, moving, observers, policy, signals, unwinding
from daifu_bc.recovery import verdict as verdicts
from daifu_bc.recovery.answers import Verdict, hold_again, leave_alone
from daifu_bc.recovery.attributes import cause_of, traceback_of
from daifu_bc.recovery.bodies import continuation_from, continuation_of, located, runs_none
from daifu_bc.recovery.capture import Capture, capture
from daifu_bc.recovery.decision import Decision, Unwinding
from daifu_bc.recovery.hold import Hold, let_pass
from daifu_bc.recovery.limits import room_to_work
from daifu_bc.recovery.resume import Handover, Passage, note_crash, read_locals, trimmed
from daifu_bc.recovery.telling import tell
from daifu_bc.recovery.verdict import judge
from daifu_bc.recovery.working import came_from_outside, working

#: Told at once by their type; subclasses are left to the verdict.
_CONTROL_FLOW = frozenset({StopIteration, StopAsyncIteration, GeneratorExit, SystemExit})
#: Called with a frame at its barrier and what has arrived there, as long as the program is to be ended.
passed_by: list[Callable[[FrameType, BaseException], None]] = []
#: Whether a run has gone on anywhere; until then there is nothing to be taken out of a traceback.
_gone_on = False
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_told = threading.Lock()
_reported: set[str] = set()


def intercept(_module: object, exception: BaseException) -> Handover | None:
    """Asked by a stub with the exception alone; None lets it go on as if nothing had been there."""
    mine = False
    watch_again: Iterable[Callable[[], None]] = ()
    # At the limit of the stack any call fails, and nothing of that may be seen in the program's exception.
    try:
        if _gone_on and trimmed(sys._getframe(1), exception):
            return None
        for function in passed_by:
            function(sys._getframe(1), exception)
        if unwinding.under_way() is None and (
            type(exception) in _CONTROL_FLOW or not policy.somebody_answers()
        ):
            return None
        if working.busy:  # an exception of our own code, where that is vaccinated too
            return None
        mine = working.busy = True
        if observers.present:
            watch_again = observers.pause()
        frame = sys._getframe(1)
        sought = unwinding.under_way()
        failed = ""
        if sought is not None and unwinding.carries(exception, sought.exception):
            handover, failed = _arrived(sought, frame, exception)
            if handover is not None or (not failed and _passes(sought, frame, exception)):
                return handover
        verdict = judge(exception, frame)
        if failed and verdict.hold:
            verdict = verdict._replace(reasons=(failed, *verdict.reasons))
        return _hold(frame, exception, verdict) if verdict.hold else None
    except (RecursionError, MemoryError):  # there is no room for us
        return None
    except Exception as error:
        if came_from_outside(error):  # a signal handler's: it takes the place of the program's exception
            raise
        report(error)
        return None
    finally:
        if mine:
            working.busy = False
            if observers.left:
                observers.leave()
        for let in watch_again:
            let()


def _hold(frame: FrameType, exception: BaseException, verdict: Verdict) -> Handover | None:
    captured = capture(frame, exception)
    hold = Hold(captured, exception, verdict)
    goes_on: Handover | None = None
    with signals.guarded():
        try:
            if hold.site not in let_pass and not _was_told_to_go(exception):
                with room_to_work(exception):
                    journal.held(hold)
                    handover = _answered(hold, captured)
                    if handover is not None:
                        _clear_dead_frames(frame, exception)
                        journal.when_running(hold)()
                goes_on = handover
        finally:
            hold.close()
            if goes_on is None:
                with room_to_work(exception):
                    leave_alone(exception)
            else:
                signals.going_on()
    return goes_on


def _arrived(sought: Unwinding, frame: FrameType, exception: BaseException) -> tuple[Handover | None, str]:
    """How a frame goes on that a person has chosen further in, or why it cannot; neither if it is not this one, or not here."""
    if frame is not sought.frame:
        if unwinding.is_on_stack(sought.frame, frame):
            return None, ""
        return None, _lost(sought, exception, "it has been left before it could go on")
    with signals.guarded():
        captured = capture(frame, exception, left=sought.left)
        try:
            decision = sought.decide(captured, exception)
            with room_to_work(exception):
                handover = _prepare(captured, decision)
        except BlocksFirst:  # there is another barrier around the block
            sought.left = True
            return None, ""
        except Refusal as refusal:
            return None, _lost(sought, exception, str(refusal))
        unwinding.end()
        _clear_dead_frames(frame, exception)
        if sought.told is not None:
            sought.told()
        signals.going_on()
    return handover, ""


def _lost(sought: Unwinding, exception: BaseException, reason: str) -> str:
    """The exception is held again, as the frame that was chosen cannot go on; a sentence that says so."""
    unwinding.end()
    hold_again(exception)
    return f"`{sought.frame.f_code.co_qualname}` could not go on as it was told: {reason}"


def _passes(sought: Unwinding, frame: FrameType, exception: BaseException) -> bool:
    """Whether this is what takes the frames down, and no new crash: it, or what a clause has raised in its place."""
    if any(unwinding.is_same(exception, known) for known in (sought.exception, *sought.instead)):
        return True
    entry = traceback_of(exception)
    if entry is None or entry.tb_frame is not frame or entry.tb_next is not None:
        return False
    captured = capture(frame, exception)
    flow, place = captured.flow, captured.place
    if flow.instructions[place].name != "RAISE_VARARGS":
        return False
    cause = cause_of(exception)
    meant = cause is not None and unwinding.is_same(cause, sought.exception)
    if not meant and SAVED not in flow.kinds(place):
        return False
    sought.instead.append(exception)
    return True


def _was_told_to_go(exception: BaseException) -> bool:
    """Whether a person has raised it by `raise EXPR` or `exit`: it came out of the prefix of a continuation."""
    entry = traceback_of(exception)
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    known = continuation_of(entry.tb_frame.f_code) if entry is not None else None
    return known is not None and entry is not None and entry.tb_lasti < known.shift


def _answered(hold: Hold, captured: Capture) -> Handover | None:
    """What the one who answers has decided, prepared; None if the exception goes on."""
    policy.respond(hold)
    decision = hold.decision
    if decision is None:
        return None
    if decision.unwinding is not None:
        unwinding.begin(decision.unwinding)
    if decision.start is None:
        return None
    handover = _prepare(captured, decision)
    if decision.word == "raise":
        # One that has been raised before has a traceback that does not end where it is raised now.
        leave_alone(decision.last[0])
    return handover


def _prepare(captured: Capture, decision: Decision) -> Handover:
    """Builds and verifies all that the way on needs; after this only moving is left to be done."""
    assert decision.flow is not None
    assert decision.start is not None
    global _gone_on
    _gone_on = True
    frame = captured.frame
    continuation = continuation_from(decision.flow, decision.start, runs=runs_none(frame))
    moving.goes_on(decision.flow.code, continuation.code)
    namespace = frame.f_locals if captured.in_namespace else None
    names, values = decision.renamed, read_locals(frame, captured.code)
    handover = Handover(
        Passage(
            continuation,
            captured.kinds,
            list(captured.items),
            tuple(names.get(name, name) for name in cells_at_start(captured.code)),
            {names.get(name, name): value for name, value in values.items()} | decision.extra,
            namespace,
            frame.f_globals,
            list(decision.last),
            decision.fresh,
            decision.cells,
        )
    )
    running = located(frame.f_code)
    if running is not None and running.returns and captured.cannot_return_handover:
        note_crash(handover)
    return handover


def _clear_dead_frames(frame: FrameType, exception: BaseException) -> None:
    """The frames inside the held one are dead; their locals must not wait for the garbage collector."""
    entry = traceback_of(exception)
    while entry is not None and entry.tb_frame is not frame:
        entry = entry.tb_next
    while entry is not None:
        # Up to 3.12 a generator that is suspended would be closed.
        if entry.tb_frame is not frame and not entry.tb_frame.f_code.co_flags & _SUSPENDS:
            with contextlib.suppress(RuntimeError):  # it runs elsewhere
                entry.tb_frame.clear()
                _ = entry.tb_frame.f_locals  # up to 3.12 a snapshot, which is taken anew
        entry = entry.tb_next
    if isinstance(exception, MemoryError):
        gc.collect()


def report(error: BaseException) -> None:
    """Tells once on stderr of a fault of ours, and what to do."""
    try:
        place = "".join(traceback.format_exception(error)[-3:]).strip()
        with _told:
            if place in _reported:
                return
            _reported.add(place)
        # What others than we have raised may say anything, a value of the program's too.
        says = isinstance(error, DaifuError) or journal.values_wanted()
        journal.record("internal error", outcome=f"{type(error).__name__}{f': {error}' if says else ''}")
        tell(
            f"daifu_bc: internal error, your program is not affected: {place}\n"
            "daifu_bc: please report this; DAIFU_DISABLE=1 turns daifu_bc off."
        )
    except Exception:  # noqa: BLE001 - there is nobody left to be told
        pass


verdicts.on_internal_error = boundaries.on_internal_error = report
