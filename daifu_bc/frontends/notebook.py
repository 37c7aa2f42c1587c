"""A person at a notebook answers a hold, in the input line of the cell that has crashed."""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Sequence
from typing import Any, Final, TextIO

from daifu_bc.frontends import terminal
from daifu_bc.frontends.asking import ask_person, may_act, tell_news
from daifu_bc.frontends.calls import calls
from daifu_bc.frontends.elsewhere import Others
from daifu_bc.frontends.input_line import InputLine
from daifu_bc.frontends.reader import BrokenOffError, TerminalGoneError
from daifu_bc.frontends.typed import read_text
from daifu_bc.recovery import journal, signals
from daifu_bc.recovery.interface import HoldLike, Responder
from daifu_bc.recovery.interrupts import Interruptible, close_to, open_sections
from daifu_bc.recovery.telling import tell
from daifu_bc.recovery.turns import Place, turns

INTERRUPTED: Final = (
    "Interrupted; the run is still held. Interrupt once more to let the exception go on, or type `raise`."
)

#: The styles of `terminal.STYLES` as a notebook's output understands them.
_COLOURS: Final = {
    "bold cyan": "1;36",
    "bold yellow": "1;33",
    "cyan": "36",
    "green": "32",
    "bold red": "1;31",
}


#: The kernel whose cells are vaccinated.
_kernels: Final[list[Any]] = []
#: Where the cells' output goes, whatever a program, or `%%capture`, makes of `sys.stdout`.
_streams: Final[list[TextIO]] = []


def use(kernel: Any | None) -> None:
    """Ask in the cells of this kernel from now on; None for in none."""
    _kernels[:] = [] if kernel is None else [kernel]
    _streams[:] = [] if kernel is None else [sys.stdout]


def responder() -> Responder:
    """Return what asks the person at the notebook."""
    return answer


def answer(hold: HoldLike) -> None:
    """Ask the person, whenever it is this hold's turn, until it is decided."""
    ask_person(hold, _at_prompt)


def _at_prompt(hold: HoldLike) -> None:
    if not _kernels:
        return
    with signals.person_is_asked(), (others := Others(hold)).served():
        terminal.flush_program_output()
        terminal.begin(hold, write)
        reader = InputLine(_kernels[0], others.wait)
        try:
            _ask(hold, others, reader)
        finally:
            reader.close()


def _ask(hold: HoldLike, others: Others, reader: InputLine) -> None:
    sections, begun, broken, patience = open_sections(), "", False, True
    while hold.decision is None and turns.goes_on_asking(hold):
        waits = False
        try:
            if broken:
                broken = False
                others.attend()
                continue
            tell_news(hold, others, write)
            waits = True
            with signals.person_is_waited_for(), Interruptible():
                text = read_text(reader, begun)
            waits, patience, begun = False, True, ""
            if may_act(text, others, write):
                with others.minded():
                    terminal.run_text(hold, text, write)
        except BrokenOffError as error:
            close_to(sections)
            begun, broken = error.begun, True
        except KeyboardInterrupt:
            close_to(sections)
            begun = ""
            reader.forget()
            if waits and not patience:
                _give_up(hold, "interrupted twice")
            elif waits:
                patience = False
                write(INTERRUPTED, True)
        except EOFError:
            write(terminal.KEPT, True)
        except TerminalGoneError as gone:
            write(f"Nobody can be asked any more ({gone.__cause__}); the exception goes on.", True)
            _give_up(hold, "the notebook takes no input")
    tell_news(hold, others, write)


def _give_up(hold: HoldLike, outcome: str) -> None:
    hold.let_go()
    journal.done(hold, "raise", outcome=outcome)


def write(text: str, ours: bool) -> None:
    """Print a text to the cell's output.

    Args:
        text: it.
        ours: whether it may be coloured.
    """
    if ours and not terminal.no_colours():
        text = "\n".join(map(_coloured, text.split("\n")))
    try:
        for stream in _streams:
            stream.write(f"{text}\n")
            stream.flush()
    except Exception:  # noqa: BLE001 - it is closed, say
        tell(text)


def _coloured(line: str) -> str:
    colour = _COLOURS.get(terminal.style(line))
    return line if colour is None else f"\x1b[{colour}m{line}\x1b[0m"


def wait_for_threads(cells: Container[int]) -> None:
    """Wait, at the end of a cell, for threads of the notebook that are held and ask in it.

    Args:
        cells: the numbers of the threads that run cells.
    """

    def none_is_left(places: Sequence[Place]) -> bool:
        return not any(place.asks and place.ident not in cells for place in places)

    while not none_is_left(turns.places()):
        try:
            turns.wait_until(none_is_left)
        except KeyboardInterrupt:  # it is meant for what waits
            signals.interrupt(turns.asking(0))
            calls.wake()  # it waits in the system


def takes_input(kernel: Any) -> bool:
    """Tell whether the front end that runs the present cell has a line for input: nbconvert and papermill have none."""
    if os.getpid() != _process:  # a forked child has no cell of its own
        return False
    parent = kernel.get_parent("shell")
    return bool(parent) and bool(parent.get("content", {}).get("allow_stdin"))


_process: Final = os.getpid()
