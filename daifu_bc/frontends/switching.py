"""The words for several holds at once: which there are, and going to another one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from daifu_bc.frontends import render
from daifu_bc.frontends.calls import calls
from daifu_bc.frontends.log import duration
from daifu_bc.frontends.script import ScriptError
from daifu_bc.frontends.values import printable
from daifu_bc.frontends.width import cut, table, terminal_width
from daifu_bc.frontends.word import Request, Word, takes_nothing, whole_number
from daifu_bc.recovery import journal
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.turns import Place, turns

#: Characters of an exception's text that a list shows.
MOST_TEXT = 50


def news(hold: HoldLike) -> list[str]:
    """Return what has to be told of other holds that have come; each once.

    Args:
        hold: the one that is being answered.
    """
    texts = []
    for place in turns.places():
        if _is_news(place, hold):
            place.told = True
            what = f"thread {printable(place.thread)}, {place.error[0]} at {_where(place)}"
            texts.append(f"hold {place.number} waits: {what}; `hold {place.number}` goes to it")
    return texts


def has_news(hold: HoldLike) -> bool:
    """Tell whether `news` has any."""
    return any(_is_news(place, hold) for place in turns.places())


def _is_news(place: Place, hold: HoldLike) -> bool:
    # Once another hold was chosen, that one does not wait; what is told of the others is told there.
    return place.asks and not place.told and place.number != hold.number and turns.goes_on_asking(hold)


def _holds(hold: HoldLike, _request: Request) -> str:
    now = time.monotonic()
    rows = [
        (
            f"{'>' if place.number == hold.number else ' '} hold {place.number}",
            f"thread {printable(place.thread)}",
            f"{_where(place)}, in {printable(place.function)}",
            f"{described(place.error[0], printable(place.error[1]))}   ({_since(place, now)})",
        )
        for place in turns.places()
    ]
    if not rows:  # it is asked by other ways than the prompt's
        return "No hold waits."
    return columns(rows, terminal_width())


def columns(rows: Sequence[Sequence[str]], room: int | None = None, *, heading: bool = False) -> str:
    """Return rows as lines, see `daifu_bc.frontends.width.table`."""
    return table(rows, room, heading=heading)


def described(kind: str, text: str) -> str:
    """Return an exception in a few words.

    Args:
        kind: its class.
        text: what it says; the first line of that is enough.
    """
    first = text.partition("\n")[0]
    short = cut(first, MOST_TEXT)
    return f"{kind}: {short}" if short else kind


def ask_in_turn(hold: HoldLike, place: Place, ask: Callable[[], None]) -> None:
    """Ask about a hold, whenever it is its turn, until it is decided or is left with another one.

    Args:
        hold: the hold.
        place: its place in the queue.
        ask: asks until it is decided, or the turn goes to another one.
    """
    calls.wake()  # whoever is asked now is to tell of this one
    while (exit_code := turns.wait(place)) is None:
        ask()
        if hold.decision is not None or turns.goes_on_asking(hold):
            return
    hold.leave(exit_code)
    journal.done(hold, "exit", code=str(exit_code), outcome="another hold was left so")


def ended_while(what: str) -> str:
    """Return what is said if the program ends while a daemon thread is held.

    Args:
        what: what was held.
    """
    return (
        f"daifu_bc: the program has ended while {what}: a daemon thread ends with the process."
        " The main thread can wait for it with `join()`."
    )


def _where(place: Place) -> str:
    return f"{render.short_path(place.filename)}:{place.line}"


def _since(place: Place, now: float) -> str:
    inner = turns.inner(place)
    waits = f", waits for hold {inner.number}, which has come of an action here" if inner is not None else ""
    return f"for {duration(now - place.began)}{waits}"


def _check_hold(request: Request) -> None:
    if not request.argument:
        raise ScriptError("`hold` needs the number of a hold; `holds` lists them", request.line)
    whole_number(request, what="the number of a hold", least=1)


def _hold(hold: HoldLike, request: Request) -> str:
    place = turns.pass_on(hold, int(request.argument))
    return f"going to hold {place.number}; hold {hold.number} waits"


WORDS = (
    Word(
        "holds",
        ("holds",),
        "list all holds that are not decided yet, this one marked",
        "Several threads may be held at the same time. The others wait; when this one is decided, the oldest is next.",
        _holds,
        takes_nothing,
    ),
    Word(
        "hold",
        ("hold N",),
        "leave this hold undecided and go to another one",
        "The prompt comes back when that one is decided, or with `hold` and this one's number. Not in a playbook.",
        _hold,
        _check_hold,
    ),
)
