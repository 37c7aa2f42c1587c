"""What comes over the socket of a held run and is no request does no harm."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attaching import ROOT, Programs


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"GET / HTTP/1.1", -32700),
        (b"", -32700),
        (b"\xff\xfe\x00", -32700),
        (b"[" * 100_000, -32700),
        (b"9" * 10_000, -32700),
        (b"[]", -32600),
        (b'{"id": 1, "method": "do", "params": {"words": "return"}}', -32600),
        (b'{"jsonrpc": "2.0", "method": "do", "params": {"words": "return"}}', -32600),
        (b'{"jsonrpc": "2.0", "id": true, "method": "status"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": ["do"]}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "do", "params": ["return"]}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "do"}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "do", "params": {"words": 3}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "complete", "params": {"text": null}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "__init__"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "do", "params": {"words": "return", "hold": 2}}', -32001),
    ],
    ids=str,
)
def test_rubbish(text: bytes, code: int, rubbed: tuple[Programs, int]) -> None:
    programs, pid = rubbed
    client = programs.client(pid)
    assert client.raw(text + b"\n")["error"]["code"] == code
    assert client.call("status")["result"]["hold"] == 1  # the connection stays, and so does the hold
    client.close()


@pytest.fixture(scope="module")
def rubbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Programs, int]]:
    """One run for all kinds of rubbish; afterwards it can still be repaired."""
    with tempfile.TemporaryDirectory(prefix="daifu") as runtime:
        made = Programs(tmp_path_factory.mktemp("rubbed"), Path(runtime))
        run = made.start()
        pid = run.held()
        yield made, pid
        made.client(pid).call("do", words="state.append(1)\npass")
        assert run.end()[::2] == ("result 10\nends\n", 0)
        made.close()


@pytest.mark.parametrize("end", [b"", b"\n"], ids=["without an end", "with an end"])
def test_a_line_that_is_too_long(end: bytes, rubbed: tuple[Programs, int]) -> None:
    programs, pid = rubbed
    client = programs.client(pid)
    text = b'{"jsonrpc": "2.0", "id": 1, "method": "do", "params": {"words": "p 1' + b" " * (1 << 20) + end
    try:
        client.send(text)
    except ConnectionError:  # it has been sent away before it had said all
        pass
    answer = client.next()
    assert answer["error"] == {"code": -32600, "message": "a line has at most 1048576 bytes"}
    other = programs.client(pid)
    assert other.call("status")["result"]["hold"] == 1
    other.close()
    client.close()


def test_a_line_that_is_just_short_enough(rubbed: tuple[Programs, int]) -> None:
    programs, pid = rubbed
    client = programs.client(pid)
    start = b'{"jsonrpc": "2.0", "id": 1, "method": "complete", "params": {"text": "zi'
    text = start + b'"}}'
    padded = text + b" " * ((1 << 20) - len(text)) + b"\n"
    client.send(padded)
    assert client.next()["result"] == {"length": 2, "names": ["zip"]}
    client.close()


def test_too_many_clients(rubbed: tuple[Programs, int]) -> None:
    programs, pid = rubbed
    clients = [programs.client(pid) for _ in range(16)]
    assert all(client.call("status")["result"] for client in clients)
    late = programs.client(pid)
    assert late.next()["error"]["message"] == "16 clients are here already"
    assert late.next() == {}
    late.close()
    for client in clients:
        client.close()


def test_the_reference_has_each_method(rubbed: tuple[Programs, int]) -> None:
    programs, pid = rubbed
    client = programs.client(pid)
    text = client.call("none")["error"]["message"]
    methods = text.partition("there are ")[2].split(", ")
    assert len(methods) == 6
    reference = (ROOT / "docs" / "reference.md").read_text()
    assert all(f"| `{method}` | " in reference for method in methods)
    client.close()
