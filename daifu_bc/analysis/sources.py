"""The source text of vaccinated code as it was when the code was loaded, whatever became of the files since."""

from __future__ import annotations

import importlib.util
import linecache
import os
import time
import zlib

# Texts by the name of their file; those that came from a cache stay packed until somebody asks for them.
_loaded: dict[str, bytes] = {}
_packed: dict[str, bytes] = {}

# A file that was written after this module was loaded need not be the text that the running code came from.
_STARTED = time.time()


def remember(filename: str, source: bytes) -> None:
    """Keep the text that a file's code was compiled from.

    Args:
        filename: the file's name as the code objects give it.
        source: the file's content.
    """
    _loaded[filename] = source
    _packed.pop(filename, None)


def remember_packed(filename: str, packed: bytes) -> None:
    """Keep the text that a file's code was compiled from.

    Args:
        filename: the file's name as the code objects give it.
        packed: the file's content, as from `pack`.
    """
    _packed[filename] = packed
    _loaded.pop(filename, None)


def pack(source: bytes) -> bytes:
    """Return a text in a form that is short and fast to read from a file.

    Args:
        source: the text; an empty one stays empty.
    """
    return zlib.compress(source) if source else b""


def unpack(packed: bytes) -> bytes | None:
    """Return the text that `pack` was given, or None if `packed` is damaged.

    Args:
        packed: what `pack` returned.
    """
    try:
        return zlib.decompress(packed) if packed else b""
    except zlib.error:
        return None


def remember_file(filename: str) -> None:
    """Keep a file's present text, unless a text is kept already; do nothing if there is no such file.

    Args:
        filename: the file's name as the code objects give it.
    """
    if filename in _loaded or filename in _packed or filename.startswith("<"):
        return
    try:
        with open(filename, "rb") as file:
            _loaded[filename] = file.read()
    except OSError:
        return


def remembered(filename: str) -> bytes | None:
    """Return the text that was kept for a file, or None.

    Args:
        filename: the file's name as the code objects give it.
    """
    packed = _packed.pop(filename, None)
    if packed is not None:
        source = unpack(packed)
        if source is not None:
            _loaded[filename] = source
    return _loaded.get(filename)


def forget(filename: str) -> None:
    """Drop the text that was kept for a file, if any.

    Args:
        filename: the file's name as the code objects give it.
    """
    _loaded.pop(filename, None)
    _packed.pop(filename, None)


def lines(filename: str) -> list[str] | None:
    """Return the source lines that running code was compiled from, without line ends, or None if they are not known.

    A text that was kept comes first. Without one the file on disk will do if it has not been written since
    daifu_bc was loaded, and so will what `linecache` was given for code that never had a file.

    Args:
        filename: the file's name as the code objects give it.
    """
    source = remembered(filename)
    if source is not None:
        try:
            return importlib.util.decode_source(source).split("\n")
        except (SyntaxError, UnicodeDecodeError):
            return None
    try:
        unchanged = os.stat(filename).st_mtime <= _STARTED
    except (OSError, ValueError):
        # No file: interactive prompts and notebooks put what was typed into linecache under an invented name.
        unchanged = True
    if not unchanged:
        return None
    return [line.rstrip("\n") for line in linecache.getlines(filename)] or None
