"""The prompt's language: which words there are, and what becomes of a line.

Nothing that is typed ends a hold but a word that decides: everything else that goes wrong is an answer.
"""

from __future__ import annotations

import difflib
import re
import time

from daifu_bc.errors import DaifuError
from daifu_bc.frontends import deciding, editing, listening, looking, render, switching
from daifu_bc.frontends.script import Command, ScriptError, parse, without_here_document
from daifu_bc.frontends.values import printable
from daifu_bc.frontends.word import Answer, Request, Word
from daifu_bc.recovery import journal
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.interrupts import Interruptible, close_to, open_sections


def _check_help(request: Request) -> None:
    if request.body is not None or (request.argument and request.argument not in NAMES):
        near = difflib.get_close_matches(request.argument, NAMES, n=1)
        hint = f"; did you mean `{near[0]}`?" if near else "; `help` lists the words"
        raise ScriptError(f"there is no word `{request.argument}`{hint}", request.line)


def _help(_hold: HoldLike, request: Request) -> str:
    return help_on(request.argument) if request.argument else overview()


HELP = Word(
    "help",
    ("help", "help WORD"),
    "list the words, or explain one",
    "",
    _help,
    _check_help,
)

#: Every word, in the order in which they are listed.
TABLE = (
    *deciding.WORDS[:-1],
    *editing.WORDS,
    *looking.WORDS,
    *switching.WORDS,
    *listening.WORDS,
    HELP,
    deciding.WORDS[-1],
)
NAMES = {name: word for word in TABLE for name in word.names}
ACTION = NAMES["action"]
SURGERY = NAMES["surgery"]
UNDO = NAMES["undo"]
SWITCH = NAMES["hold"]

#: What after a word's name makes the line Python after all: `p = 3`, `c += 1`, `list(x)`, `where.x`, `up: int = 1`.
ASSIGNMENT = re.compile(r"\s*(?:[-+*/%@&|^]|//|\*\*|<<|>>)?=|\s*:")
EXIT_CALL = re.compile(r"exit\(\s*(\d*)\s*\)")


def overview() -> str:
    """Return the list of words with a line for each."""
    width = max(len(word.usage[0]) for word in TABLE)
    lines = [f"  {word.usage[0]:<{width}}  {word.summary}" for word in TABLE]
    ways = "Anything else is run as Python in the selected frame. `help WORD` tells more."
    return "\n".join([*lines, "", ways])


def help_on(name: str) -> str:
    """Return the longer help of a word, by any of its names."""
    return NAMES[name].help()


def documentation() -> str:
    """Return the words as a table in Markdown, for the documentation."""
    rows = ["| word | what it does |", "| --- | --- |"]
    for word in TABLE:
        forms = ", ".join(f"`{form}`" for form in (*word.usage, *word.aliases))
        rows.append(f"| {forms} | {word.summary} |")
    return "\n".join(rows)


def read(command: Command) -> tuple[Word, Request]:
    """Return the word of a command and what is asked of it."""
    text = without_here_document(command.text).strip() if command.body is not None else command.text
    if text.startswith("!"):
        return ACTION, Request(text[1:].strip(), command.body, command.line, "action")
    match = re.match(r"[A-Za-z]+", text)
    name = match.group() if match else ""
    rest = text[len(name) :]
    word = NAMES.get(name)
    call = EXIT_CALL.fullmatch(text)
    if call:
        return NAMES["exit"], Request(call[1], command.body, command.line, "exit")
    # A name goes on until something that is no part of a word: `passed`, `c.x` and `list(x)` are Python.
    if word is None or (rest and not rest[0].isspace()) or ASSIGNMENT.match(rest):
        return ACTION, Request(text, command.body, command.line, "action")
    return word, Request(rest.strip(), command.body, command.line, name)


def check(command: Command) -> Word:
    """Check a command as far as that is possible without a hold, and return its word.

    Raises:
        ScriptError: it can never be right.
    """
    word, request = read(command)
    word.check(request)
    return word


def run_command(hold: HoldLike, command: Command) -> Answer:
    """Run one command against a hold. Whatever goes wrong is an answer; what may change something is journalled."""
    word, request = read(command)
    began = hold.asked = time.monotonic()
    sections = open_sections()
    answer, outcome = _run(hold, word, request)
    close_to(sections)
    if word.decides or word in (ACTION, SURGERY, UNDO):
        decided = word.decides and not answer.failed
        journal.done(
            hold,
            word.name,
            code=answer.code or "\n".join(part for part in (request.argument, request.body) if part),
            seconds=None if decided else time.monotonic() - began,
            outcome=outcome,
            selected=True,
        )
    return _completed(hold, word, request, answer)


def _run(hold: HoldLike, word: Word, request: Request) -> tuple[Answer, str]:
    """Return a word's answer and what the journal says of it, which must not contain values."""
    try:
        word.check(request)
        if word in looking.WORDS:
            # An action marks the part of it that runs the user's code by itself.
            with Interruptible():
                answer = word.run(hold, request)
        else:
            answer = word.run(hold, request)
    except DaifuError as error:
        text = printable(str(error))
        return Answer(text, failed=text), text
    except KeyboardInterrupt:
        return Answer("Interrupted; the hold stays.", failed="interrupted"), "interrupted"
    # Rule 1: a fault of ours is shown, and the person decides what to do about it.
    except Exception as error:  # noqa: BLE001
        text = f"daifu_bc failed inside ({render.error(error)}); the hold stays. Please report it."
        return Answer(text, failed=text), f"daifu_bc failed inside ({type(error).__name__})"
    if isinstance(answer, str):
        answer = Answer(answer)
    return answer, answer.failed or "done"


def _completed(hold: HoldLike, word: Word, request: Request, answer: Answer) -> Answer:
    """Return an answer with what would run next, or with a hint at the word that was meant."""
    parts = [answer.text] if answer.text else []
    if word is ACTION and answer.failed:
        meant = difflib.get_close_matches(request.argument.split(" ")[0], NAMES, n=1, cutoff=0.75)
        if meant and "NameError" in answer.failed and request.argument.split(" ")[0] not in NAMES:
            parts.append(f"Did you mean the word `{meant[0]}`?")
    elif answer.failed or hold.decision is not None:
        pass
    elif word.changes and not (word is ACTION and deciding.only_looks(request)):
        parts.append(_next(hold, answer.text))
    return Answer("\n".join(part for part in parts if part), answer.failed)


def _next(hold: HoldLike, said: str) -> str:
    try:
        text = hold.where_next()
    except Exception:  # noqa: BLE001 - the answer itself is more important than this line
        return ""
    if said.endswith(text):
        return ""
    return f"Next: {text}"


def run_words(hold: HoldLike, text: str) -> str:
    """Run the words of a text, in order, until one decides or fails; return what they answer.

    This is `hold.do`. Several words stand on lines of their own.
    """
    try:
        commands = parse(text)
    except ScriptError as error:
        return str(error)
    answers = []
    for number, command in enumerate(commands, start=1):
        answer = run_command(hold, command)
        if answer.text:
            answers.append(answer.text)
        left = len(commands) - number
        if left and (answer.failed or hold.decision is not None):
            reason = "did not do what was asked" if answer.failed else "has decided"
            answers.append(f"Line {command.line} {reason}; {left} more not run.")
            break
    return "\n".join(answers)
