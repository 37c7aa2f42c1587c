"""The words that change something: how the run goes on, and the frame's variables."""

from __future__ import annotations

import ast
import os
import threading
from collections.abc import Callable

from daifu_bc.errors import DaifuError
from daifu_bc.frontends import render
from daifu_bc.frontends.script import ScriptError
from daifu_bc.frontends.values import printable, show
from daifu_bc.frontends.word import (
    Answer,
    Request,
    Word,
    check_python,
    no_body,
    takes_nothing,
    whole_number,
)
from daifu_bc.recovery import files
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.turns import turns

#: The exit code of `exit` alone: the program did not come to its end.
EXIT_CODE = 1
LARGEST_EXIT_CODE = 255


def _pass(hold: HoldLike, _request: Request) -> str:
    return hold.retry()


def _check_skip(request: Request) -> None:
    no_body(request)
    if request.argument not in ("", "body", "loop"):
        raise ScriptError(f"`skip` takes nothing, `body` or `loop`, not {request.argument}", request.line)


def _skip(hold: HoldLike, request: Request) -> str:
    return hold.skip(request.argument)


def _restart(hold: HoldLike, _request: Request) -> str:
    return hold.restart()


def _check_goto(request: Request) -> None:
    whole_number(request, what="the number of a line", least=1)


def _goto(hold: HoldLike, request: Request) -> str:
    return hold.goto(whole_number(request, what="the number of a line", least=1))


def _check_expression(request: Request) -> None:
    no_body(request)
    if request.argument:
        check_python(request.argument, line=request.line, mode="eval")


def _return(hold: HoldLike, request: Request) -> Answer | str:
    return _with_expression(hold, hold.give, request)


