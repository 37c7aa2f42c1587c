"""What is the same wherever a person is asked, at a terminal or in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from daifu_bc.frontends import switching
from daifu_bc.frontends.calls import calls
from daifu_bc.frontends.deadline import limited
from daifu_bc.frontends.elsewhere import TAKEN, Others, open_to_others
from daifu_bc.frontends.values import printable
from daifu_bc.recovery import signals
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.turns import turns

#: The word by which somebody acts while another one does.
TAKE: Final = "take"

#: A writer prints a text; the second argument says whether it is ours, and may be coloured.
Writer = Callable[[str, bool], None]


def ask_person(hold: HoldLike, at_prompt: Callable[[HoldLike], None]) -> None:
    """Ask a person, whenever it is this hold's turn, until it is decided.

    Args:
        hold: the hold.
        at_prompt: opens the prompt, unless others have decided before.
    """

    def ask() -> None:
        calls.ask_first(hold)
        if hold.decision is None and turns.goes_on_asking(hold):
            at_prompt(hold)

    with signals.guarded(), limited(hold), open_to_others(), turns.entered(hold, asks=True) as place:
        switching.ask_in_turn(hold, place, ask)


def tell_news(hold: HoldLike, others: Others, write: Writer) -> None:
    """Tell what has happened meanwhile: elsewhere, by signals, and to other holds."""
    for text in (*others.news(), *signals.news(person=True), *switching.news(hold)):
        write(printable(text), True)


def may_act(text: str, others: Others, write: Writer) -> bool:
    """Tell whether what a person has typed is to be run: not while another one acts, but for the word that takes over."""
    if not text.strip() or others.let_act():
        return True
    if text.strip() == TAKE:
        others.take()
        write("You act now.", True)
    else:
        write(TAKEN, True)
    return False
