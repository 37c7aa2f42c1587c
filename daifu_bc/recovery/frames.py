"""Frames as a person sees them: names, lines, values; code can be run in them."""

from __future__ import annotations

import ctypes
import dis
import io
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

from daifu_bc import pyversion
from daifu_bc.analysis import editions
from daifu_bc.recovery.attributes import set_context, set_traceback, traceback_of
from daifu_bc.recovery.bodies import body_of, has_barriers, is_launch, is_ours, locate, pristine_offset
from daifu_bc.recovery.interrupts import Interruptible
from daifu_bc.recovery.listing import listing
from daifu_bc.recovery.namespace import Namespace
from daifu_bc.recovery.output import captured_output
from daifu_bc.recovery.unseen import unseen
from daifu_bc.recovery.working import program_runs


@dataclass(frozen=True)
class ActionResult:
    """What running code in a frame gave.

    Attributes:
        output: what it printed.
        value: its value, if it was an expression.
        error: what it raised, or None.
        traceback: that error's traceback, without frames of ours.
        unseen: names that it has assigned, and that the frame's function looks up in its module.
    """

    output: str
    error: BaseException | None = None
    traceback: str = ""
    value: object = None
    unseen: tuple[str, ...] = ()


class FrameView:
    """One frame of the stack.

    Args:
        frame: the frame.
        line: the line that it is at.
        held: whether the exception stopped in it.
        offset: where it is in its code, if the frame itself cannot tell.
    """

    def __init__(self, frame: FrameType, line: int, *, held: bool, offset: int = -1) -> None:
        self.frame = frame
        #: Offset of its present instruction in the pristine code.
        self.offset = offset if offset >= 0 else locate(frame)[1]
        self.line = line
        self.held = held
        self.code: CodeType = body_of(frame.f_code)

    @property
    def name(self) -> str:
        """The qualified name of its function."""
        return self.code.co_qualname

    @property
    def filename(self) -> str:
        """The file that its code came from."""
        return self.code.co_filename

    @property
    def vaccinated(self) -> bool:
        """Whether a run can go on in it."""
        return has_barriers(self.frame.f_code)

    @property
    def function_line_range(self) -> tuple[int, int]:
        """First and last line of its function."""
        lines = [line for _, _, line in self.code.co_lines() if line is not None]
        return self.code.co_firstlineno, max([self.code.co_firstlineno, *lines])

    @property
    def source(self) -> list[tuple[int, str]] | None:
        """The numbered lines of its function, or None if there is no source."""
        lines = editions.lines(self.code)
        if not lines:
            return None
        first, last = self.function_line_range
        if self.code.co_name == "<module>":
            first, last = 1, len(lines)
        if first > len(lines):
            return None
        return [(number, lines[number - 1]) for number in range(max(first, 1), min(last, len(lines)) + 1)]

    def locals(self) -> dict[str, object]:
        """Its local names and their values, as a copy."""
        return dict(self.frame.f_locals)

    def names_in_line(self) -> list[str]:
        """The names that its present line reads, as far as they have a value."""
        names: list[str] = []
        known = self.frame.f_locals
        hidden = self.frame.f_globals
        for instruction, line in zip(
            dis.get_instructions(self.code), _instruction_lines(self.code), strict=False
        ):
            if line != self.line or not isinstance(instruction.argval, str | tuple):
                continue
            if not instruction.opname.startswith(
                ("LOAD_FAST", "LOAD_NAME", "LOAD_DEREF", "LOAD_GLOBAL", "STORE_FAST_L")
            ):
                continue
            values = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
            for name in values:
                if name not in names and (name in known or (name in hidden and not callable(hidden[name]))):
                    names.append(name)
        return names

    def disassembly(self) -> str:
        """Its instructions, the present one marked."""
        return listing(self.code, self.offset)

    def assign(self, name: str, value: object) -> None:
        """Gives a local another value; the running frame sees it."""
        self.frame.f_locals[name] = value
        write_locals(self.frame)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the frame; raises whatever it raises."""
        code = compile(expression.strip(), "<expression>", "eval")
        with program_runs(), Interruptible():
            return eval(code, self.frame.f_globals, self.frame.f_locals)

    def act(self, source: str, filename: str = "<action>") -> ActionResult:
        """Runs code in the frame, in this thread: with its locals, cells and globals."""
        output = io.StringIO()
        frame = self.frame
        error: BaseException | None = None
        text = ""
        value: object = None
        hidden: list[str] = []
        try:
            expression, code = _compile(source, filename)
            names = frame.f_locals
            namespace = names if type(names) is dict else Namespace(names)
            with captured_output(output), program_runs(), Interruptible():
                if expression:
                    value = eval(code, frame.f_globals, namespace)
                else:
                    exec(code, frame.f_globals, namespace)
                    hidden = unseen(code, self.code)
        except BaseException as raised:  # noqa: BLE001 - an action may raise what it likes; the hold stays
            text = _traceback(raised)
            # Its traceback would keep this frame alive, and this frame the error.
            error = raised
            set_traceback(error, None)
            set_context(error, None)
        finally:
            write_locals(frame)
        return ActionResult(output.getvalue(), error, text, value, tuple(hidden))


def _compile(source: str, filename: str) -> tuple[bool, CodeType]:
    try:
        return True, compile(source.strip(), filename, "eval")
    except SyntaxError:
        return False, compile(source if source.endswith("\n") else source + "\n", filename, "exec")


def _instruction_lines(code: CodeType) -> Iterator[int | None]:
    positions = list(code.co_positions())
    for instruction in dis.get_instructions(code):
        yield positions[instruction.offset // 2][0]


def write_locals(frame: FrameType) -> None:
    """Takes what was changed in `frame.f_locals` over into the frame; from 3.13 it is there already (PEP 667)."""
    if not pyversion.LOCALS_WRITE_THROUGH:
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def _traceback(error: BaseException) -> str:
    """An action's traceback without our frames."""
    entry = traceback_of(error)
    while entry is not None and is_ours(entry.tb_frame):
        entry = entry.tb_next
    set_context(error, None)  # the held exception: nobody wants to read it again here
    try:
        return "".join(traceback.format_exception(type(error), error, entry))
    except Exception as problem:  # noqa: BLE001 - the user's class may do anything when it is written out
        lines = "".join(traceback.format_tb(entry))
        message = f"{type(error).__name__}: <it cannot be written out: {type(problem).__name__}>"
        return f"Traceback (most recent call last):\n{lines}{message}\n"


