"""What a word at the prompt is; the words themselves are in `deciding` and `looking`."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from daifu_bc.errors import Refusal
from daifu_bc.frontends.script import ScriptError
from daifu_bc.recovery.interface import HoldLike


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked of a word.

    Attributes:
        argument: the rest of its line.
        body: its here-document, None if there is none.
        line: the number of its line in the text that it came from.
        word: the name it was called by.
    """

    argument: str
    body: str | None = None
    line: int = 1
    word: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a word answered.

    Attributes:
        text: what to print; empty if there is nothing to say.
        failed: why it did not do what was asked; empty if it did.
        code: the code that was run or built in, for the journal, if it is not the request's own text.
    """

    text: str
    failed: str = ""
    code: str = ""


def accept_all(_request: Request) -> None:
    """Find nothing wrong with a request."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of the prompt's language; help, completion and the documentation are made from these.

    Attributes:
        name: what is typed.
        usage: all forms of it.
        summary: what it does, in one line.
        details: the longer help.
        run: does it; returns what to print, or raises Refusal.
        check: raises ScriptError if the request cannot be right, whatever hold it meets.
        aliases: other names.
        decides: whether it ends the hold when it succeeds.
        changes: whether it may change where the run goes on, so that this has to be said.
    """

    name: str
    usage: tuple[str, ...]
    summary: str
    details: str
    run: Callable[[HoldLike, Request], Answer | str]
    check: Callable[[Request], None] = accept_all
    aliases: tuple[str, ...] = ()
    decides: bool = False
    changes: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """All names that it goes by."""
        return (self.name, *self.aliases)

    def help(self) -> str:
        """Return the longer help: forms, summary, details."""
        forms = "\n".join(f"  {form}" for form in self.usage)
        also = f" (also: {', '.join(self.aliases)})" if self.aliases else ""
        details = f"\n\n{textwrap.dedent(self.details).strip()}" if self.details else ""
        return f"{forms}\n\n{self.summary}{also}{details}"


def takes_nothing(request: Request) -> None:
    """Check that a word stands alone.

    Raises:
        ScriptError: it does not.
    """
    no_body(request)
    if request.argument:
        raise ScriptError(
            f"`{request.word}` takes nothing after it, here is {request.argument!r};"
            " to run it as Python, write `action` before it",
            request.line,
        )


def no_body(request: Request) -> None:
    """Check that a word has no here-document.

    Raises:
        ScriptError: it has one.
    """
    if request.body is not None:
        raise ScriptError(f"`{request.word}` takes no here-document", request.line)


def whole_number(request: Request, *, what: str, least: int = 0) -> int:
    """Return the number that is a word's argument.

    Raises:
        ScriptError: there is none.
    """
    no_body(request)
    text = request.argument
    # `isdecimal` alone would let digits of other scripts through; they are right for int() too.
    if not text.isdecimal() or int(text) < least:
        raise ScriptError(f"`{request.word}` needs {what}, not {text!r}", request.line)
    return int(text)


def check_python(source: str, *, line: int, mode: str = "exec") -> None:
    """Check that a text is Python.

    Args:
        source: the text.
        line: the line at which it begins in the text that it came from.
        mode: `exec` or `eval`.

    Raises:
        ScriptError: it is not, with the line of the fault.
    """
    try:
        ast.parse(source, mode=mode)
    except SyntaxError as error:
        fault = (error.text or "").strip()
        shown = f": {fault}" if fault else ""
        raise ScriptError(f"this is no Python ({error.msg}){shown}", line + (error.lineno or 1) - 1) from None
    except (ValueError, RecursionError, MemoryError) as error:  # a NUL byte, or brackets without end
        raise ScriptError(f"this is no Python ({type(error).__name__}: {error})", line) from None


def refuse(what: str, remedy: str = "") -> Refusal:
    """Return the refusal to raise when a word cannot do what was asked."""
    return Refusal(what, remedy=remedy)
