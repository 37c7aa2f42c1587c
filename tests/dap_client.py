"""A small client of the debug adapter protocol, written from its description; it talks to the real adapter."""

from __future__ import annotations

import json
import queue
import socket
import threading
from typing import Any

#: Seconds after which a test has failed.
LIMIT = 30.0

Message = dict[str, Any]


class Refused(Exception):
    """The adapter has answered a request by a failure."""


class Gone(Exception):
    """The adapter has closed the connection."""


class DapClient:
    """One session.

    Args:
        port: where the adapter listens.
        host: its machine.
    """

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection((host, port), LIMIT)
        self.socket.settimeout(None)
        self.number = 0
        self.lock = threading.Lock()
        self.answers: dict[int, queue.Queue[Message]] = {}
        self.events: queue.Queue[Message] = queue.Queue()
        #: Whether the adapter has closed the connection.
        self.gone = False
        #: All events that have come, in their order.
        self.seen: list[Message] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    # -- messages ----------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        file = self.socket.makefile("rb")
        try:
            while True:
                length = 0
                while (line := file.readline()) not in (b"\r\n", b""):
                    name, _, value = line.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                if not line:
                    break
                message = json.loads(file.read(length))
                if message["type"] == "response":
                    self.answers[message["request_seq"]].put(message)
                elif message["type"] == "event":
                    self.events.put(message)
        except (OSError, ValueError):
            pass
        with self.lock:
            self.gone = True
            for waiting in self.answers.values():
                waiting.put({"success": False, "gone": True})
        self.events.put({"event": "closed", "body": {}})

    def send(self, command: str, **arguments: Any) -> int:
        """Send a request and return its number; `answer` waits for what comes back."""
        with self.lock:
            self.number += 1
            number = self.number
            self.answers[number] = queue.Queue()
            if self.gone:
                raise Gone(command)
            content = {"seq": number, "type": "request", "command": command, "arguments": arguments}
            text = json.dumps(content).encode()
            try:
                self.socket.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
            except OSError:
                raise Gone(command) from None
        return number

    def answer(self, number: int) -> Message:
        """Wait for the answer to a request, whether it is a failure or not."""
        return self.answers[number].get(timeout=LIMIT)

    def ask(self, command: str, **arguments: Any) -> Message:
        """Send a request and return the body of what it is answered by.

        Raises:
            Refused: it has failed.
        """
        found = self.answer(self.send(command, **arguments))
        if found.get("gone"):
            raise Gone(command)
        if not found["success"]:
            raise Refused(found.get("message", ""))
        body: Message = found.get("body") or {}
        return body

    def event(self, name: str, **wanted: Any) -> Message:
        """Wait for an event of a name, with these values in its body; those before it are passed over."""
        while True:
            found = self.events.get(timeout=LIMIT)
            self.seen.append(found)
            body: Message = found.get("body") or {}
            if found["event"] == name and all(body.get(key) == value for key, value in wanted.items()):
                return body
            if found["event"] == "closed":
                raise Gone(f"the adapter has gone; no {name} {wanted} among {self.seen}")

    def either(self, *names: str) -> Message:
        """Wait for an event of one of these names."""
        while (found := self.events.get(timeout=LIMIT))["event"] not in names:
            self.seen.append(found)
            assert found["event"] != "closed", self.seen
        self.seen.append(found)
        return found

    # -- a session ---------------------------------------------------------------------------------------------------

    def attach(
        self, breakpoints: dict[str, list[int]] | None = None, filters: tuple[str, ...] = (), **arguments: Any
    ) -> None:
        """Go through all that an editor does to attach.

        Args:
            breakpoints: lines by files.
            filters: exception breakpoints: `raised`, `uncaught`, `userUnhandled`.
            arguments: of the request `attach`, as launch.json would have them.
        """
        self.ask("initialize", clientID="test", adapterID="debugpy", linesStartAt1=True, columnsStartAt1=True)
        # It is answered only after the configuration is done.
        number = self.send("attach", **arguments)
        self.event("initialized")
        for path, lines in (breakpoints or {}).items():
            self.breakpoints(path, *lines)
        self.ask("setExceptionBreakpoints", filters=list(filters))
        self.ask("configurationDone")
        found = self.answer(number)
        assert found["success"], found

    def breakpoints(self, path: str, *lines: int) -> list[Message]:
        """Set all breakpoints of a file."""
        body = self.ask(
            "setBreakpoints", source={"path": path}, breakpoints=[{"line": line} for line in lines]
        )
        found: list[Message] = body["breakpoints"]
        return found

    def stopped(self, reason: str = "exception") -> int:
        """Wait until a thread stops for a reason; its number."""
        body = self.event("stopped")
        assert body["reason"] == reason, body
        number: int = body["threadId"]
        return number

    def stack(self, thread: int) -> list[Message]:
        """The frames of a thread, innermost first."""
        frames: list[Message] = self.ask("stackTrace", threadId=thread)["stackFrames"]
        return frames

    def places(self, thread: int) -> list[tuple[str, int]]:
        """The functions and lines of a thread's frames, innermost first."""
        return [(frame["name"], frame["line"]) for frame in self.stack(thread)]

    def scope(self, frame: Message, name: str = "Locals") -> int:
        """The reference of the variables of a frame."""
        scopes = self.ask("scopes", frameId=frame["id"])["scopes"]
        found: int = next(scope["variablesReference"] for scope in scopes if scope["name"] == name)
        return found

    def variables(self, frame: Message, name: str = "Locals") -> dict[str, str]:
        """The variables of a frame as they are shown."""
        found = self.ask("variables", variablesReference=self.scope(frame, name))["variables"]
        return {variable["name"]: variable["value"] for variable in found}

    def set(self, frame: Message, name: str, value: str, scope: str = "Locals") -> None:
        """Give a variable another value."""
        self.ask("setVariable", variablesReference=self.scope(frame, scope), name=name, value=value)

    def console(self, text: str, frame: Message, context: str = "repl") -> str:
        """What the debug console answers to a text.

        Raises:
            Refused: what it could not do.
        """
        found: str = self.ask("evaluate", expression=text, frameId=frame["id"], context=context)["result"]
        return found

    def close(self) -> None:
        """Be gone, without a word."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()
        self.reader.join(LIMIT)
