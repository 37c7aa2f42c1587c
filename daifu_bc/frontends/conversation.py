"""A person at the prompt of a run in another terminal."""

from __future__ import annotations

import contextlib
import select
import sys
from typing import Final

from daifu_bc.frontends import protocol
from daifu_bc.frontends.asking import TAKE, Writer
from daifu_bc.frontends.commands import ACTION, read
from daifu_bc.frontends.connection import AnsweredNoError, Connection, GoneError
from daifu_bc.frontends.log import duration
from daifu_bc.frontends.protocol import Object
from daifu_bc.frontends.reader import BrokenOffError, Reader, TerminalGoneError
from daifu_bc.frontends.script import Command
from daifu_bc.frontends.terminal import WELCOME, make_reader, writer
from daifu_bc.frontends.typed import read_text

#: Seconds that the Tab key waits for a run that may be busy.
_PATIENCE: Final = 2.0
#: How often Ctrl-C interrupts what runs; once more leaves it alone.
_PATIENT: Final = 2
_LEFT = "Detached. `daifu attach` comes back."


class LineReader:
    """Reads lines from a standard input that is no terminal."""

    def read(self, _prompt: str) -> str:
        """Return a line; see `daifu_bc.frontends.reader.Reader`."""
        line = sys.stdin.readline()
        if not line:
            raise TerminalGoneError
        return line.rstrip("\r\n")

    def close(self) -> None:
        """Do nothing."""


class Conversation:
    """What is said between a person and a run.

    Args:
        connection: to the run.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._write: Writer = writer()
        self._hold = 0
        #: Whether the hold has been decided that was seen last.
        self._decided = False
        #: Whether the run has closed the connection.
        self._gone = False
        #: Whether what an action prints has come to the end of a line.
        self._line_ended = True

    def run(self) -> int:
        """Ask the person until the run goes on, or the person has enough; the exit code."""
        reader: Reader = make_reader(self._offers, self._wait) if sys.stdin.isatty() else LineReader()
        try:
            self._begin()
            begun = ""
            while True:
                self._listen()
                if self._gone:
                    raise GoneError
                try:
                    text = read_text(reader, begun)
                    begun = ""
                except BrokenOffError as broken:
                    begun = broken.begun
                    continue
                except KeyboardInterrupt:
                    begun = ""
                    continue
                except (EOFError, TerminalGoneError):
                    text = "detach"
                if text.strip() == "detach":
                    self._write(_LEFT, True)
                    return 0
                if text.strip():
                    self._say(text)
        except GoneError:
            self._write("The run goes on." if self._decided else "The run is not there any more.", True)
            return 0 if self._decided else 1
        except KeyboardInterrupt:
            self._write(f"{_LEFT} What was typed still runs there.", True)
            return 0
        finally:
            reader.close()

    def _begin(self) -> None:
        self._show_report()
        self._write(f"{WELCOME} `detach` leaves it held.", True)
        status = self._connection.ask("status")
        if status["acts"] == "another":
            self._write("Another client acts here; `take` takes over.", True)
        left = status["seconds_left"]
        if left is not None:
            self._write(f"If nothing is typed for {duration(left)}, the hold ends.", True)

    def _show_report(self) -> None:
        report = self._connection.ask("report")
        self._hold, self._decided = report["hold"], False
        self._write("\n" + report["text"], True)

    def _say(self, text: str) -> None:
        try:
            if text.strip() == TAKE:
                self._connection.ask("take")
                self._write("You act now.", True)
                return
            result = self._do(text)
        except AnsweredNoError as error:
            text = str(error)
            self._write(f"{text[:1].upper()}{text[1:]}.", True)
            if error.code == protocol.OTHER_HOLD:
                self._connection.notices.clear()
                self._show_report()
            return
        self._take_in(result, ours=read(Command(1, text.partition("\n")[0].strip()))[0] is not ACTION)
        if result["over"]:
            self._until_asked()

    def _do(self, text: str) -> Object:
        """Have words run; Ctrl-C interrupts what they do, and leaves it alone if that does not help."""
        with self._connection.interruptible():
            number = self._connection.send("do", words=text, hold=self._hold, stream=True)
            for _ in range(_PATIENT):
                try:
                    return self._connection.result(number, printed=self._print)
                except KeyboardInterrupt:
                    self._connection.send("interrupt")
            return self._connection.result(number, printed=self._print)

    def _print(self, text: str) -> None:
        """Show what an action prints while it runs."""
        self._line_ended = text.endswith("\n")
        if sys.__stderr__ is not None:
            with contextlib.suppress(OSError, ValueError):
                sys.__stderr__.write(text)
                sys.__stderr__.flush()

    def _wait(self, descriptor: int) -> None:
        """Wait until something has been typed; what the run tells meanwhile breaks the prompt off."""
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.register(self._connection, select.POLLIN)
        while not self._connection.notices:
            ready = [number for number, _ in poll.poll()]
            if self._connection.fileno() in ready:
                try:
                    self._connection.take_in()
                except GoneError:
                    self._gone = True
                    raise BrokenOffError from None
            elif descriptor in ready:
                return
        raise BrokenOffError

    def _take_in(self, result: Object, *, ours: bool) -> None:
        self._decided = result["decided"]
        if not self._line_ended:
            self._print("\n")
        if result["text"]:
            self._write(result["text"], ours)

    def _until_asked(self) -> None:
        """Wait for the next hold that is asked about; there may be none, and then the run has gone on."""
        hold = self._hold
        while self._heed(self._connection.wait(), over=hold):
            pass

    def _listen(self) -> None:
        """Show what the run has told meanwhile."""
        while self._connection.notices:
            self._heed(self._connection.notices.popleft(), over=0)

    def _heed(self, notice: Object, *, over: int) -> bool:
        """Show what the run tells; whether nothing is asked about yet."""
        parameters = notice["params"]
        match notice["method"]:
            case "held":
                self._show_report()
                return False
            case "answer":
                self._take_in(parameters, ours=False)
                self._hold = parameters["hold"]
                return bool(parameters["over"])
            case "output":
                self._print(parameters["text"])
            case "news":
                self._write(str(parameters["text"]), True)
            case "taken":
                self._write("Another client has taken over; `take` takes it back.", True)
            case "over" if parameters["hold"] not in (over, self._hold):
                self._write(f"Hold {parameters['hold']} is over.", True)
            case "over":
                self._decided = True
        return True

    def _offers(self, text: str) -> tuple[int, list[str]]:
        try:
            found = self._connection.ask("complete", _PATIENCE, text=text)
        except (AnsweredNoError, GoneError, OSError):
            return 0, []
        return found["length"], found["names"]


def converse(connection: Connection) -> int:
    """Open the prompt of a run in this terminal, and return the exit code.

    Args:
        connection: to the run.
    """
    return Conversation(connection).run()
