"""A held thread: what can be seen of it, and the ways on. The one who answers decides by one of the verbs."""

from __future__ import annotations

import inspect
import itertools
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from daifu_bc.analysis import editions
from daifu_bc.analysis.flow import Flow
from daifu_bc.errors import NoPoint, Refusal
from daifu_bc.recovery import policy, signals
from daifu_bc.recovery.answers import Verdict
from daifu_bc.recovery.attributes import context_of
from daifu_bc.recovery.bodies import continuation_from, runs_none
from daifu_bc.recovery.capture import Capture
from daifu_bc.recovery.edits import Operation
from daifu_bc.recovery.frames import ActionResult, FrameView, failed_exit, inner_frame, visible_frames
from daifu_bc.recovery.giving import VALUE_NAME, return_through
from daifu_bc.recovery.restarts import Restarts
from daifu_bc.recovery.skips import Skip
from daifu_bc.recovery.surgery import operate
from daifu_bc.rewrite.continuation import Start

_numbers = itertools.count(1)
#: Sites at which exceptions are let go from now on (`raise --always`): (file, line, type).
let_pass: set[tuple[str, int, type[BaseException]]] = set()


@dataclass(frozen=True)
class Decision:
    """How a hold ends.

    Attributes:
        word: the word that decided.
        start: where the run goes on; None if the exception goes on.
        flow: the body in which it goes on.
        last: what a continuation raises or returns, in a list of one.
        extra: locals of the new body that come from the runtime.
    """

    word: str
    start: Start | None = None
    flow: Flow | None = None
    last: list[Any] = field(default_factory=list)
    extra: dict[str, object] = field(default_factory=dict)


