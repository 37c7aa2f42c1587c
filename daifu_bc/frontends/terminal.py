"""A person at a terminal answers a hold.

With prompt_toolkit and rich there are editing, completion and colours; without them, or at a terminal that can do
nothing, it is plain text.
"""

from __future__ import annotations

import functools
import os
import re
import sys

from daifu_bc.frontends import render
from daifu_bc.frontends.asking import Writer, ask_person, may_act, tell_news
from daifu_bc.frontends.commands import ACTION, read, run_command
from daifu_bc.frontends.completion import Offers, complete
from daifu_bc.frontends.elsewhere import Others
from daifu_bc.frontends.keyboard import TypedAhead, ctrl_c_interrupts, ctrl_c_is_a_key, kept, left_in_order
from daifu_bc.frontends.reader import BrokenOffError, PlainReader, Reader, TerminalGoneError, Wait
from daifu_bc.frontends.script import ScriptError
from daifu_bc.frontends.typed import parse_typed, read_text
from daifu_bc.frontends.values import printable
from daifu_bc.recovery import attaching, journal, signals
from daifu_bc.recovery.interface import HoldLike, Responder
from daifu_bc.recovery.interrupts import Interruptible, close_to, open_sections
from daifu_bc.recovery.telling import tell
from daifu_bc.recovery.turns import turns

KEPT = "The run is still held. Type `raise` to let the exception go on, or `exit` to end the program."
WELCOME = "`help` lists the words; `pass` runs the statement again, `raise` lets the exception go on."

#: Lines of a report, and how they are shown.
STYLES = (
    (re.compile(r"-- daifu: .*"), "bold cyan"),
    (re.compile(r"> .*"), "bold yellow"),
    (re.compile(r"(?:Values|Frames):"), "cyan"),
    (re.compile(r"(?:Held|Next|Again|Ranks): .*"), "green"),
    (re.compile(r"[\w.]*(?:Error|Exception|Interrupt|Warning|Exit)\b.*"), "bold red"),
)


def responder() -> Responder:
    """Return what asks the person at the terminal."""
    return answer


def answer(hold: HoldLike) -> None:
    """Ask the person, whenever it is this hold's turn, until it is decided."""
    ask_person(hold, _at_prompt)


def _at_prompt(hold: HoldLike) -> None:
    held = next((frame for frame in hold.frames if frame.held), hold.selected)
    place = f"thread {printable(hold.thread_name)} ({render.place(held)})"
    with (
        signals.person_is_asked(),
        left_in_order(place, capable=capable()),
        # For the moments between what is typed and what runs, in which nobody looks at the keyboard.
        ctrl_c_is_a_key(),
        (others := Others(hold)).served(),
    ):
        _ask(hold, others)


def _ask(hold: HoldLike, others: Others) -> None:
    flush_program_output()
    write = writer()
    reader = TypedAhead(make_reader(functools.partial(complete, hold), others.wait))
    sections, begun, broken = open_sections(), "", False
    try:
        with ctrl_c_interrupts(reader):
            begin(hold, write)
        while hold.decision is None and turns.goes_on_asking(hold):
            try:
                if broken:
                    broken = False
                    with ctrl_c_interrupts(reader):
                        others.attend()
                    continue
                tell_news(hold, others, write)
                with kept(), signals.person_is_waited_for():
                    text = read_text(reader, begun)
                begun = ""
                if may_act(text, others, write):
                    with ctrl_c_interrupts(reader), others.minded():
                        run_text(hold, text, write)
            except BrokenOffError as error:
                close_to(sections)
                begun, broken = error.begun, True
            except KeyboardInterrupt:
                close_to(sections)
                begun = ""
            except EOFError:
                write(KEPT, True)
            except TerminalGoneError:
                # As without a terminal from now on: who attaches is waited for, or the exception goes on.
                if not attaching.wanted():
                    hold.let_go()
                    journal.done(hold, "raise", outcome="the terminal is gone")
                return
            except Exception as error:  # noqa: BLE001 - the comfortable prompt failed; the plain one is left
                write(f"The prompt failed ({error}); it goes on in plain text.", False)
                reader.close()
                reader = TypedAhead(PlainReader(others.wait))
        for text in others.news():
            write(printable(text), True)
    finally:
        reader.close()
        if not turns.someone_waits():
            reader.lines.clear()


def begin(hold: HoldLike, write: Writer) -> None:
    """Show the report. A repr that takes for ever can be interrupted."""
    try:
        with Interruptible():
            text = render.report(hold)
    except KeyboardInterrupt:
        text = render.error(hold.exception)
    write("\n" + text, True)
    write(WELCOME, True)


def flush_program_output() -> None:
    """Let what the program has printed stand before the report."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: BLE001 - closed, broken, or of the program's own making
            continue


def run_text(hold: HoldLike, text: str, write: Writer) -> None:
    """Run what was typed and show the answers."""
    try:
        commands = parse_typed(text)
    except ScriptError as error:
        write(str(error), True)
        return
    for command in commands:
        reply = run_command(hold, command)
        if reply.text:
            # What the program printed is not ours to colour.
            write(reply.text, read(command)[0] is not ACTION)
        if reply.failed or hold.decision is not None:
            return


def make_reader(offers: Offers, wait: Wait) -> Reader:
    """Return the best reader that this terminal and this installation allow.

    Args:
        offers: what the Tab key offers, see `daifu_bc.frontends.completion.complete`.
        wait: waits for what is typed, and may break the prompt off.
    """
    if capable():
        try:
            from daifu_bc.frontends.prompt import PromptReader

            return PromptReader(offers, colours=not no_colours(), wait=wait)
        # Not installed, or too old, or not at ease here: the plain one always works.
        except Exception:  # noqa: BLE001
            pass
    return PlainReader(wait)


def writer() -> Writer:
    """Return the best writer that this terminal and this installation allow."""
    if capable() and not no_colours():
        try:
            from rich.console import Console
            from rich.text import Text

            console = Console(file=sys.__stderr__, soft_wrap=True, highlight=False, markup=False, emoji=False)
        except Exception:  # noqa: BLE001 - not installed
            return write_plain

        def write(text: str, ours: bool) -> None:
            try:
                console.print(
                    Text("\n").join(Text(line, style(line) if ours else "") for line in text.split("\n"))
                )
            except (OSError, ValueError):  # the terminal is gone; the reader will find out
                pass

        return write
    return write_plain


def write_plain(text: str, _ours: bool) -> None:
    """Print a text as it is."""
    tell(text)  # if the terminal is gone, the reader will find out


def style(line: str) -> str:
    """Return the style of a line of ours."""
    return next((name for pattern, name in STYLES if pattern.fullmatch(line)), "")


def capable() -> bool:
    """Tell whether the terminal can move its cursor."""
    return os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def no_colours() -> bool:
    """Tell whether colours are not wanted (https://no-color.org)."""
    return bool(os.environ.get("NO_COLOR"))
