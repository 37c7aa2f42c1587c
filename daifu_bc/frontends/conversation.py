"""A person at the prompt of a run in another terminal."""

from __future__ import annotations

import sys
from typing import Final

from daifu_bc.frontends import protocol
from daifu_bc.frontends.commands import ACTION, read
from daifu_bc.frontends.connection import AnsweredNoError, Connection, GoneError
from daifu_bc.frontends.log import duration
from daifu_bc.frontends.protocol import Object
from daifu_bc.frontends.reader import Reader, TerminalGoneError
from daifu_bc.frontends.script import Command
from daifu_bc.frontends.terminal import WELCOME, Writer, make_reader, read_text, writer

#: Seconds that the Tab key waits for a run that may be busy.
_PATIENCE: Final = 2.0
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

    def run(self) -> int:
        """Ask the person until the run goes on, or the person has enough; the exit code."""
        reader: Reader = make_reader(self._offers) if sys.stdin.isatty() else LineReader()
        try:
            self._begin()
            while True:
                try:
                    text = read_text(reader)
                except KeyboardInterrupt:
                    continue
                except (EOFError, TerminalGoneError):
                    text = "detach"
                if text.strip() == "detach":
                    self._write(_LEFT, True)
                    return 0
                if text.strip():
                    self._say(text)
                self._listen()
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
            self._write(f"If nothing is typed for {duration(left)}, the exception goes on.", True)

    def _show_report(self) -> None:
        report = self._connection.ask("report")
        self._hold, self._decided = report["hold"], False
        self._write("\n" + report["text"], True)

    def _say(self, text: str) -> None:
        try:
            if text.strip() == "take":
                self._connection.ask("take")
                self._write("You act now.", True)
                return
            result = self._connection.ask("do", words=text, hold=self._hold)
        except AnsweredNoError as error:
            self._write(f"{error}.", True)
            if error.code == protocol.OTHER_HOLD:
                self._connection.notices.clear()
                self._show_report()
            return
        self._take_in(result, ours=read(Command(1, text.partition("\n")[0].strip()))[0] is not ACTION)
        if result["over"]:
            self._until_asked()

    def _take_in(self, result: Object, *, ours: bool) -> None:
        self._decided = result["decided"]
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