def is_running_continuation(frame: FrameType) -> bool:
    """Whether a frame only waits for the continuation that took its place, so that nobody should see it."""
    _, offset = locate(frame)
    return offset < 0 and has_barriers(frame.f_code)


def visible_frames(held: FrameType, exception: BaseException) -> list[FrameView]:
    """The user's frames of a held thread, outermost first: those that are alive, then the dead ones inside.

    Args:
        held: the frame that is held.
        exception: what was raised.
    """
    views: list[FrameView] = []
    outward: FrameType | None = held.f_back
    while outward is not None and not is_launch(outward):
        if not is_ours(outward) and not is_running_continuation(outward):
            views.append(FrameView(outward, outward.f_lineno or 0, held=False))
        outward = outward.f_back
    views.reverse()
    entry = traceback_of(exception)
    inner: list[FrameView] = []
    line, offset = held.f_lineno or 0, -1
    while entry is not None:
        if entry.tb_frame is held:
            line, offset = entry.tb_lineno or line, pristine_offset(held.f_code, entry.tb_lasti)
            inner = []
        elif not is_ours(entry.tb_frame) and not is_running_continuation(entry.tb_frame):
            inner.append(FrameView(entry.tb_frame, entry.tb_lineno or 0, held=False))
        entry = entry.tb_next
    return [*views, FrameView(held, line, held=True, offset=offset), *inner]


def failed_exit(inner: FrameType | None) -> object | None:
    """The bound `__exit__` that `inner` ran when it raised; None if it ran something else.

    The stack of the frame that called it no longer has it; but the dead frame knows whose method it ran.
    """
    if inner is None or not inner.f_code.co_argcount:
        return None
    code = inner.f_code
    manager = inner.f_locals.get(code.co_varnames[0])
    for cls in type(manager).__mro__:
        method = cls.__dict__.get("__exit__")
        if isinstance(method, FunctionType):
            return MethodType(method, manager) if body_of(method.__code__) is body_of(code) else None
    return None


def inner_frame(frame: FrameType, exception: BaseException) -> FrameType | None:
    """The frame that `frame` had called when the exception came out of it, if that was Python code."""
    entry = traceback_of(exception)
    while entry is not None and entry.tb_frame is not frame:
        entry = entry.tb_next
    return entry.tb_next.tb_frame if entry is not None and entry.tb_next is not None else None
