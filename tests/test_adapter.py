"""The debug adapter lets in its own user, others only with the token, and does nothing but attach to its run."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
DEBUGGED = """
import sys
from daifu_bc.integrations.adapter import listen
print(*listen("127.0.0.1", 0, sys.argv[1]), flush=True)
sys.stdin.read()
"""
LIMIT = 60.0
NOBODY = 65534
ALLOWED = {"daifuToken": "secret"}

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")


@contextmanager
def adapter(token: str = "") -> Iterator[tuple[str, int]]:
    """Have a process of its own debugged; where clients connect."""
    with subprocess.Popen(
        [sys.executable, "-Xfrozen_modules=off", "-c", DEBUGGED, token],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        host, port = process.stdout.readline().split()
        yield host, int(port)
        process.stdin.close()
        process.wait(LIMIT)


def answers(address: tuple[str, int], command: str, **arguments: Any) -> str:
    """What a client is answered: `gone`, `yes`, or the reason why not."""
    with socket.create_connection(address) as connection, connection.makefile("rwb") as file:
        connection.settimeout(LIMIT)
        requests = [("initialize", {"adapterID": "test", "pathFormat": "path"}), (command, arguments)]
        try:
            for number, (name, values) in enumerate(requests, start=1):
                content = {"seq": number, "type": "request", "command": name, "arguments": values}
                text = json.dumps(content).encode()
                file.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
            file.flush()
            while True:
                length = file.readline()
                if not length:
                    return "gone"
                file.readline()
                content = json.loads(file.read(int(length.split()[1])))
                if content.get("event") == "initialized":
                    return "yes"
                if content.get("request_seq") == len(requests):
                    return "yes" if content["success"] else str(content["message"])
        except ConnectionError:
            return "gone"


AS_NOBODY = """
import encodings.idna  # afterwards the standard library may be out of reach
import json, os, sys
from tests.test_adapter import NOBODY, answers
address, command, arguments = json.loads(sys.argv[1])
os.setuid(NOBODY)
print(answers(tuple(address), command, **arguments))
"""


def answers_nobody(address: tuple[str, int], command: str, **arguments: Any) -> str:
    """What another user's client is answered."""
    ended = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, json.dumps([address, command, arguments])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    )
    return ended.stdout.strip()


def test_its_own_user_is_let_in_without_a_token() -> None:
    with adapter() as address:
        assert answers(address, "attach", justMyCode=False) == "yes"


@pytest.mark.parametrize(
    ("command", "arguments", "reason"),
    [
        ("launch", {"program": "/bin/true"}, "nothing can be launched here"),
        ("attach", {"processId": 1}, "only the run that has started this adapter"),
        (
            "attach",
            {"listen": {"host": "127.0.0.1", "port": 0}},
            "only the run that has started this adapter",
        ),
    ],
)
def test_it_attaches_to_its_run_only(command: str, arguments: dict[str, Any], reason: str) -> None:
    with adapter() as address:
        assert reason in answers(address, command, **arguments)


@as_root
def test_another_user_is_not_let_in() -> None:
    with adapter() as address:
        assert answers_nobody(address, "attach", **ALLOWED) == "gone"


@as_root
@pytest.mark.parametrize("arguments", [{}, {"daifuToken": "secre"}, {"daifuToken": ""}, {"daifuToken": 5}])
def test_another_user_needs_the_right_token(arguments: dict[str, Any]) -> None:
    with adapter("secret") as address:
        assert "needs the right 'daifuToken'" in answers_nobody(address, "attach", **arguments)
        assert answers_nobody(address, "attach", **ALLOWED) == "yes"
