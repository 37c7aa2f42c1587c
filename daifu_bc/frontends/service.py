"""What the clients of a held run may ask for. More may look, one acts."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from daifu_bc.frontends import protocol, switching
from daifu_bc.frontends.commands import run_command
from daifu_bc.frontends.completion import complete
from daifu_bc.frontends.patience import report_in_time
from daifu_bc.frontends.protocol import Call, FaultyLineError, Object
from daifu_bc.frontends.script import ScriptError
from daifu_bc.frontends.terminal import parse_typed
from daifu_bc.frontends.values import printable
from daifu_bc.frontends.visitor import Visitor
from daifu_bc.recovery import attaching, signals
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.interrupts import close_to, open_sections
from daifu_bc.recovery.turns import Place, turns


@dataclass(slots=True, eq=False)
class _Pending:
    """Words that are being run, and who waits for what they answer."""

    visitor: Visitor
    number: object
    replied: bool = False


class Service:
    """Answers requests.

    Attributes:
        actor: the client that acts.
        pending: words that are being run; more than one if one of them is held in its turn.
        active: when something was last asked for by a person, as `time.monotonic()` tells it.
    """

    def __init__(self) -> None:
        self.actor: Visitor | None = None
        self.pending: list[_Pending] = []
        self.active = time.monotonic()

    def forget_the_gone(self) -> None:
        """A client that has gone does not act any more."""
        if self.actor is not None and not self.actor.open:
            self.actor = None

    def left(self, began: float) -> float | None:
        """Return for how many seconds a hold waits yet; None for no limit.

        Args:
            began: when it began, as `time.monotonic()` tells it.
        """
        limit = attaching.timeout()
        return None if limit is None else max(began, self.active) + limit - time.monotonic()

    def announce(self, hold: HoldLike) -> None:
        """Whoever waits for words that have come to this hold is not to wait until it is decided."""
        for pending in self.pending:
            if not pending.replied:
                pending.replied = True
                text = f"What was typed is held in its turn: hold {hold.number}."
                result = {
                    "text": text,
                    "failed": "held in its turn",
                    "decided": False,
                    "over": True,
                    "hold": hold.number,
                }
                pending.visitor.send(protocol.reply(pending.number, result))

    def answer(self, hold: HoldLike, visitor: Visitor, line: bytes, began: float) -> None:
        """Answer a client's request; whatever it is, the hold stays unless a word decides.

        Args:
            hold: the one that is asked about now.
            visitor: the client.
            line: what it has sent.
            began: when the hold began, as `time.monotonic()` tells it.
        """
        methods: dict[str, Callable[[HoldLike, Visitor, Call], Object | None]] = {
            "status": lambda hold, visitor, _: self._status(hold, visitor, began),
            "report": self._report,
            "complete": self._complete,
            "take": self._take,
            "do": self._do,
        }
        try:
            call = protocol.parse_call(line)
        except FaultyLineError as error:
            visitor.send(protocol.failure(error.number, error.code, str(error)))
            return
        method = methods.get(call.method)
        try:
            if method is None:
                raise FaultyLineError(
                    protocol.NO_METHOD, f"there is no method {call.method!r}; there are {', '.join(methods)}"
                )
            result = method(hold, visitor, call)
        except FaultyLineError as error:
            visitor.send(protocol.failure(call.number, error.code, str(error)))
        # Rule 1: a fault of ours is told, and the hold stays.
        except Exception as error:  # noqa: BLE001
            text = f"daifu_bc failed inside ({type(error).__name__}: {error}); the hold stays"
            visitor.send(protocol.failure(call.number, protocol.FAILED_INSIDE, text))
        else:
            if result is not None:
                visitor.send(protocol.reply(call.number, result))

    def _status(self, hold: HoldLike, visitor: Visitor, began: float) -> Object:
        return {
            "pid": os.getpid(),
            "command": sys.orig_argv,
            "state": "held",
            "hold": hold.number,
            "holds": [_facts(place) for place in turns.places()],
            "seconds_left": self.left(began),
            "acts": "nobody" if self.actor is None else "you" if self.actor is visitor else "another",
        }

    def _report(self, hold: HoldLike, _visitor: Visitor, _call: Call) -> Object:
        self.active = time.monotonic()
        return {"hold": hold.number, "text": report_in_time(hold)}

    def _complete(self, hold: HoldLike, _visitor: Visitor, call: Call) -> Object:
        self.active = time.monotonic()
        length, names = complete(hold, _text(call, "text"))
        return {"length": length, "names": names}

    def _take(self, _hold: HoldLike, visitor: Visitor, _call: Call) -> Object:
        self.active = time.monotonic()
        if self.actor not in (None, visitor):
            self.actor.send(protocol.notice("taken", {}))
        self.actor = visitor
        return {}

    def _do(self, hold: HoldLike, visitor: Visitor, call: Call) -> Object | None:
        words, meant = _text(call, "words"), call.parameters.get("hold", hold.number)
        if meant != hold.number:
            raise FaultyLineError(
                protocol.OTHER_HOLD, f"hold {meant} is not asked about now; hold {hold.number} is"
            )
        if call.parameters.get("take") is True:
            self._take(hold, visitor, call)
        if self.actor not in (None, visitor):
            raise FaultyLineError(protocol.TAKEN, "another client acts; `take` takes over")
        self.actor = visitor
        pending = _Pending(visitor, call.number)
        self.pending.append(pending)
        try:
            text, failed = _run(hold, words)
        finally:
            self.active = time.monotonic()
            if pending in self.pending:  # a forked child has none
                self.pending.remove(pending)
        result: Object = {
            "text": text,
            "failed": failed,
            "decided": hold.decision is not None,
            "over": is_over(hold),
            "hold": hold.number,
        }
        if not pending.replied:
            return result
        visitor.send(protocol.notice("answer", result))
        return None


def is_over(hold: HoldLike) -> bool:
    """Tell whether nothing is asked about a hold now: it is decided, or it is another one's turn."""
    return hold.decision is not None or not turns.goes_on_asking(hold)


def _text(call: Call, name: str) -> str:
    value = call.parameters.get(name)
    if not isinstance(value, str):
        raise FaultyLineError(protocol.WRONG_PARAMETERS, f"`{call.method}` needs `{name}`, a text")
    return value


def _run(hold: HoldLike, words: str) -> tuple[str, str]:
    """Run words until one fails or leaves the hold; what they answer, and why the last one failed."""
    try:
        commands = parse_typed(words)
    except ScriptError as error:
        return str(error), str(error)
    texts, failed, sections = [], "", open_sections()
    for number, command in enumerate(commands, start=1):
        answer = run_command(hold, command)
        close_to(sections)
        failed = answer.failed
        if answer.text:
            texts.append(answer.text)
        if failed or is_over(hold):
            left = len(commands) - number
            if left:
                texts.append(f"{left} more not run.")
                failed = failed or "not all was run"
            break
    texts += [printable(text) for text in (*signals.news(person=True), *switching.news(hold))]
    return "\n".join(texts), failed


def _facts(place: Place) -> Object:
    return {
        "number": place.number,
        "thread": place.thread,
        "file": place.filename,
        "line": place.line,
        "function": place.function,
        "error": {"type": place.error[0], "text": place.error[1]},
        "since": place.since,
    }
