"""The words that change the program's functions."""

from __future__ import annotations

import os
import shlex
from typing import NamedTuple

from daifu_bc.frontends.script import ScriptError
from daifu_bc.frontends.word import Answer, Request, Word, check_python, no_body, refuse, takes_nothing
from daifu_bc.recovery.interface import HoldLike


class _Arguments(NamedTuple):
    """What stands behind `surgery`: whether `--check` does, the line of `--at`, and a file or name."""

    check: bool
    line: int | None
    target: str | None


def _surgery_arguments(request: Request) -> _Arguments:
    try:
        words = shlex.split(request.argument)
    except ValueError as error:
        raise ScriptError(f"`surgery`: {error}", request.line) from None
    rest = [word for word in words if word != "--check"]
    check, line = len(words) > len(rest), None
    if "--at" in rest:
        place = rest.index("--at")
        number = rest[place + 1] if place + 1 < len(rest) else ""
        if not number.isdecimal() or int(number) < 1:
            raise ScriptError(f"`surgery --at` needs the number of a line, not {number!r}", request.line)
        line = int(number)
        del rest[place : place + 2]
    option = next((word for word in rest if word.startswith("-")), None)
    if option is not None:
        raise ScriptError(f"`surgery` does not know {option}; it takes --check and --at LINE", request.line)
    if len(rest) > (line is None):
        what = "one FILE or NAME" if line is None else "no FILE or NAME beside --at LINE"
        raise ScriptError(f"`surgery` takes {what}, not {len(rest)}", request.line)
    return _Arguments(check, line, rest[0] if rest else None)


def _check_surgery(request: Request) -> None:
    arguments = _surgery_arguments(request)
    if request.body is None:
        if arguments.line is not None:
            raise ScriptError(
                "`surgery --at LINE` needs the new statement: surgery --at LINE <<END", request.line
            )
        return
    if arguments.target is None and arguments.line is None:
        raise ScriptError("`surgery <<END` needs a name before it: surgery NAME <<END", request.line)
    check_python(request.body, line=request.line + 1)


def _surgery(hold: HoldLike, request: Request) -> Answer:
    text = _operate(hold, request)
    return Answer(text, code="" if request.body is not None else hold.last_change())


def _operate(hold: HoldLike, request: Request) -> str:
    check, line, target = _surgery_arguments(request)
    if line is not None:
        return hold.surgery(line=line, source=request.body, check=check)
    if target is None:
        return hold.surgery(from_disk=True, check=check)
    if request.body is not None:
        return hold.surgery(name=target, source=request.body, check=check)
    path = os.path.expanduser(target)
    if not os.path.exists(path):
        raise refuse(
            f"there is no file {path}",
            "To give a new definition of a function, write `surgery NAME <<END`, the definition, and a line END.",
        )
    return hold.surgery(file=path, check=check)


def _undo(hold: HoldLike, _request: Request) -> str:
    return hold.undo()


def _patch(hold: HoldLike, request: Request) -> Answer | str:
    text = hold.patch()
    if not text:
        return "No surgery has changed anything that is not in the files."
    if not request.argument:
        return text.rstrip("\n")
    path = os.path.expanduser(request.argument)
    try:
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise refuse(f"cannot write {path}: {error}") from None
    return f"written to {path}"


WORDS = (
    Word(
        "surgery",
        (
            "surgery",
            "surgery FILE",
            "surgery NAME <<END ... END",
            "surgery --at LINE <<END ... END",
            "surgery --check ...",
        ),
        "replace functions by their edited source",
        """
        Alone, it reads the program's source files again and replaces every function that changed.
        FILE is an edited copy of the module of the selected frame. NAME is `f`, `Class.method` or `module.f`,
        and the here-document its new definition. With --at LINE it is what takes the place of the one statement that
        begins on that line of the selected frame's function; a compound one goes with its blocks. Inside the crashed function the run goes on at the first changed
        statement of the block that crashed, or at the crashed one if none before it has changed; the answer says
        which. What stands outside of functions is not run again: assign it with `action`. With --check it says
        what would change, and changes nothing.
        """,
        _surgery,
        _check_surgery,
        changes=True,
    ),
    Word(
        "undo",
        ("undo",),
        "take the last surgery back",
        "Every function gets its former body again, also the crashed one. Say it again for the surgery before that.",
        _undo,
        takes_nothing,
        changes=True,
    ),
    Word(
        "patch",
        ("patch", "patch FILE"),
        "print all surgery so far as a diff against the files, or write it to FILE",
        "`git apply` takes it. What has no file stands in it as a comment.",
        _patch,
        no_body,
    ),
)
