"""The last will in words: what is to be done before the program ends, in the frame that it has come to."""

from __future__ import annotations

import os
from collections.abc import Sequence

from daifu_bc.errors import UsageError
from daifu_bc.frontends import render
from daifu_bc.frontends.commands import SWITCH, check, run_command
from daifu_bc.frontends.script import Command, ScriptError, parse
from daifu_bc.frontends.values import printable
from daifu_bc.recovery import journal, last_will
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.interrupts import Interruptible, close_to, open_sections
from daifu_bc.recovery.telling import tell


class LastWillError(UsageError):
    """A last will cannot be done as it is written. Mend the words at the line that is named."""

    slug = "last-will"


def prepare() -> None:
    """Read the last will that the environment has, so that its faults are known before the program starts.

    Raises:
        LastWillError: it cannot be read, or has a mistake.
    """
    _words()


def _words() -> Sequence[Command]:
    said = os.environ.get(last_will.VARIABLE, "")
    name = "last will"
    # The program may have changed its directory.
    path = os.path.join(journal.started_in(), said)
    if said and os.path.isfile(path):
        name = said
        if said.endswith(".py"):
            return (Command(1, f"action @{path}"),)
        try:
            with open(path, encoding="utf-8-sig") as file:
                said = file.read()
        except (OSError, ValueError) as error:
            raise LastWillError(f"cannot read the last will {name}: {error}") from None
    try:
        commands = parse(said)
        for command in commands:
            word = check(command)
            if word.decides or word is SWITCH:
                raise LastWillError(
                    f"{name}:{command.line}: `{command.text}` has no place in a last will",
                    why="the program ends after it anyway",
                    remedy="Leave it out.",
                )
    except ScriptError as error:
        raise LastWillError(f"{name}:{error.line}: {error}") from None
    return commands


def perform(hold: HoldLike) -> str:
    """Do it in a hold, telling on standard error what is done.

    Args:
        hold: what there is of the frame; it is decided by nobody.

    Returns:
        Why it could not be done; empty if it was.
    """
    function = last_will.function()
    if function is not None:
        return _call(hold, function)
    try:
        commands = _words()
    except LastWillError as error:
        return str(error)
    for command in commands:
        tell("daifu> " + str(command).replace("\n", "\n...    "))
        answer = run_command(hold, command)
        if answer.text:
            tell(answer.text)
        if answer.failed:
            return printable(answer.failed.rstrip("."))
    return ""


def _call(hold: HoldLike, function: object) -> str:
    assert callable(function)
    sections = open_sections()
    try:
        with Interruptible():
            function(hold)
    except KeyboardInterrupt:
        close_to(sections)
        return "it was interrupted"
    except BaseException as error:  # noqa: BLE001 - the program's handler is next, whatever this has raised
        close_to(sections)
        return render.error(error, known=hold.exception).rstrip(".")
    return ""
