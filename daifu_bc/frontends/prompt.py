"""Lines typed at a capable terminal: history, completion, editing. Needs prompt_toolkit.

The prompt runs in a thread of its own: the held one may be any thread, and may be inside an event loop.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
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
from daifu_bc.frontends.reader import BrokenOffError, TerminalGoneError, Wait
from daifu_bc.recovery.interrupts import undisturbed
from daifu_bc.recovery.private import opened, prepare_state_directory

Ending = Literal["line", "interrupt", "end", "broken off", "failed"]
#: Seconds after which it is looked again for a prompt that is about to begin.
_PAUSE = 0.005


class Results:
    """How a prompt has ended, for the thread that waits for it.

    Args:
        with_pipe: whether there is to be a file descriptor to wait for.

    Attributes:
        descriptor: it can be read when the prompt has ended; -1 if there is none.
    """

    def __init__(self, *, with_pipe: bool) -> None:
        self._queue: queue.SimpleQueue[tuple[Ending, str]] = queue.SimpleQueue()
        self.descriptor = self._end = -1
        if with_pipe:
            with contextlib.suppress(OSError):  # none is left: then nothing else is waited for
                self.descriptor, self._end = os.pipe()

    def put(self, ending: Ending, text: str = "") -> None:
        """Tell how it has ended."""
        self._queue.put((ending, text))
        if self._end >= 0:
            with contextlib.suppress(OSError):
                os.write(self._end, b"x")

    @property
    def any(self) -> bool:
        """Whether it has ended."""
        return not self._queue.empty()

    def get(self) -> tuple[Ending, str]:
        """Wait until it has ended, and return how."""
        return self._queue.get()

    def close(self) -> None:
        """Close the file descriptors."""
        for end in (self.descriptor, self._end):
            if end >= 0:
                os.close(end)
        self.descriptor = self._end = -1


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
    """Reads lines for one hold by prompt_toolkit.

    Args:
        offers: what the Tab key offers.
        colours: whether there may be some.
        wait: waits for what is typed; if it is left out, nothing else is waited for.
    """

    def __init__(self, offers: Offers, *, colours: bool, wait: Wait | None = None) -> None:
        if sys.__stdin__ is None or sys.__stderr__ is None:
            raise TerminalGoneError
        self._completer = HoldCompleter(offers)
        self._wait_for = wait
        #: What had been typed when the prompt was broken off.
        self._begun: Document | None = None
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
        results = Results(with_pipe=self._wait_for is not None)
        thread = threading.Thread(target=self._ask, args=(prompt, results), name="daifu prompt", daemon=True)
        try:
            # Half started, it would ask on its own.
            with undisturbed():
                thread.start()
            ending, text = self._wait(results)
        except RuntimeError as error:  # there is no memory for it; the plain prompt needs none
            raise OSError(str(error)) from None
        finally:
            with undisturbed():
                self._stop(thread)
                results.close()
        if ending == "broken off":
            raise BrokenOffError
        if ending == "interrupt":
            raise KeyboardInterrupt
        if ending == "end":
            if not os.isatty(self._session.input.fileno()):
                raise TerminalGoneError
            raise EOFError
        if ending == "failed":
            raise OSError(text)
        return text

    def _ask(self, prompt: str, results: Results) -> None:
        begun, self._begun = self._begun or Document(), None
        self._session.app.erase_when_done = False
        try:
            text = self._session.prompt(FormattedText([("bold", prompt)]), default=begun, handle_sigint=False)
        except KeyboardInterrupt:
            results.put("interrupt")
        except EOFError:
            results.put("end")
        except BrokenOffError:
            self._begun = self._session.default_buffer.document
            results.put("broken off")
        # Without prompt_toolkit the plain prompt is still there.
        except BaseException as error:  # noqa: BLE001
            results.put("failed", f"{type(error).__name__}: {error}")
        else:
            results.put("line", text)

    def _wait(self, results: Results) -> tuple[Ending, str]:
        # Not by joining the thread: an interrupted join takes a running thread for ended on some versions.
        while True:
            try:
                if self._wait_for is not None and results.descriptor >= 0:
                    self._wait_for(results.descriptor)
                return results.get()
            except KeyboardInterrupt:  # a signal from outside; Ctrl-C is only a key here
                self._exit(KeyboardInterrupt())
            except BrokenOffError as error:
                return self._broken_off(results, error)

    def _broken_off(self, results: Results, error: BrokenOffError) -> tuple[Ending, str]:
        """Take the prompt away; if a line has been typed in this very moment, that one counts."""
        while True:
            try:
                # It may only be about to begin.
                while not self._exit(error) and not results.any:
                    time.sleep(_PAUSE)
                return results.get()
            except KeyboardInterrupt:
                continue

    def _exit(self, error: BaseException) -> bool:
        """End the prompt; whether it was there."""
        application = self._session.app
        loop = application.loop
        if loop is None or not application.is_running:
            return False

        def leave() -> None:
            if application.is_running and not application.is_done:
                application.erase_when_done = isinstance(error, BrokenOffError)
                application.exit(exception=error)

        try:
            loop.call_soon_threadsafe(leave)
        except RuntimeError:  # it has ended in this very moment
            return False
        return True

    def _stop(self, thread: threading.Thread) -> None:
        """End the prompt if a signal's handler raised meanwhile; the terminal is to be left as it was."""
        try:
            self._exit(KeyboardInterrupt())
        except Exception:  # noqa: BLE001 - it may have ended in this very moment
            pass
        if thread.ident is not None:
            thread.join(timeout=5)

    def close(self) -> None:
        """Let go of the hold: the prompt's objects refer to each other and may live on for a while."""
        self._completer.offers = None
        self._wait_for = None


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
