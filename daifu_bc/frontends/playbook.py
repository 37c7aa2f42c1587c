"""Playbooks: the words of the prompt from a file, one block for each hold.

    # in the second hold, give up
    action batch = batch[:16]
    pass
    ---
    raise

A block that begins with a line `repeat 5` answers five holds, one with `repeat` all that come, but for those that
unchanged retries bring again and again.

A block that ends without a decision, a word that fails, a hold for which no block is left: the exception goes on.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from daifu_bc.errors import DaifuError, UsageError
from daifu_bc.frontends.commands import SWITCH, check, run_command
from daifu_bc.frontends.patience import report_in_time
from daifu_bc.frontends.script import Command, ScriptError, parse_blocks
from daifu_bc.recovery import journal, signals
from daifu_bc.recovery.interface import HoldLike, Responder
from daifu_bc.recovery.repetition import VARIABLE, limit
from daifu_bc.recovery.telling import tell
from daifu_bc.recovery.turns import turns

#: The line at the beginning of a block that answers several holds.
REPEAT = re.compile(r"repeat(?:\s+(\d+))?")
#: What is meant as one, and is none: `repeat -1`, `repeat five`.
_WRONG_REPEAT = re.compile(r"repeat\s+([+-]?[\w.]+)")


class PlaybookError(UsageError):
    """A playbook cannot be read or has a mistake in it. Mend the file at the line that is named."""

    slug = "playbook"


@dataclass(slots=True)
class Playbook:
    """A playbook and how far it has been played.

    Attributes:
        name: the file it came from.
        blocks: what to do at each hold.
        times: how many holds each block answers; None for all that come.
    """

    name: str
    blocks: Sequence[Sequence[Command]]
    times: Sequence[int | None]
    # Threads that are held at the same time get a block each: a counter's step is atomic.
    _counter: Iterator[int] = field(default_factory=itertools.count)

    def responder(self, hold: HoldLike) -> None:
        """Answer a hold with the next block, telling on stderr what is done and what comes of it."""
        with signals.guarded(), turns.entered(hold, asks=False):
            self._answer(hold, next(self._counter))

    def _answer(self, hold: HoldLike, number: int) -> None:
        tell(report_in_time(hold))
        _tell_news()
        block, endless = self._block_for(number)
        outcome = "the playbook has come to no decision"
        most = limit()
        if not block:
            tell(f"The playbook {self.name} has no block for this hold ({len(self.blocks)} in all).")
        elif endless and most is not None and hold.repetition.again >= most:
            outcome = f"{most} retries in a row have changed nothing"
            tell(
                f"{outcome}, so the block of line {block[0].line} is not repeated. The exception goes on."
                f" (`repeat NUMBER`, --retry-limit or {VARIABLE} allow more.)"
            )
        else:
            problem = self._play(hold, block)
            if problem:
                tell(problem)
        if hold.decision is None:
            tell(hold.let_go())
            journal.done(hold, "raise", outcome=outcome)
        _tell_news()
        self._end_if_asked_to(hold)

    def _block_for(self, number: int) -> tuple[Sequence[Command], bool]:
        """Return the block for a hold, empty if there is none, and whether it answers all that come."""
        for block, times in zip(self.blocks, self.times, strict=True):
            if times is None:
                return block, True
            if number < times:
                return block, False
            number -= times
        return (), False

    def _end_if_asked_to(self, hold: HoldLike) -> None:
        """Let go on what a signal's handler has raised to end the program: nobody else is asked."""
        name = signals.request_to_end()
        if not name:
            return
        try:
            tell(hold.let_go(name))
            journal.done(hold, "raise", code=name, outcome="a signal asks the program to end")
        except DaifuError as refusal:
            tell(f"{name} cannot go on here: {refusal}")

    def _play(self, hold: HoldLike, block: Sequence[Command]) -> str:
        """Run a block's words; return why it came to no decision, or an empty text."""
        line = 0
        for command in block:
            line = command.line
            tell("daifu> " + str(command).replace("\n", "\n...    "))
            answer = run_command(hold, command)
            if answer.text:
                tell(answer.text)
            _tell_news()
            if hold.decision is not None:
                return ""
            if answer.failed:
                return f"{self.name}:{line}: {answer.failed.rstrip('.')}. The exception goes on."
        return f"{self.name}:{line}: the block ends without a decision. The exception goes on."


def load(name: str) -> Playbook:
    """Read a playbook and check all of it.

    Raises:
        PlaybookError: it cannot be read, or it has a mistake; all of them are told, each with its line.
    """
    try:
        with open(name, encoding="utf-8-sig") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise PlaybookError(f"cannot read the playbook {name}: {reason}") from None
    return parse_playbook(text, name)


def parse_playbook(text: str, name: str = "<playbook>") -> Playbook:
    """Return the playbook that a text is.

    Raises:
        PlaybookError: it has a mistake; all of them are told, each with its line.
    """
    try:
        blocks = parse_blocks(text)
    except ScriptError as error:
        raise PlaybookError(f"{name}:{error.line}: {error}") from None
    # A comment at the beginning or a separator at the end makes no block.
    while blocks and not blocks[-1]:
        blocks.pop()
    while blocks and not blocks[0]:
        blocks.pop(0)
    mistakes = []
    times: list[int | None] = []
    for number, block in enumerate(blocks):
        found = REPEAT.fullmatch(block[0].text) if block and block[0].body is None else None
        times.append(int(found[1]) if found and found[1] else None if found else 1)
        if found:
            line = block.pop(0).line
            if times[-1] == 0:
                mistakes.append(f"{name}:{line}: a block cannot answer no hold; leave it out")
            if times[-1] is None and number + 1 < len(blocks):
                mistakes.append(
                    f"{name}:{line}: the blocks after this one are never reached; write `repeat NUMBER`"
                )
            if not block:
                mistakes.append(f"{name}:{line}: there is nothing in the block that is repeated")
                continue
        if not block:
            # The line is that of the block before: an empty one has none of its own.
            before = blocks[number - 1]
            line = before[-1].line if before else 1
            mistakes.append(
                f"{name}:{line}: the block after this line is empty;"
                " write `raise` in it to let the exception go on"
            )
        mistakes += _mistakes(block, name)
    if mistakes:
        raise PlaybookError("\n".join(mistakes))
    return Playbook(name, blocks, times)


def _mistakes(block: Sequence[Command], name: str) -> list[str]:
    found = []
    for number, command in enumerate(block):
        if REPEAT.fullmatch(command.text):
            found.append(f"{name}:{command.line}: `{command.text}` stands at the beginning of a block")
            continue
        wrong = _WRONG_REPEAT.fullmatch(command.text)
        if wrong:
            found.append(
                f"{name}:{command.line}: `repeat` takes how many holds the block answers, not {wrong[1]!r};"
                " alone, it answers all that come"
            )
            continue
        try:
            word = check(command)
        except ScriptError as error:
            found.append(f"{name}:{error.line}: {error}")
            continue
        if word is SWITCH:
            found.append(
                f"{name}:{command.line}: `{command.text}` is for a person;"
                " a playbook answers each hold in the order of their arrival"
            )
        if word.decides and number + 1 < len(block):
            found.append(
                f"{name}:{block[number + 1].line}: this is never reached, `{word.name}` in line {command.line}"
                " ends the hold; a line --- begins the block of the next hold"
            )
            break
    return found


def from_file(name: str) -> Responder:
    """Return the responder of the playbook in a file.

    Raises:
        PlaybookError: see `load`.
    """
    return load(os.path.expanduser(name)).responder


def _tell_news() -> None:
    for text in signals.news(person=False):
        tell(text)