def _with_expression(hold: HoldLike, verb: Callable[[str | None], str], request: Request) -> Answer | str:
    """Run a verb that evaluates an expression of the user's, which may raise anything at all."""
    if not request.argument:
        return verb(None)
    try:
        return verb(request.argument)
    except (DaifuError, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001
        return Answer(
            render.error(error, known=hold.exception),
            failed=f"{request.argument} raised {type(error).__name__}",
        )


def _check_raise(request: Request) -> None:
    no_body(request)
    # As a statement: `raise X from Y` is allowed in the words of Python.
    if request.argument and request.argument != "--always":
        check_python(f"raise {request.argument}", line=request.line)


def _raise(hold: HoldLike, request: Request) -> Answer | str:
    if request.argument == "--always":
        return hold.let_go(always=True)
    return _with_expression(hold, hold.let_go, request)


# -------------------------------------------------------------------- action


def _check_action(request: Request) -> None:
    if request.body is not None:
        check_python(request.body, line=request.line + 1)
    elif not request.argument:
        raise ScriptError("`action` needs code: action CODE, action @FILE, or action <<END", request.line)
    elif not request.argument.startswith("@"):
        check_python(request.argument, line=request.line)


def _action(hold: HoldLike, request: Request) -> Answer:
    if request.body is not None:
        return run_code(hold, request.body)
    if request.argument.startswith("@"):
        path = os.path.expanduser(request.argument[1:].strip())
        return run_code(hold, files.read(path), os.path.abspath(path))
    return run_code(hold, request.argument)


def run_code(hold: HoldLike, source: str, filename: str = "<action>") -> Answer:
    """Run code in the selected frame and return what it printed, its value, and what it raised."""
    result = hold.act(source, filename)
    parts = [result.output.rstrip("\n")] if result.output else []
    if result.error is None:
        value = getattr(result, "value", None)
        if value is not None:
            parts.append(show(value))
        parts += map(_unseen, getattr(result, "unseen", ()))
        return Answer("\n".join(parts), code=source)
    kind = type(result.error).__name__
    parts.append(printable(result.traceback.rstrip("\n") or kind))
    parts.append(f"The action raised {kind}; the hold stays.")
    return Answer("\n".join(parts), failed=f"the action raised {kind}", code=source)


def _unseen(name: str) -> str:
    return (
        f"`{name}` is known at this prompt only; the function looks it up in its module."
        f" `global {name}` in front, in the same action, sets it there."
    )


def only_looks(request: Request) -> bool:
    """Tell whether an action is an expression that calls and assigns nothing, so that nothing can have changed."""
    try:
        tree = ast.parse(request.argument, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return not any(isinstance(node, (ast.Call, ast.NamedExpr, ast.Await)) for node in ast.walk(tree))


# ---------------------------------------------------------------------- exit


def _exit_code(request: Request) -> int:
    if not request.argument:
        no_body(request)
        return EXIT_CODE
    code = whole_number(request, what="an exit code from 0 to 255")
    if code > LARGEST_EXIT_CODE:
        raise ScriptError(f"`exit` needs an exit code from 0 to 255, not {code}", request.line)
    return code


def _check_exit(request: Request) -> None:
    _exit_code(request)


def _exit(hold: HoldLike, request: Request) -> str:
    code = _exit_code(request)
    parts = [hold.leave(code)]
    others = turns.leave(hold, code)
    if others:
        numbers = ", ".join(str(place.number) for place in others)
        parts.append(f"hold{'s' * (len(others) > 1)} {numbers} too")
    main = threading.main_thread().ident
    if threading.get_ident() != main and not any(place.ident == main for place in others):
        parts.append("the main thread is not held, and runs on")
    return "; ".join(parts)


WORDS = (
    Word(
        "pass",
        ("pass",),
        "go on: run the crashed statement again, or start where a surgery has set the point",
        """
        The statement that crashed runs again from its beginning; what ran before it does not.
        Repair the cause first, with `action` or `surgery`, or it crashes again and is held again.
        """,
        _pass,
        takes_nothing,
        aliases=("retry", "c"),
        decides=True,
    ),
    Word(
        "skip",
        ("skip", "skip body", "skip loop"),
        "go on after the crashed statement, leaving it undone; after the loop's body or after the loop",
        """
        If it is the head of a `for`, `while`, `if` or `with`, the whole compound statement is skipped.
        `skip body` goes on with the next iteration of the innermost loop, `skip loop` behind that loop.
        Where a loop's next element could not be assigned to its variables, the loop goes on with the one behind it.
        """,
        _skip,
        _check_skip,
        decides=True,
    ),
    Word(
        "goto",
        ("goto LINE",),
        "go on at the statement of that line, in the same function",
        """
        Blocks that are left on the way are left properly: an iterator is dropped, a `with` is exited.
        A line inside a loop, a `with` or a `try` that is not running cannot be entered; the word says so.
        """,
        _goto,
        _check_goto,
        decides=True,
    ),
    Word(
        "return",
        ("return", "return EXPR"),
        "let the frame return this value",
        "EXPR is evaluated in the frame. Open `with`s and `finally`s are left properly first.",
        _return,
        _check_expression,
        decides=True,
    ),
    Word(
        "restart",
        ("restart",),
        "run the function from its first statement, with its parameters as they are now",
        "The blocks that are open in it are left properly first.",
        _restart,
        takes_nothing,
        decides=True,
    ),
    Word(
        "raise",
        ("raise", "raise EXPR", "raise --always"),
        "let the exception go on (or this one instead)",
        """
        The program goes on as if daifu_bc were not there: its own handlers see the exception, or it ends.
        With --always, exceptions at this place are let go from now on without asking.
        """,
        _raise,
        _check_raise,
        decides=True,
    ),
    Word(
        "action",
        ("action CODE", "action <<END ... END", "action @FILE", "CODE"),
        "run code in the selected frame",
        """
        The code sees and changes the frame's own variables and globals, in the crashed thread. What it prints
        and raises is shown; if it raises, the hold stays. Anything that is no word is an action too: `x = 3`
        assigns, `x` alone prints the value. Where code begins like a word, write `action` or `!` before it.
        """,
        _action,
        _check_action,
        changes=True,
    ),
    Word(
        "exit",
        ("exit", "exit CODE"),
        "end the program with an exit code (1 if none is given)",
        """
        To end it with the exception and its traceback instead, use `raise`. Other threads that are held end too.
        If the main thread is not held, only the threads that are end.
        """,
        _exit,
        _check_exit,
        decides=True,
    ),
)
