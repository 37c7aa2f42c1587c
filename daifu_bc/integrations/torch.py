"""torch.compile is shown the pristine code.

Dynamo traces a function by its bytecode, and where it cannot go on tracing, it makes a function of the rest. Inside a
region of the exception table it can do neither, so vaccinated code would cost it graphs. A vaccinated code object is
its pristine instructions with stubs behind them, and its locals are the same, so what Dynamo makes of the pristine
code fits the frames of the vaccinated one.

Two functions of `torch._dynamo.bytecode_transformation` turn code into instructions: `cleaned_instructions`, for the
functions that are traced inline, and `transform_code_object`, for the frame itself and for the functions that go on
after a break. These are given the pristine code. Everything that Dynamo keeps for a code object (compiled code,
guards, what is skipped) stays with the vaccinated one, which is what runs.

What Dynamo generates is not vaccinated: between the statements of a compiled function there is no state to go on
from. A crash in there is held at the statement that called it.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

from daifu_bc.install.notice import say_once
from daifu_bc.recovery import observers
from daifu_bc.rewrite import barrier, first_call

BYTECODE = "torch._dynamo.bytecode_transformation"
_READERS = ("cleaned_instructions", "transform_code_object")
_SWITCHES = ("set_eval_frame", "skip_code")

_originals: dict[str, Callable[..., Any]] = {}


def install(module: ModuleType) -> None:
    """Let Dynamo read pristine code; if it is not the Dynamo that we know, leave it alone and say so once.

    Args:
        module: `torch._dynamo.bytecode_transformation`, as soon as it is imported.
    """
    found = vars(module)
    if _originals:
        return
    if not all(_reads_code(found.get(name)) for name in _READERS):
        _say_unknown()
        return
    for name in _READERS:
        _originals[name] = found[name]
        _put(found[name], _reader_of_pristine(found[name]))


def _say_unknown() -> None:
    say_once(
        "dynamo",
        "this version of torch is not known, so torch.compile sees the vaccinated code and may find fewer graphs in "
        "it. The program runs all the same; torch 2.13 is known to work.",
    )


def uninstall() -> None:
    """Let Dynamo read the code as it is again, and forget it."""
    global _dynamo
    if _dynamo is not None:
        observers.remove(_dynamo)
        _dynamo = None
    module = sys.modules.get(BYTECODE)
    while _originals:
        name, original = _originals.popitem()
        if module is not None:
            _put(vars(module)[name], original)


def _reads_code(reader: object) -> bool:
    """Tell whether this is a function whose first argument is a code object, as far as can be seen."""
    if type(reader) is not FunctionType:
        return False
    return next(iter(inspect.signature(reader).parameters), "") == "code"


def _reader_of_pristine(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def reader(code: CodeType, *arguments: Any, **keywords: Any) -> Any:
        # Compiled, it is not called itself any more. Said before the functions that it calls are looked at.
        first_call.notice(code)
        return original(barrier.pristine(code), *arguments, **keywords)

    return reader


def _put(old: Callable[..., Any], new: Callable[..., Any]) -> None:
    """Put a function in another's place, in every module of Dynamo that has imported it by name."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "torch" or not isinstance(module, ModuleType):
            continue
        attributes = vars(module)
        for attribute in _READERS:
            if attributes.get(attribute) is old:
                attributes[attribute] = new


class _Dynamo:
    """Keeps Dynamo out of what is no part of the program.

    A function that Dynamo runs as it is (after a graph break, say) runs with Dynamo watching what it calls: each
    frame with a tensor in it would be compiled.

    Args:
        frames: the part of Dynamo that has to do with frames.
        reset: makes it forget what it has compiled.
    """

    def __init__(self, frames: Any, reset: Callable[[], None]) -> None:
        self.frames = frames
        self.reset = reset

    def pause(self) -> Callable[[], None]:
        """Keep Dynamo from watching this thread, and return what lets it watch again."""
        return functools.partial(self.frames.set_eval_frame, self.frames.set_eval_frame(None))

    def continuation(self, code: CodeType) -> None:
        """Have the code of a continuation run as it is, like the frame that it goes on for."""
        self.frames.skip_code(code)

    def replaced(self) -> None:
        """Drop what Dynamo has compiled.

        Functions may have been traced inline in it, and Dynamo does not check whether a method still has the code
        that it has seen.
        """
        self.reset()


_dynamo: _Dynamo | None = None


def watch(module: ModuleType) -> None:
    """Keep Dynamo out of our own code, and up to date about the program's.

    Args:
        module: `torch._dynamo`, as soon as it is imported.
    """
    global _dynamo
    if _dynamo is not None:
        return
    frames: Any = getattr(module, "eval_frame", None)
    rules: Any = getattr(module, "trace_rules", None)
    if not all(hasattr(frames, name) for name in _SWITCHES) or not hasattr(rules, "add"):
        _say_unknown()
        return
    # Frames of our files are left alone from now on: those that run before the pause, and those that go on behind it.
    rules.add("daifu_bc")
    _dynamo = _Dynamo(frames, module.reset)
    observers.add(_dynamo)
