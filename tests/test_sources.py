"""The source text of running code."""

from __future__ import annotations

import linecache
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from daifu_bc.analysis import sources


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    name = str(tmp_path / "module.py")
    Path(name).write_text("old = 1\n", encoding="utf-8")
    os.utime(name, (1, 1))
    yield name
    sources.forget(name)
    linecache.checkcache(name)


def edit(path: str) -> None:
    Path(path).write_text("new = 2\n", encoding="utf-8")
    os.utime(path, (time.time() + 10,) * 2)


def test_what_was_loaded_is_remembered(path: str) -> None:
    sources.remember(path, Path(path).read_bytes())
    edit(path)
    assert sources.lines(path) == ["old = 1", ""]
    assert sources.remembered(path) == b"old = 1\n"


def test_a_packed_text(path: str) -> None:
    sources.remember_packed(path, sources.pack(Path(path).read_bytes()))
    edit(path)
    sources.remember_file(path, compile("old = 1\n", path, "exec"))
    assert sources.lines(path) == ["old = 1", ""]
    sources.remember_packed(path, sources.pack(b"x = 2\n")[:-1])
    assert sources.lines(path) is None
    assert sources.unpack(sources.pack(b"")) == b""


def test_a_file_is_read_once(path: str) -> None:
    sources.remember_file(path, compile("old = 1\n", path, "exec"))
    edit(path)
    sources.remember_file(path, compile("old = 1\n", path, "exec"))
    assert sources.lines(path) == ["old = 1", ""]


def test_an_untouched_file_will_do(path: str) -> None:
    assert sources.lines(path) == ["old = 1"]


def test_a_file_that_changed_does_not_tell(path: str) -> None:
    edit(path)
    assert sources.lines(path) is None


def test_encoding_and_line_ends(path: str) -> None:
    sources.remember(path, b"# -*- coding: latin-1 -*-\r\nx = '\xe9\x0c\x1c'\r\n")
    assert sources.lines(path) == ["# -*- coding: latin-1 -*-", "x = 'é\x0c\x1c'", ""]
    sources.remember(path, b"\xff\xfe")
    assert sources.lines(path) is None


def test_typed_code() -> None:
    name = "<typed for test_typed_code>"
    assert sources.lines(name) is None
    linecache.cache[name] = (5, None, ["x = 1\n"], name)
    try:
        assert sources.lines(name) == ["x = 1"]
    finally:
        del linecache.cache[name]
    sources.remember_file(name, compile("", name, "exec"))
    assert sources.remembered(name) is None


def test_no_file() -> None:
    sources.remember_file("/no/such/file.py", compile("", "", "exec"))
    assert sources.lines("/no/such/file.py") is None