class Hold:
    """A thread held at the statement that crashed.

    Args:
        captured: the frame at its barrier.
        exception: what was raised.
        verdict: why it is held.

    Attributes:
        number: counts the holds of this process from 1.
        frames: the user's frames, outermost first.
        selected: the frame that words look at.
        decision: None until a verb has decided.
    """

    def __init__(self, captured: Capture, exception: BaseException, verdict: Verdict) -> None:
        self.number = next(_numbers)
        self.exception = exception
        self.verdict = verdict
        self.thread_name = threading.current_thread().name
        self.started = time.time()
        self.frames = visible_frames(captured.frame, exception)
        self._held = next(view for view in self.frames if view.held)
        self.selected = self._held
        self.decision: Decision | None = None
        self.captured = captured
        #: Where `pass` goes on; a surgery may have set it.
        self._flow = captured.flow
        self._place: int | None = None
        #: Parameters that the new body has and the running one has not.
        self._values: dict[str, object] = {}

    def close(self) -> None:
        """Lets go of all that the hold keeps alive."""
        if self.exception is _CLOSED:
            return
        self.frames = []
        self.exception = _CLOSED
        del self._held, self.selected, self.captured, self._flow

    def do(self, words: str) -> str:
        """Runs words as they are typed at the prompt; the text that they print."""
        return policy.run_words(self, words)

    # -- looking -------------------------------------------------------------------------------------------------

    def where_next(self) -> str:
        """What `pass` would run, in a line."""
        try:
            start, flow = self._retry_start()
        except NoPoint as refusal:
            return f"`pass` cannot go on: {refusal}"
        line = self._restarts(flow).line_of(start.place)
        new = " of the new code" if flow is not self.captured.flow else ""
        return f"`pass` goes on at line {line}{new}{_text(flow, line)}"

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
        result = self.selected.act(source, filename)
        signals.guard_new_handlers()
        return result

    # -- verbs ---------------------------------------------------------------------------------------------------

    def _restarts(self, flow: Flow | None = None) -> Restarts:
        captured = self.captured
        names = frozenset(captured.frame.f_locals) if captured.code.co_varnames else frozenset[str]()
        if flow is None or flow is captured.flow:
            if ended_generator(captured, self.exception):
                return Restarts(captured.flow, captured.place, captured.items, names, ended=True)
            lost = failed_exit(captured.frame, self.exception)
            return Restarts(captured.flow, captured.place, captured.items, names, lost, left=captured.left)
        place = self._place or 0
        return Restarts(flow, place, flow.stacks[place] or (), names | frozenset(self._values))

    def _retry_start(self) -> tuple[Start, Flow]:
        if self._place is not None:
            restarts = self._restarts(self._flow)
            lost = len(restarts.held) > len(self.captured.items)
            return Start(self._place, restarts.held, restarts.bound, supplied=int(lost)), self._flow
        return self._restarts().retry(), self.captured.flow

    def _decide(
        self,
        word: str,
        start: Start,
        flow: Flow,
        last: list[Any] | None = None,
        extra: dict[str, object] | None = None,
    ) -> None:
        self._only_held()
        # Built and verified now, so that a refusal is told here, and the hold stays.
        continuation_from(flow, start, runs=runs_none(self.captured.frame))
        values = self._values if flow is self._flow else {}
        self.decision = Decision(word, start, flow, last or [], values | (extra or {}))

    def _only_held(self) -> None:
        if self.selected is not self._held:
            raise Refusal(
                f"only the frame that crashed can go on, and {self.selected.name} is selected",
                remedy=f"`frame {self.frames.index(self._held)}` selects it.",
            )

    def retry(self) -> str:
        """Goes on: the crashed statement again, or where a surgery has set it."""
        self._only_held()
        start, flow = self._retry_start()
        text = self.where_next()
        supplied = [failed_exit(self.captured.frame, self.exception)] if start.supplied else []
        if start.raises:  # what the exit of a `with` was called for
            supplied = [context_of(self.exception)]
        self._decide("pass", start, flow, supplied)
        return text.replace("`pass` goes on", "going on")

    def skip(self) -> str:
        """Goes on behind the crashed statement."""
        self._only_held()
        start, flow = Skip(self._restarts(self._flow)).start(), self._flow
        if start.returns:
            self._decide("skip", start, flow, [None])
            return "going on at the end of the function"
        self._decide("skip", start, flow)
        return self._going_on(start, flow)

    def goto(self, line: int) -> str:
        """Goes on at the statement of a line of the same function."""
        self._only_held()
        restarts = self._restarts(self._flow)
        start = restarts.goto(line)
        self._decide("goto", start, self._flow)
        return self._going_on(start, self._flow)

    def _going_on(self, start: Start, flow: Flow) -> str:
        line = self._restarts(flow).line_of(start.place)
        return f"going on at line {line}{_text(flow, line)}"

    def give(self, value_expression: str | None) -> str:
        """The frame returns a value; its blocks are left properly."""
        self._only_held()
        restarts = self._restarts()
        value = self._held.evaluate(value_expression) if value_expression else None
        if restarts.returns_at_once():
            self._decide("return", restarts.give(), self.captured.flow, [value])
        else:
            flow, start = return_through(self.captured, restarts, has_value=value is not None)
            self._decide("return", start, flow, extra={VALUE_NAME: value})
        return f"{self._held.name} returns {type(value).__name__}"

    def let_go(self, expression: str | None = None, always: bool = False) -> str:
        """Lets the exception go on, or another one instead."""
        if expression is None:
            if always:
                let_pass.add(self.site)
            self.decision = Decision("raise")
            return f"{type(self.exception).__name__} goes on"
        self._only_held()
        value: object = signals.raised_by_handler(expression)
        if value is None:
            value = self._held.evaluate(expression)
        if isinstance(value, type) and issubclass(value, BaseException):
            value = value()
        if not isinstance(value, BaseException):
            raise Refusal(f"{expression} is no exception", remedy="`raise` takes an exception or nothing.")
        self._decide("raise", self._restarts().raising(), self.captured.flow, [value])
        return f"{type(value).__name__} goes on instead"

    @property
    def site(self) -> tuple[str, int, type[BaseException]]:
        """File, line and type that `raise --always` remembers."""
        return self._held.filename, self._held.line, type(self.exception)

    def leave(self, code: int) -> str:
        """Ends the program by SystemExit."""
        self._decide("exit", self._restarts().raising(), self.captured.flow, [SystemExit(code)])
        return f"leaving with exit code {code}"

    def surgery(
        self,
        *,
        from_disk: bool = False,
        file: str | None = None,
        name: str | None = None,
        source: str | None = None,
        check: bool = False,
    ) -> str:
        """Replaces functions by edited ones and says what changed and where it would go on.

        Args:
            from_disk: take the source files as they are on disk now.
            file: take this edited copy of the held frame's module.
            name: `f`, `Class.method` or `module.f`, whose new definition `source` is.
            source: the new definition.
            check: only say what would change.
        """
        operation = Operation(
            self.captured, self.frames, from_disk=from_disk, file=file, name=name, source=source
        )
        result = operate(operation, check=check)
        if not check and result.flow is not None:
            self._flow = result.flow
            self._place = result.place
            self._values = result.values
        text = result.text
        return text if check else f"{text}\n{self.where_next()}"


def ended_generator(captured: Capture, exception: BaseException) -> bool:
    """Whether a loop asked a generator for its next element, and that generator has ended by the exception."""
    if captured.flow.instructions[captured.place].name != "FOR_ITER":
        return False
    inner = inner_frame(captured.frame, exception)
    return inner is not None and bool(inner.f_code.co_flags & inspect.CO_GENERATOR)


class _Closed(Exception):
    """Stands for the exception of a hold that is over."""

    __traceback__: TracebackType | None


_CLOSED = _Closed()


def _text(flow: Flow, line: int) -> str:
    lines = editions.lines(flow.code)
    if not lines or not 0 < line <= len(lines):
        return ""
    return f": {lines[line - 1].strip()}"
