"""Runs a real kernel (ipykernel) in a process of its own, and talks to it as a notebook's front end does."""

from __future__ import annotations

import json
import os
import queue
import re
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).resolve().parent.parent
#: Seconds after which a cell has failed.
LIMIT = 60.0
COLOURS = re.compile(r"\x1b\[[\d;]*m")

#: What is typed when the cell asks, or what is done instead, which may type something itself.
Typed = str | Callable[[], object]


class Cell(NamedTuple):
    """What has become of a cell.

    Attributes:
        text: what it printed, without colours.
        value: what it showed as its value.
        error: the class of what it raised; empty if nothing.
        traceback: as the front end shows it, without colours.
        prompts: what it asked.
    """

    text: str
    value: str
    error: str
    traceback: str
    prompts: list[str]


class Kernel:
    """A kernel and its one client.

    Args:
        folder: where it runs; the notebook's file is there, too.
    """

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder = folder
        self.file = folder / "book.ipynb"
        self._manager = KernelManager()
        command = [
            sys.executable,
            "-X",
            "faulthandler",
            "-m",
            "ipykernel_launcher",
            "-f",
            "{connection_file}",
        ]
        self._manager._kernel_spec = KernelSpec(argv=command, display_name="tested", language="python")
        environment = {
            "PYTHONPATH": str(ROOT),
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(folder),
            "IPYTHONDIR": str(folder / ".ipython"),
            "JPY_SESSION_NAME": str(self.file),
            "DAIFU_ATTACH": "0",
            "DAIFU_JOURNAL": str(folder / "journal.jsonl"),
            **variables,
        }
        with (folder / "kernel.log").open("w") as log:
            self._manager.start_kernel(env=environment, cwd=str(folder), stdout=log, stderr=log)
        self.client = self._manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=LIMIT)

    @property
    def process(self) -> str:
        """The number of its process."""
        return str(self._manager.provisioner.pid)  # type: ignore[union-attr,unused-ignore]

    def close(self) -> None:
        """End the kernel and everything that belongs to it."""
        self.client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()
        # Their threads would be seen by who forks.
        self.client.context.destroy()
        self._manager.context.destroy()

    def interrupt(self) -> None:
        """Do what the button of the front end does."""
        self._manager.interrupt_kernel()

    def type(self, text: str) -> None:
        """Answer what the cell has asked."""
        self.client.input(text)

    def save(self, **cells: str) -> None:
        """Write the notebook's file, with cells by their identifiers."""
        found = [{"cell_type": "code", "id": name, "source": [text]} for name, text in cells.items()]
        # Its time is to be behind that of what has run.
        time.sleep(0.02)
        self.file.write_text(json.dumps({"nbformat": 4, "cells": found}))

    def subshell(self) -> str:
        """Have the kernel open a subshell, and return its name."""
        message = self.client.session.msg("create_subshell_request")
        self.client.control_channel.send(message)
        reply = self.client.control_channel.get_msg(timeout=LIMIT)
        return str(reply["content"]["subshell_id"])

    def run(
        self,
        code: str,
        *typed: Typed,
        cell_id: str = "",
        stdin: bool = True,
        seen: dict[str, Callable[[], object]] | None = None,
    ) -> Cell:
        """Run a cell to its end; what is asked beyond what is typed is answered by `raise`.

        Args:
            code: the cell.
            typed: the answers.
            cell_id: what the front end calls the cell.
            stdin: whether the front end takes input.
            seen: what is to be done when a text is in the cell's output.
        """
        return self.follow(self.send(code, cell_id=cell_id, stdin=stdin), typed, seen or {})

    def send(self, code: str, *, cell_id: str = "", stdin: bool = True, subshell: str = "") -> str:
        """Send a cell to the kernel, and return the message's name."""
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": stdin}
        message: dict[str, Any] = self.client.session.msg("execute_request", content)
        if cell_id:
            message["metadata"]["cellId"] = cell_id
        if subshell:
            message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def follow(
        self, name: str, typed: Iterable[Typed] = (), seen: dict[str, Callable[[], object]] | None = None
    ) -> Cell:
        """Take what comes from a cell until it has ended; see `run`."""
        answers, waiting = list(typed), dict(seen or {})
        text, value, error, traceback = "", "", "", ""
        prompts: list[str] = []
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            kind, content = self._next(name)
            if kind == "stream":
                text += COLOURS.sub("", content["text"])
                for awaited in [one for one in waiting if one in text]:
                    waiting.pop(awaited)()
            elif kind == "execute_result":
                value = content["data"]["text/plain"]
            elif kind == "error":
                error = content["ename"]
                traceback = COLOURS.sub("", "\n".join(content["traceback"]))
            elif kind == "input_request":
                prompts.append(content["prompt"])
                answer = answers.pop(0) if answers else "raise"
                if callable(answer):
                    answer()
                else:
                    self.type(answer)
            elif kind == "status" and content["execution_state"] == "idle":
                assert not answers, f"never asked for {answers}; printed:\n{text}\n{traceback}"
                assert not waiting, f"never seen: {list(waiting)}; printed:\n{text}\n{traceback}"
                return Cell(text, value, error, traceback, prompts)
        raise AssertionError(f"the cell has not ended; printed:\n{text}\n{traceback}")

    def _next(self, name: str) -> tuple[str, dict[str, Any]]:
        """The next message that belongs to a cell, its output before its questions."""
        for channel in (self.client.iopub_channel, self.client.stdin_channel):
            try:
                message = channel.get_msg(timeout=0.02 if channel is self.client.iopub_channel else 0)
            except queue.Empty:
                continue
            if message["parent_header"].get("msg_id") == name:
                return str(message["msg_type"]), dict(message["content"])
        return "", {}
