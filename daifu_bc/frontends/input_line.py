"""Lines from the input line of a notebook's cell."""

from __future__ import annotations

from typing import Any

from daifu_bc.frontends.reader import BrokenOffError, TerminalGoneError, Wait

#: How a front end says that there is no more input.
_END = "\x04"


class InputLine:
    """Reads lines from the cell that is being run.

    Args:
        kernel: ipykernel's.
        wait: waits until something can be read; it may raise BrokenOffError.
    """

    def __init__(self, kernel: Any, wait: Wait) -> None:
        self._kernel = kernel
        self._wait = wait
        #: Whether the front end shows a line that has not been answered.
        self._asked = False
        #: Of a text of several lines that was pasted.
        self._rest: list[str] = []

    def read(self, prompt: str) -> str:
        """Return a line; see `daifu_bc.frontends.reader.Reader`."""
        if not self._rest:
            try:
                if not self._asked:
                    self._ask(prompt)
                text = self._answer()
            except (KeyboardInterrupt, EOFError, BrokenOffError):
                raise
            except Exception as error:  # the front end has gone, say
                raise TerminalGoneError from error
            self._asked = False
            self._rest = text.split("\n")
        return self._rest.pop(0)

    def _ask(self, prompt: str) -> None:
        """Have the front end show a line for input; what `input` does in a cell, but for waiting."""
        kernel = self._kernel
        while kernel.stdin_socket.poll(0):  # answers to what nobody waits for any more
            kernel.stdin_socket.recv_multipart()
        kernel.session.send(
            kernel.stdin_socket,
            "input_request",
            {"prompt": prompt, "password": False},
            kernel.get_parent("shell"),
            ident=kernel._get_shell_context_var(kernel._shell_parent_ident),
        )
        self._asked = True

    def _answer(self) -> str:
        kernel = self._kernel
        while True:
            # What can be read of its descriptor only says that something has happened since this was asked.
            while kernel.stdin_socket.poll(0):
                _, reply = kernel.session.recv(kernel.stdin_socket)
                if reply is not None:
                    text = str(reply["content"]["value"])
                    if text == _END:
                        self._asked = False
                        raise EOFError
                    return text
            self._wait(kernel.stdin_socket.fileno())

    def forget(self) -> None:
        """Forget what was asked and what was pasted: the person has interrupted it."""
        self._asked = False
        self._rest.clear()

    def close(self) -> None:
        """Let go of everything that belongs to the hold."""
        self._rest.clear()
