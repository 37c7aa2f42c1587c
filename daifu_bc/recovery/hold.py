"""A held thread: what can be seen of it, and the ways on. The one who answers decides by one of the verbs."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType

from daifu_bc.errors import BlocksFirst, Refusal
from daifu_bc.recovery import history, journal, moving, policy, retries, signals
from daifu_bc.recovery.answers import Verdict
from daifu_bc.recovery.bodies import flow_of
from daifu_bc.recovery.body_changes import BodyChanges
from daifu_bc.recovery.capture import Capture, foresee
from daifu_bc.recovery.decision import Decision, Unwinding
from daifu_bc.recovery.edits import Operation
from daifu_bc.recovery.frames import ActionResult, FrameView, inner_frame, visible_frames
from daifu_bc.recovery.interruption import behind, interruption, raises_itself
from daifu_bc.recovery.patch import difference, patch
from daifu_bc.recovery.reach import obstacle, taken_at
from daifu_bc.recovery.repetition import Repetition
from daifu_bc.recovery.surgery import operate
from daifu_bc.recovery.ways import Moved, Way, Ways
from daifu_bc.rewrite.barrier import pristine

_numbers = itertools.count(1)
#: Sites at which exceptions are let go from now on (`raise --always`): (file, line, type).
let_pass: set[tuple[str, int, type[BaseException]]] = set()


class Hold:
    """A thread held at the statement that crashed.

    Args:
        captured: the frame at its barrier.
        exception: what was raised.
        verdict: why it is held.
        crashed: whether something was raised; else the frame only waits at a statement.

    Attributes:
        number: counts the holds of this process from 1.
        frames: the user's frames, outermost first.
        asked: when the last word was given.
        selected: the frame that words look at; at first the held one, or what Ctrl-C has interrupted.
        decision: None until a verb has decided.
    """

    def __init__(
        self, captured: Capture, exception: BaseException, verdict: Verdict, *, crashed: bool = True
    ) -> None:
        self.number = next(_numbers)
        self.exception = exception
        self.verdict = verdict
        self.crashed = crashed
        self.thread_name = threading.current_thread().name
        self.started = time.time()
        self.began = self.asked = time.monotonic()
        self.frames = visible_frames(captured.frame, exception)
        self._held = next(view for view in self.frames if view.held)
        self.selected = self._held
        self.decision: Decision | None = None
        self.captured = captured
        self.interruption = interruption(captured.frame, exception) if crashed else None
        if self.interruption is not None:
            self.verdict = verdict._replace(reasons=(*verdict.reasons, self.interruption.sentence))
            if self.interruption.says_nothing:  # what is worth a look is what it has interrupted
                wanted = (view for view in self.frames if view.frame is self.interruption.frame)
                self.selected = next(wanted, self._held)
        self._repetition: Repetition | None = None
        self._states: dict[FrameType, retries.State] = {}
        self._acted = False
        self._changes = BodyChanges()
        self._ways = {self._held.frame: Ways(captured, exception, inner_frame(captured.frame, exception))}

    def close(self) -> None:
        """Lets go of all that the hold keeps alive."""
        if self.exception is _CLOSED:
            return
        self.frames = []
        self.exception = _CLOSED
        del self._held, self.selected, self.captured, self._ways, self._changes, self._states

    @property
    def repetition(self) -> Repetition:
        """How often the same has happened here before, after retries."""
        if self._repetition is None:
            self._repetition = Repetition()
            if self.crashed and self.interruption is None:
                self._states = retries.states_of(self.frames)
                self._repetition = retries.look(self.captured, self.exception, self.frames)
        return self._repetition

    def do(self, words: str) -> str:
        """Runs words as they are typed at the prompt; the text that they print."""
        return policy.run_words(self, words)

    # -- looking -------------------------------------------------------------------------------------------------

    def where_next(self) -> str:
        """What `pass` would run, in a line."""
        try:
            if self.was_interrupted():
                self.after_interruption()
                return f"`pass` goes on {self._behind_interruption()}"
            ways, changes = self.ways_of_selected(), self._changes
            text = f"`pass` goes on {ways.where_next()}"
            outer = changes.staying.get(ways.captured.code, "")
            note = changes.obstacle if self.selected is self._held else outer
            return f"{text} ({note})" if note else text
        except Refusal as refusal:
            return f"`pass` cannot go on: {refusal}"

    def select(self, which: int | str) -> FrameView:
        """Selects a frame by its number in `frames` or its function's name (the innermost one)."""
        if isinstance(which, int):
            if not 0 <= which < len(self.frames):
                raise Refusal(
                    f"there is no frame {which}", remedy=f"They are numbered 0 to {len(self.frames) - 1}."
                )
            self.selected = self.frames[which]
            return self.selected
        for view in reversed(self.frames):
            if which in (view.name, view.code.co_name):
                self.selected = view
                return view
        raise Refusal(f"no frame on the stack runs {which!r}", remedy="See `where`.")

    def up(self, n: int = 1) -> FrameView:
        """Selects the frame `n` further out."""
        return self._step(-n)

    def down(self, n: int = 1) -> FrameView:
        """Selects the frame `n` further in."""
        return self._step(n)

    def _step(self, n: int) -> FrameView:
        index = self.frames.index(self.selected) + n
        if not 0 <= index < len(self.frames):
            raise Refusal("there is no further frame " + ("in" if n > 0 else "out"))
        self.selected = self.frames[index]
        return self.selected

    def evaluate(self, expression: str) -> object:
        """The value of an expression in the selected frame; raises what it raises."""
        return self.selected.evaluate(expression)

    def act(self, source: str, filename: str = "<action>") -> ActionResult:
        """Runs code in the selected frame, in the held thread."""
        _ = self.repetition  # of what has crashed, before anything is changed
        self._acted = True
        result = self.selected.act(source, filename)
        signals.guard_new_handlers()
        return result

    # -- verbs ---------------------------------------------------------------------------------------------------

    def ways_of_selected(self) -> Ways:
        """The ways on from the selected frame.

        Raises:
            Refusal: it cannot go on.
        """
        view = self.selected
        known = self._ways.get(view.frame)
        if known is not None:
            if view is not self._held:
                self._changes.catch_up_outer(known)
            elif self.crashed and self.interruption is None:
                self._changes.catch_up(known)
            return known
        if self.frames.index(view) > self.frames.index(self._held):
            raise Refusal(
                f"{view.name} has been ended by the exception, and cannot go on",
                remedy=f"`frame {self.frames.index(self._held)}` selects the frame that is held.",
            )
        if not view.vaccinated:
            raise Refusal(
                f"{view.name} is not vaccinated, and cannot go on",
                remedy="Choose a frame of the program's own; `where` shows them.",
            )
        reason = obstacle(self._held.frame, view.frame, self.exception)
        if reason:
            raise Refusal(f"{view.name} cannot be reached from here", why=reason)
        called = self._held.frame
        while called.f_back is not view.frame:
            assert called.f_back is not None
            called = called.f_back
        made = self._ways[view.frame] = Ways(foresee(view.frame), self.exception, called)
        self._changes.catch_up_outer(made)
        return made

    def _decide(self, choose: Callable[[Ways], Way]) -> str:
        """Decides by a way on from the selected frame; the sentence that says so."""
        ways = self.ways_of_selected()
        view, moved = self.selected, ways.moved

        settled = -1

        def decide(captured: Capture, exception: BaseException) -> Decision:
            arrived = Ways(captured, exception, inner_frame(captured.frame, exception), moved)
            return (choose(arrived) if settled < 0 else arrived.at(settled))[0]

        crashed_here = self.crashed and view is self._held
        what = "" if view is self._held else f"what {view.name} has called"
        meant = ""
        try:
            decision, text = choose(ways)
            if crashed_here:
                self.decision = decision
                return text
            meant = decision.word
        except BlocksFirst as first:
            # What is the innermost loop, say, is another question once blocks have been left.
            settled, text = first.target, first.then
            what = what or "the blocks around the statement"
        if not self.crashed:
            self._only_taken_by_us(view)
        unwinding = Unwinding(
            view.frame, self.exception, decide, journal.when_running(self), left=crashed_here
        )
        self.decision = Decision("unwind", unwinding=unwinding, meant=meant)
        return f"leaving {what}, then {text}" if what else text

    def _only_taken_by_us(self, view: FrameView) -> None:
        """Refuses if a clause of the program's would take what is raised into a paused frame."""
        reason = taken_at(view.frame, self.exception)
        if reason:
            raise Refusal(
                f"{view.name} cannot go on elsewhere from here",
                why=reason,
                remedy="`pass`, and pause it again outside of that block.",
            )

    def retry(self) -> str:
        """Goes on: the statement again, or where a surgery has set it, or behind what a signal has interrupted."""
        if self.was_interrupted():
            kept, text = self.selected, f"going on {self._behind_interruption()}"
            self.selected, choose = self.after_interruption()
            try:
                return self._decide(lambda ways: (choose(ways)[0], text))
            except Refusal:
                self.selected = kept
                raise
        ways = self.ways_of_selected()
        if self.selected is self._held and not self.crashed and ways.moved is None:
            self.decision = Decision("pass")
            return f"going on {ways.where_next()}"
        text = self._decide(Ways.retry)
        if self.crashed and ways.moved is None:
            again, view = self.repetition, self.selected
            state = self._states.get(view.frame) or retries.state_of(view.frame)
            retries.remember(self.captured, self.exception, view.code, state, again, acted=self._acted)
        return text

    def was_interrupted(self) -> bool:
        """Whether to repeat the statement of the selected frame would be to repeat what has not failed."""
        found, selected = self.interruption, self.selected
        known = self._ways.get(selected.frame)
        if found is None or (known is not None and known.moved is not None):
            return False
        if selected.frame is found.frame or (found.handler is None and selected is self._held):
            return True
        return selected is self._held and selected.frame is found.handler and raises_itself(self.captured)

    def after_interruption(self) -> tuple[FrameView, Callable[[Ways], Way]]:
        """Which frame goes on how, so that the program goes on behind the interrupted instruction.

        Raises:
            NoPoint: nobody knows how far it had come.
        """
        found = self.interruption
        assert found is not None
        if found.handler is not None:
            view = next(view for view in self.frames if view.frame is found.handler)
            return view, lambda ways: ways.give(None)
        place = behind(self.captured, found)
        return self._held, lambda ways: ways.at(place)

    def _behind_interruption(self) -> str:
        assert self.interruption is not None
        name = self.interruption.frame.f_code.co_qualname
        return f"behind the interrupted instruction at line {self.interruption.line} of {name}"

    def skip(self, what: str = "") -> str:
        """Goes on behind the statement.

        Args:
            what: `body` goes on with the next iteration of the innermost loop, `loop` behind that loop.
        """
        return self._decide(lambda ways: ways.skip(what))

    def restart(self) -> str:
        """Goes on at the first statement of the function, with its parameters as they are now."""
        return self._decide(Ways.restart)

    def goto(self, line: int) -> str:
        """Goes on at the statement of a line of the same function."""
        return self._decide(lambda ways: ways.goto(line))

    def give(self, value_expression: str | None) -> str:
        """The frame returns a value; its blocks are left properly."""
        self.ways_of_selected()
        value = self.selected.evaluate(value_expression) if value_expression else None
        return self._decide(lambda ways: ways.give(value))

    def let_go(self, expression: str | None = None, always: bool = False) -> str:
        """Lets the exception go on, or another one instead."""
        if expression is None:
            if always:
                let_pass.add(self.site)
            self.decision = Decision("raise")
            if not self.crashed:
                return "going on"
            return f"{type(self.exception).__name__} goes on"
        self.ways_of_selected()
        value: object = signals.raised_by_handler(expression)
        if value is None:
            value = self.selected.evaluate(expression)
        if isinstance(value, type) and issubclass(value, BaseException):
            value = value()
        if not isinstance(value, BaseException):
            raise Refusal(f"{expression} is no exception", remedy="`raise` takes an exception or nothing.")
        error, text = value, f"{type(value).__name__} goes on instead"
        return self._decide(lambda ways: (ways.raising("raise", error), text))

    @property
    def site(self) -> tuple[str, int, type[BaseException]]:
        """File, line and type that `raise --always` remembers."""
        return self._held.filename, self._held.line, type(self.exception)

    def leave(self, code: int) -> str:
        """Ends the program by SystemExit."""
        self.decision = self._ways[self._held.frame].raising("exit", SystemExit(code))
        return f"leaving with exit code {code}"

    def surgery(
        self,
        *,
        from_disk: bool = False,
        file: str | None = None,
        name: str | None = None,
        source: str | None = None,
        line: int | None = None,
        check: bool = False,
    ) -> str:
        """Replaces functions by edited ones and says what changed and where it would go on.

        Args:
            from_disk: take the source files as they are on disk now.
            file: take this edited copy of the held frame's module.
            name: `f`, `Class.method` or `module.f`, whose new definition `source` is.
            source: the new definition, or what takes the place of the statement of `line`.
            line: a line of the selected frame's function; only the statement that begins there is replaced.
            check: only say what would change.
        """
        ways = self.ways_of_selected()
        operation = Operation(
            ways.captured, self.frames, ways.flow, ways.begin(), from_disk, file, name, source, line
        )
        result = operate(operation, check=check)
        if check:
            return result.text
        if result.going is not None:
            self._changes.move(ways, Moved(result.going, result.values), result.step)
        return f"{result.text}\n{self.where_next()}"

    def last_change(self) -> str:
        """The diff of the last surgery that is in force."""
        done = history.steps()
        return difference(done[-1]) if done else ""

    def undo(self) -> str:
        """Takes the last surgery back; a frame that would go on in its code goes on in the one before."""
        step, notes = history.undo()
        self._changes.catch_up(self._ways[self._held.frame])
        notes += moving.follow_sentence(
            [moving.Replaced(after, pristine(before)) for before, after in step.codes], self._held.frame
        )
        for ways in self._ways.values():
            for before, after in step.codes:
                if ways.flow.code is pristine(after):  # it has run the new code already
                    notes.append(ways.move_to(flow_of(pristine(before))))
        return "\n".join([f"{step.title} is taken back", *filter(None, notes), self.where_next()])

    def patch(self) -> str:
        """The diff of all surgeries that are in force against the files on disk."""
        return patch(history.steps())


class _Closed(Exception):
    """Stands for the exception of a hold that is over."""

    __traceback__: TracebackType | None


_CLOSED = _Closed()
