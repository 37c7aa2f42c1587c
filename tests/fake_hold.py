"""A hold without an engine: it has the frames of a real traceback, and remembers which verbs were called."""

from __future__ import annotations

import ast
import contextlib
import dis
import inspect
import io
import re
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType, TracebackType

from daifu_bc.errors import Refusal
from daifu_bc.recovery.repetition import Repetition


@dataclass
class FakeVerdict:
    hold: bool = True
    reasons: list[str] = field(default_factory=list)


@dataclass
class FakeResult:
    output: str = ""
    error: BaseException | None = None
    traceback: str = ""
    value: object = None


class FakeFrame:
    def __init__(self, frame: FrameType, line: int, *, held: bool, with_source: bool = True) -> None:
        self.frame = frame
        self.code: CodeType = frame.f_code
        self.name = frame.f_code.co_qualname
        self.filename = frame.f_code.co_filename
        self.line = line
        self.held = held
        self.vaccinated = True
        self.source: Sequence[tuple[int, str]] | None = None
        if with_source:
            lines, first = inspect.getsourcelines(frame.f_code)
            self.source = [(max(first, 1) + number, text.rstrip()) for number, text in enumerate(lines)]

    def locals(self) -> Mapping[str, object]:
        return dict(self.frame.f_locals)

    def names_in_line(self) -> list[str]:
        text = next((text for number, text in self.source or () if number == self.line), "")
        names = re.findall(r"[^\W\d]\w*", text)
        return [name for name in dict.fromkeys(names) if name in self.frame.f_locals]

    def disassembly(self) -> str:
        lines = []
        for instruction in dis.get_instructions(self.code):
            mark = ">" if instruction.offset == self.frame.f_lasti else " "
            lines.append(f"{mark} {instruction.offset:4} {instruction.opname} {instruction.argrepr}".rstrip())
        return "\n".join(lines)


class FakeHold:
    """Its verbs are recorded in `calls`; `refuse` makes the next one be refused."""

    def __init__(self, error: BaseException, *, with_source: bool = True) -> None:
        self.number = 1
        self.crashed = True
        self.exception = error
        self.thread_name = "MainThread"
        self.started = time.time()
        self.began = self.asked = time.monotonic()
        self.verdict = FakeVerdict(reasons=["no frame further out has a handler for it"])
        self.repetition = Repetition()
        self.decision: object = None
        self.calls: list[tuple[object, ...]] = []
        self.refuse = ""
        steps: list[TracebackType] = []
        step = error.__traceback__
        while step is not None:
            steps.append(step)
            step = step.tb_next
        self.frames = [
            FakeFrame(one.tb_frame, one.tb_lineno, held=one is steps[-1], with_source=with_source)
            for one in steps
        ]
        self._selected = len(self.frames) - 1

    @property
    def selected(self) -> FakeFrame:
        return self.frames[self._selected]

    def where_next(self) -> str:
        return f"pass would run line {self.frames[-1].line} again"

    def select(self, which: int | str) -> FakeFrame:
        numbers = [
            number
            for number, frame in enumerate(self.frames)
            if which in (number, frame.name, frame.name.rpartition(".")[2])
        ]
        if not numbers:
            raise Refusal(f"there is no frame {which}")
        self._selected = numbers[-1]
        return self.selected

    def up(self, n: int = 1) -> FakeFrame:
        if self._selected - n < 0:
            raise Refusal("this is the outermost frame")
        self._selected -= n
        return self.selected

    def down(self, n: int = 1) -> FakeFrame:
        if self._selected + n >= len(self.frames):
            raise Refusal("this is the innermost frame")
        self._selected += n
        return self.selected

    def evaluate(self, expression: str) -> object:
        return eval(expression, self.selected.frame.f_globals, dict(self.selected.frame.f_locals))

    def act(self, source: str, filename: str = "<action>") -> FakeResult:
        self.calls.append(("act", source, filename))
        result = FakeResult()
        output = io.StringIO()
        names = dict(self.selected.frame.f_locals)
        try:
            with contextlib.redirect_stdout(output):
                try:
                    ast.parse(source, mode="eval")
                except SyntaxError:
                    exec(compile(source, filename, "exec"), self.selected.frame.f_globals, names)
                else:
                    result.value = eval(source, self.selected.frame.f_globals, names)
        except BaseException as error:
            result.traceback = "".join(traceback.format_exception_only(error))
            # Its traceback refers to this frame, which refers to the result.
            result.error = error.with_traceback(None)
        result.output = output.getvalue()
        return result

    def _verb(self, *call: object, decides: bool = True) -> str:
        self.calls.append(call)
        if self.refuse:
            raise Refusal(self.refuse)
        if decides:
            self.decision = call
        return f"({', '.join(str(part) for part in call)})"

    def retry(self) -> str:
        return self._verb("retry")

    def restart(self) -> str:
        return self._verb("restart")

    def skip(self, what: str = "") -> str:
        return self._verb("skip", what) if what else self._verb("skip")

    def goto(self, line: int) -> str:
        return self._verb("goto", line)

    def give(self, value_expression: str | None) -> str:
        if value_expression == "nothing":
            raise NameError("name 'nothing' is not defined")
        return self._verb("give", value_expression)

    def let_go(self, expression: str | None = None, always: bool = False) -> str:
        return self._verb("let_go", expression, always)

    def leave(self, code: int) -> str:
        return self._verb("leave", code)

    def last_change(self) -> str:
        return ""

    def undo(self) -> str:
        return self._verb("undo", decides=False)

    def patch(self) -> str:
        self._verb("patch", decides=False)
        return "--- a/f.py\n+++ b/f.py\n"

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
        at = () if line is None else (line,)
        return self._verb("surgery", from_disk, file, name, source, check, *at, decides=False)


def crash(function: Callable[..., object], *arguments: object) -> BaseException:
    """Return what a function raises, its traceback beginning in that function."""
    caught: BaseException | None = None
    try:
        function(*arguments)
    except BaseException as error:
        caught = error
    assert caught is not None
    assert caught.__traceback__ is not None
    try:
        return caught.with_traceback(caught.__traceback__.tb_next)
    finally:
        # The frame of the function refers to this one, and so to the exception.
        del caught


def outer(total: int) -> float:
    batches = [total, 0]
    return inner(batches)


def inner(batches: list[int]) -> float:
    count = batches[1]
    name = "mean"
    share = batches[0] / count  # the line that crashes
    print(name)
    return share


def make() -> FakeHold:
    """Return a hold in `inner`, called by `outer`."""
    return FakeHold(crash(outer, 12))


def make_without_source() -> FakeHold:
    """Return the same hold where there is no source."""
    return FakeHold(crash(outer, 12), with_source=False)
