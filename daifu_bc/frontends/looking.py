"""The words that look around and change nothing but the selected frame."""

from __future__ import annotations

import pprint
import re
from collections.abc import Callable

from daifu_bc.frontends import render
from daifu_bc.frontends.script import ScriptError
from daifu_bc.frontends.values import inline, printable, show
from daifu_bc.frontends.word import (
    Answer,
    Request,
    Word,
    check_python,
    no_body,
    refuse,
    takes_nothing,
    whole_number,
)
from daifu_bc.recovery.between import Paused
from daifu_bc.recovery.interface import FrameLike, HoldLike

#: Lines that `list LINE` shows before and after it.
AROUND = 5
LIST_ARGUMENT = re.compile(r"(?P<first>\d+)(?:\s*,\s*|\s+|$)(?P<last>\d+)?")
#: What `pp` prints at most; a large structure would push the hold off the screen.
MOST_LINES = 400
CONTAINERS = (dict, list, tuple, set, frozenset)


def _check_steps(request: Request) -> None:
    if request.argument:
        whole_number(request, what="a number of frames", least=1)
    no_body(request)


def _up(hold: HoldLike, request: Request) -> str:
    return _selected(hold.up(int(request.argument or 1)))


def _down(hold: HoldLike, request: Request) -> str:
    return _selected(hold.down(int(request.argument or 1)))


def _frame(hold: HoldLike, request: Request) -> str:
    which = request.argument
    if not which:
        return _selected(hold.selected)
    return _selected(hold.select(int(which) if which.isdecimal() else which))


def _selected(frame: FrameLike) -> str:
    return render.surroundings(frame)


def _where(hold: HoldLike, _request: Request) -> str:
    return "\n".join(render.frames(hold))


def _check_list(request: Request) -> None:
    no_body(request)
    if request.argument and request.argument != "all" and not LIST_ARGUMENT.fullmatch(request.argument):
        raise ScriptError(f"`list` needs LINE, FIRST,LAST or all, not {request.argument!r}", request.line)


def _list(hold: HoldLike, request: Request) -> str:
    frame = hold.selected
    if not request.argument:
        return "\n".join([render.surroundings(frame), *render.contents(frame)])
    if request.argument == "all":
        return render.whole(frame)
    match = LIST_ARGUMENT.fullmatch(request.argument)
    assert match is not None
    first = int(match["first"])
    last = first if match["last"] is None else int(match["last"])
    lines = [number for number, _ in frame.source or ()]
    if lines and not any(first <= number <= last for number in lines):
        raise refuse(
            f"{frame.name} has no such line: it is lines {lines[0]} to {lines[-1]}",
            "`frame NAME` selects another function.",
        )
    around = AROUND if match["last"] is None else 0
    return render.surroundings(frame, first - around, last + around)


def _locals(hold: HoldLike, _request: Request) -> str:
    return "\n".join(render.local_values(hold.selected)) or "The frame has no local names."


def _check_value(request: Request) -> None:
    no_body(request)
    if not request.argument:
        raise ScriptError(f"`{request.word}` needs an expression", request.line)
    check_python(request.argument, line=request.line, mode="eval")


def _p(hold: HoldLike, request: Request) -> Answer:
    return _evaluated(hold, request, show)


def _pp(hold: HoldLike, request: Request) -> Answer:
    return _evaluated(hold, request, _pretty)


class _Printer(pprint.PrettyPrinter):
    """Breaks containers over lines; what is in them is written as everywhere, tensors by shape."""

    def format(
        self,
        object: object,  # noqa: A002
        context: dict[int, int],
        maxlevels: int,
        level: int,
    ) -> tuple[str, bool, bool]:
        if type(object) in CONTAINERS:
            return super().format(object, context, maxlevels, level)
        return inline(object), True, False


def _pretty(value: object) -> str:
    # Only plain containers gain by it; everything else has a form of its own.
    if type(value) not in CONTAINERS:
        return show(value)
    try:
        lines = printable(_Printer(width=100, sort_dicts=False).pformat(value)).splitlines()
    except Exception:  # noqa: BLE001 - keys that cannot be compared, nesting without end
        return show(value)
    left = len(lines) - MOST_LINES
    return "\n".join([*lines[:MOST_LINES], *([f"... and {left} lines more"] if left > 0 else [])])


def _evaluated(hold: HoldLike, request: Request, form: Callable[[object], str]) -> Answer:
    try:
        value = hold.evaluate(request.argument)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the user's expression may raise anything at all
        text = render.error(error, known=hold.exception)
        return Answer(text, failed=f"{request.argument} raised {type(error).__name__}")
    return Answer(form(value))


def _exc(hold: HoldLike, _request: Request) -> str:
    return render.error(hold.exception)


def _why(hold: HoldLike, _request: Request) -> str:
    verdict = hold.verdict
    if isinstance(hold.exception, Paused):
        head = "Held, although nothing has crashed:"
    elif verdict.hold:
        head = "Held, because nobody is going to handle the exception:"
    else:
        head = "Held, although somebody might handle the exception:"
    reasons = [f"  - {printable(reason)}" for reason in verdict.reasons]
    return "\n".join([head, *(reasons or ["  - no handler was found in any frame further out"])])


WORDS = (
    Word(
        "up",
        ("up", "up N"),
        "select the frame that called the selected one",
        "`action`, `p`, `list` and `locals` work in the selected frame.",
        _up,
        _check_steps,
        changes=True,
    ),
    Word(
        "down",
        ("down", "down N"),
        "select the frame that the selected one called",
        "",
        _down,
        _check_steps,
        changes=True,
    ),
    Word(
        "frame",
        ("frame", "frame N", "frame NAME"),
        "select a frame by its number in `where`, or by its function's name",
        "Alone, it shows the selected one. The name is the innermost frame's with that name.",
        _frame,
        no_body,
        changes=True,
    ),
    Word(
        "where",
        ("where",),
        "list the frames, outermost first, the selected one marked",
        "",
        _where,
        takes_nothing,
    ),
    Word(
        "list",
        ("list", "list LINE", "list FIRST,LAST", "list all"),
        "show the code of the selected frame",
        "Without source it is the disassembly, with the starts of statements marked, and the names and constants.",
        _list,
        _check_list,
    ),
    Word(
        "locals",
        ("locals",),
        "show the local names of the selected frame and their values",
        "",
        _locals,
        takes_nothing,
    ),
    Word(
        "p",
        ("p EXPR",),
        "print the value of an expression",
        "A tensor is shown by shape, type, device and a few statistics; `action print(EXPR)` prints all of it.",
        _p,
        _check_value,
    ),
    Word(
        "pp",
        ("pp EXPR",),
        "print the value of an expression over several lines",
        "",
        _pp,
        _check_value,
    ),
    Word(
        "exc",
        ("exc",),
        "show the exception with its notes and what it came from",
        "",
        _exc,
        takes_nothing,
    ),
    Word(
        "why",
        ("why",),
        "explain why the exception is held here",
        "",
        _why,
        takes_nothing,
    ),
)
