"""Lines typed at a capable terminal: history, completion, editing. Needs prompt_toolkit.

The prompt runs in a thread of its own: the held one may be any thread, and may be inside an event loop.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Iterable
from typing import Literal

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from daifu_bc.frontends.completion import Offers
from daifu_bc.frontends.reader import TerminalGoneError
from daifu_bc.recovery.private import opened, prepare_state_directory

Ending = Literal["line", "interrupt", "end", "failed"]


class GuardedHistory(FileHistory):
    """A history file that may be damaged, or become unwritable, without the prompt's feeling it."""

    def load_history_strings(self) -> Iterable[str]:
        """Return the lines typed before, newest first."""
        try:
            return super().load_history_strings()
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        """Write a line to the file."""
        try:
            super().store_string(string)
        except OSError:
            pass


class HoldCompleter(Completer):
    """Completion for one hold."""

    def __init__(self, offers: Offers) -> None:
        self.offers: Offers | None = offers

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002
        """Yield what could stand before the cursor."""
        if self.offers is None:
            return
        length, names = self.offers(document.text_before_cursor)
        for name in names:
            yield Completion(name, start_position=-length)


class PromptReader:
    """Reads lines for one hold by prompt_toolkit."""

    def __init__(self, offers: Offers, *, colours: bool) -> None:
        if sys.__stdin__ is None or sys.__stderr__ is None:
            raise TerminalGoneError
        self._completer = HoldCompleter(offers)
        self._session: PromptSession[str] = PromptSession(
            history=history(),
            completer=self._completer,
            complete_while_typing=False,
            # Asking the terminal for the cursor's place disturbs terminals that do not answer.
            output=Vt100_Output(sys.__stderr__, terminal_size, os.environ.get("TERM"), enable_cpr=False),
            input=create_input(sys.__stdin__),
            color_depth=None if colours else ColorDepth.DEPTH_1_BIT,
            reserve_space_for_menu=4,
        )

    def read(self, prompt: str) -> str:
        """Return a line; see `daifu_bc.frontends.reader.Reader`."""
        results: queue.SimpleQueue[tuple[Ending, str]] = queue.SimpleQueue()
        thread = threading.Thread(target=self._ask, args=(prompt, results), name="daifu prompt", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # there is no memory for it; the plain prompt needs none
            raise OSError(str(error)) from None
        try:
            ending, text = self._wait(results)
        finally:
            self._stop(thread)
        if ending == "interrupt":
            raise KeyboardInterrupt
        if ending == "end":
            if not os.isatty(self._session.input.fileno()):
                raise TerminalGoneError
            raise EOFError
        if ending == "failed":
            raise OSError(text)
        return text

    def _ask(self, prompt: str, results: queue.SimpleQueue[tuple[Ending, str]]) -> None:
        try:
            text = self._session.prompt(FormattedText([("bold", prompt)]), handle_sigint=False)
        except KeyboardInterrupt:
            results.put(("interrupt", ""))
        except EOFError:
            results.put(("end", ""))
        # Without prompt_toolkit the plain prompt is still there.
        except BaseException as error:  # noqa: BLE001
            results.put(("failed", f"{type(error).__name__}: {error}"))
        else:
            results.put(("line", text))

    def _wait(self, results: queue.SimpleQueue[tuple[Ending, str]]) -> tuple[Ending, str]:
        # Not by joining the thread: an interrupted join takes a running thread for ended on some versions.
        while True:
            try:
                return results.get()
            except KeyboardInterrupt:  # a signal from outside; Ctrl-C is only a key here
                self._exit()

    def _exit(self) -> None:
        application = self._session.app
        loop = application.loop
        if loop is not None and application.is_running:
            loop.call_soon_threadsafe(lambda: application.exit(exception=KeyboardInterrupt()))

    def _stop(self, thread: threading.Thread) -> None:
        """End the prompt if a signal's handler raised meanwhile; the terminal is to be left as it was."""
        try:
            if self._session.app.is_running:
                self._exit()
        except Exception:  # noqa: BLE001 - it may have ended in this very moment
            pass
        thread.join(timeout=5)

    def close(self) -> None:
        """Let go of the hold: the prompt's objects refer to each other and may live on for a while."""
        self._completer.offers = None


def terminal_size() -> Size:
    """Return the terminal's size; one that does not know it is taken for a usual one."""
    try:
        columns, rows = os.get_terminal_size(sys.__stderr__.fileno() if sys.__stderr__ else 2)
    except OSError:
        columns, rows = 0, 0
    return Size(rows=rows or 24, columns=columns or 80)


def history() -> History:
    """Return the history in the user's state directory; if that cannot be, one that is forgotten."""
    try:
        name = os.path.join(prepare_state_directory(), "history")
        os.close(opened(name, os.O_RDWR))
    except OSError:
        return InMemoryHistory()
    return GuardedHistory(name)
