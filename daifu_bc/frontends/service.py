"""What the clients of a held run may ask for. More may look, one acts."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from daifu_bc.frontends import protocol, switching
from daifu_bc.frontends.calls import calls
from daifu_bc.frontends.commands import run_command
from daifu_bc.frontends.completion import complete
from daifu_bc.frontends.patience import report_in_time
from daifu_bc.frontends.protocol import Call, FaultyLineError, Object
from daifu_bc.frontends.script import ScriptError
from daifu_bc.frontends.typed import parse_typed
from daifu_bc.frontends.values import printable
from daifu_bc.frontends.visitor import Visitor
from daifu_bc.recovery import attaching, signals
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.interrupts import close_to, open_sections
from daifu_bc.recovery.output import told_while_it_runs
from daifu_bc.recovery.turns import facts, turns

#: What runs words, and so needs the held thread for as long as it takes.
WORDS: Final = "do"
#: What is answered while words run.
WHILE_BUSY: Final = frozenset({"status", "take", "interrupt"})
#: What is answered while a person at the terminal is asked.
LOOKING: Final = WHILE_BUSY | {"report", "complete"}
METHODS: Final = LOOKING | {WORDS}
#: Words of clients that are kept for the person at the terminal.
_MANY: Final = 20
#: Seconds for which it is tried to interrupt what runs.
_TRYING: Final = 1.0
_PAUSE: Final = 0.001


class Actor(Protocol):
    """Who acts: a client, or the person at the terminal."""

    @property
    def open(self) -> bool:
        """Whether it is still there."""

    def overtaken(self) -> None:
        """Another one acts from now on."""


@dataclass(slots=True, eq=False)
class _Pending:
    """Words that are being run, and who waits for what they answer."""

    visitor: Visitor
    number: object
    thread: int
    replied: bool = False
    interrupted: bool = False


class Service:
    """Answers requests.

    Args:
        minded: opens what looks after the clients while the thread of a hold is busy.

    Attributes:
        actor: the client that acts.
        pending: words that are being run; more than one if one of them is held in its turn.
        active: when something was last asked for by a person, as `time.monotonic()` tells it.
        done: what clients have typed, for the person at the terminal.
    """

    def __init__(self, minded: Callable[[HoldLike], AbstractContextManager[None]] | None = None) -> None:
        self._minded = minded or (lambda _hold: contextlib.nullcontext())
        self.actor: Actor | None = None
        self.pending: list[_Pending] = []
        self.done: deque[str] = deque(maxlen=_MANY)
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

    def answer(
        self, hold: HoldLike, visitor: Visitor, request: Call | FaultyLineError, left: float | None
    ) -> None:
        """Answer a client's request; whatever it is, the hold stays unless a word decides.

        Args:
            hold: the one that is asked about now.
            visitor: the client.
            request: what it has sent.
            left: for how many seconds the hold waits yet; None for no limit.
        """
        if isinstance(request, FaultyLineError):
            visitor.send(protocol.failure(request.number, request.code, str(request)))
            return
        methods: dict[str, Callable[[HoldLike, Visitor, Call], Object | None]] = {
            "status": lambda hold, visitor, _: self._status(hold, visitor, left),
            "report": self._report,
            "complete": self._complete,
            "take": self._take,
            "interrupt": self._interrupt,
            WORDS: self._do,
        }
        method = methods.get(request.method)
        try:
            if method is None:
                raise FaultyLineError(
                    protocol.NO_METHOD,
                    f"there is no method {request.method!r}; there are {', '.join(methods)}",
                )
            result = method(hold, visitor, request)
        except FaultyLineError as error:
            visitor.send(protocol.failure(request.number, error.code, str(error)))
        # Rule 1: a fault of ours is told, and the hold stays.
        except Exception as error:  # noqa: BLE001
            text = f"daifu_bc failed inside ({type(error).__name__}: {error}); the hold stays"
            visitor.send(protocol.failure(request.number, protocol.FAILED_INSIDE, text))
        else:
            if result is not None:
                visitor.send(protocol.reply(request.number, result))

    def _status(self, hold: HoldLike, visitor: Visitor, left: float | None) -> Object:
        return {
            "pid": os.getpid(),
            "command": sys.orig_argv,
            "state": "held",
            "hold": hold.number,
            "holds": [facts(place) for place in turns.places()],
            "busy": bool(self.pending),
            "seconds_left": left,
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
        self.acts(visitor)
        return {}

    def acts(self, actor: Actor) -> None:
        """Let somebody act from now on."""
        before, self.actor = self.actor, actor
        if before is not None and before is not actor:
            before.overtaken()

    def may_act(self, actor: Actor) -> bool:
        """Tell whether somebody acts, or may begin to."""
        return self.actor is None or self.actor is actor

    def _interrupt(self, _hold: HoldLike, visitor: Visitor, _call: Call) -> Object:
        """In another thread than the held one, if that is busy."""
        self.active = time.monotonic()
        self._must_act(visitor)
        if not self.pending:
            return {"interrupted": False}
        busy = self.pending[-1]
        if busy.interrupted and turns.move_on():
            return {"interrupted": True}  # it waits in C, maybe for a thread that is held
        busy.interrupted = True
        deadline = time.monotonic() + _TRYING
        # Between two of its words, say, it may not be interrupted.
        while not (done := signals.interrupt(busy.thread)) and time.monotonic() < deadline:
            if busy not in self.pending:
                break
            time.sleep(_PAUSE)
        return {"interrupted": done}

    def _must_act(self, visitor: Visitor) -> None:
        if not self.may_act(visitor):
            raise FaultyLineError(protocol.TAKEN, "another client acts; `take` takes over")

    def _do(self, hold: HoldLike, visitor: Visitor, call: Call) -> Object | None:
        words, meant = _text(call, "words"), call.parameters.get("hold", hold.number)
        if meant != hold.number:
            raise FaultyLineError(
                protocol.OTHER_HOLD, f"hold {meant} is not asked about now; hold {hold.number} is"
            )
        if call.parameters.get("take") is True:
            self._take(hold, visitor, call)
        self._must_act(visitor)
        self.actor = visitor
        pending = _Pending(visitor, call.number, threading.get_ident())
        number = call.number

        def send(part: str) -> None:
            visitor.print(number, part)
            calls.wake()

        self.pending.append(pending)
        self.done.append(words)
        try:
            with (
                self._minded(hold),
                told_while_it_runs(send if call.parameters.get("stream") is True else None),
            ):
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
