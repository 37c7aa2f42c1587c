"""The word `debug`: a debugger is listened for, and told where."""

from __future__ import annotations

from typing import Final

from daifu_bc.frontends.word import Request, Word, refuse, takes_nothing
from daifu_bc.integrations.debugpy import Listener, listen
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.turns import turns


def _debug(hold: HoldLike, _request: Request) -> str:
    if not any(place.number == hold.number and place.asks for place in turns.places()):
        raise refuse("nobody is asked here who could look into a debugger", "Leave `debug` to a prompt.")
    return sentence(listen())


def sentence(listener: Listener) -> str:
    """Return the lines that say where a debugger may attach."""
    token = f'In the attach configuration write "daifuToken": "{listener.token}".\n' if listener.token else ""
    return f"{token}Debugger listens at {listener}."


WORDS: Final = (
    Word(
        "debug",
        ("debug",),
        "let VS Code, or another debugger, attach to this hold",
        """
        Starts debugpy and tells where it listens: by `--debugpy`, else at a free port of this machine. As soon as an
        editor has attached there, it stops at the held line, and this prompt waits until it has decided or has left.
        Needs the extra: pip install 'daifu_bc[debugpy]'. Not in a playbook.
        """,
        _debug,
        takes_nothing,
    ),
)
