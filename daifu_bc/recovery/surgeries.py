"""Surgery by the program itself, while nothing is held: from its own code, another thread, or the cell of a notebook.

What the word does to frames elsewhere is done to every frame here, that of the caller included.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType, FunctionType, MethodType, ModuleType

from daifu_bc import pyversion
from daifu_bc.errors import DaifuError, Refusal, UsageError
from daifu_bc.recovery import history, journal, moving
from daifu_bc.recovery.bodies import flow_of
from daifu_bc.recovery.edits import Operation, find_function
from daifu_bc.recovery.frames import FrameView, visible_frames
from daifu_bc.recovery.patch import difference
from daifu_bc.recovery.patch import patch as patch_of
from daifu_bc.recovery.surgery import operate
from daifu_bc.recovery.working import working
from daifu_bc.rewrite.barrier import pristine

#: In these a person's code runs while its thread is held.
_ACTIONS = frozenset({FrameView.act.__code__, FrameView.evaluate.__code__})


def surgery(
    target: str | FunctionType | MethodType | None = None,
    source: str | None = None,
    *,
    at: int | None = None,
    module: ModuleType | str | None = None,
    check: bool = False,
) -> str:
    """Replaces functions by edited ones, as the word `surgery` does, while the program runs.

    Without arguments it takes what has changed in the source files on disk. Frames that run replaced functions, the
    caller's too, go on in the new text at their next statement.

    Args:
        target: a file, the edited copy of a module; or, with `source`, the function that it is the new text of: itself,
            or `f`, `Class.method`, `module.f` as seen by the caller.
        source: the new definition of `target`; with `at`, what takes the place of one statement of it.
        at: the line on which that statement begins; without a `target` it is one of the caller's function.
        module: the module of which the file is a copy, or which is to be taken from disk; the caller's, or all that
            are vaccinated, if it is left out.
        check: only say what would change.

    Returns:
        What was replaced, and what there is to say about it.

    Raises:
        Refusal: it cannot be done; nothing has been changed.
        UsageError: the arguments do not go together.
    """
    frame = sys._getframe(1)
    if at is not None and (source is None or module is not None):
        raise UsageError("`at` goes with `source`, the text of the new statement, and not with `module`")
    if source is not None and target is None and at is None:
        raise UsageError("`source` needs a `target`, the function that it defines")
    if source is not None and module is not None:
        raise UsageError("`module` goes with a file, or alone; write `module.f` as the `target`")
    if source is None and not isinstance(target, str | None):
        raise UsageError("a function as the `target` needs its new definition as `source`")

    def work() -> tuple[str, str]:
        result = operate(_operation(frame, target, source, at, _module(module)), check=check)
        code = source or ("" if result.step is None or check else difference(result.step))
        return result.text, code

    return _done("surgery", frame, work)


def undo() -> str:
    """Takes the last surgery back, as the word `undo` does.

    Returns:
        What was taken back.

    Raises:
        Refusal: there is none.
    """

    def work() -> tuple[str, str]:
        step, notes = history.undo()
        bodies = [moving.Replaced(after, pristine(before)) for before, after in step.codes]
        notes += moving.follow_sentence(bodies, None)
        return "\n".join([f"{step.title} is taken back", *filter(None, notes)]), ""

    return _done("undo", sys._getframe(1), work)


def patch() -> str:
    """The diff of all surgeries that are in force against the files on disk; empty if there is none."""
    return patch_of(history.steps())


def _done(word: str, frame: FrameType, work: Callable[[], tuple[str, str]]) -> str:
    """Does it, and writes it down."""
    _refuse_if_it_cannot_be(word, frame)
    began, busy = time.monotonic(), working.busy
    code, outcome = "", "interrupted"
    working.busy = True
    try:
        text, code = work()
        outcome = "done"
        return text
    except DaifuError as error:
        outcome = str(error)
        raise
    finally:
        journal.record(
            word,
            code=code,
            seconds=time.monotonic() - began,
            outcome=outcome,
            file=frame.f_code.co_filename,
            line=frame.f_lineno or 0,
            function=frame.f_code.co_qualname,
        )
        working.busy = busy


def _refuse_if_it_cannot_be(word: str, frame: FrameType) -> None:
    if not pyversion.SUPPORTED or os.environ.get("DAIFU_DISABLE", "0") not in ("", "0"):
        raise Refusal("daifu_bc is turned off, or does not know this Python, and replaces nothing")
    outer: FrameType | None = frame
    while outer is not None:
        if outer.f_code in _ACTIONS:
            raise Refusal("this thread is held", remedy=f"Say the word `{word}` at the prompt.")
        outer = outer.f_back


def _operation(
    frame: FrameType,
    target: str | FunctionType | MethodType | None,
    source: str | None,
    line: int | None,
    module: ModuleType | None,
) -> Operation:
    views = visible_frames(frame, Exception())
    file = name = None
    functions: tuple[FunctionType, ...] = ()
    if source is None:
        file = _file(target) if isinstance(target, str) else None
    elif isinstance(target, str):
        name = target
    elif target is not None:
        functions = (_plain(target),)
        name = functions[0].__qualname__
    if line is None:
        return Operation(
            None, views, None, -1, file is None and name is None, file, name, source, None, functions, module
        )
    if isinstance(target, str):
        functions = tuple(find_function(target, views))
    body = pristine(functions[0].__code__) if functions else _held(views).code
    return Operation(None, views, flow_of(body), -1, source=source, line=line, functions=functions)


def _held(views: Sequence[FrameView]) -> FrameView:
    return next(view for view in views if view.held)


def _file(target: str) -> str:
    path = os.path.expanduser(target)
    if not os.path.exists(path):
        raise Refusal(
            f"there is no file {path}", remedy="To give a new definition of a function, pass it as `source`."
        )
    return path


def _plain(function: FunctionType | MethodType) -> FunctionType:
    """The function itself, without what decorators have put around it."""
    found: object = function
    while True:
        if isinstance(found, MethodType):
            found = found.__func__
        elif isinstance(found, FunctionType):
            if "__wrapped__" not in found.__dict__:
                return found
            found = found.__dict__["__wrapped__"]
        else:
            raise UsageError(f"the target is no Python function, but {type(found).__name__}")


def _module(module: ModuleType | str | None) -> ModuleType | None:
    if not isinstance(module, str):
        return module
    if module not in sys.modules:
        raise Refusal(f"no module {module} is loaded")
    return sys.modules[module]
