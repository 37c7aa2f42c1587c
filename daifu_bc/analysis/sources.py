"""The source text of vaccinated code as it was when the code was loaded, whatever became of the files since."""

from __future__ import annotations

import functools
import importlib.util
import linecache
import os
import time
import zlib
from types import CodeType

# Texts by the name of their file; those that came from a cache stay packed until somebody asks for them.
_loaded: dict[str, bytes] = {}
_packed: dict[str, bytes] = {}
# Files that were found to have another text than the code that was loaded from them.
_unknown: set[str] = set()


# A file that was written after the process began need not be the text that the running code came from.
_LOADED_AT = time.time()


@functools.cache
def _process_started() -> float:
    """Return when this process began, about; when this module was loaded if that cannot be had."""
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        ago = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return _LOADED_AT
    return time.time() - ago


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


def remember_file(filename: str, code: CodeType) -> None:
    """Keep a file's present text, unless a text is kept already; do nothing if it is not that of the code that runs.

    Args:
        filename: the file's name as the code objects give it.
        code: a function's code that was loaded from it, not vaccinated.
    """
    if filename in _loaded or filename in _packed or filename in _unknown or filename.startswith("<"):
        return
    try:
        with open(filename, "rb") as file:
            text = file.read()
            written = os.stat(file.fileno()).st_mtime
    except OSError:
        return
    if written <= _process_started() or _has(text, filename, code):
        _loaded[filename] = text
    else:
        _unknown.add(filename)


def _has(text: bytes, filename: str, code: CodeType) -> bool:
    """Tell whether a text compiles to a code object, among others."""
    try:
        work = [compile(text, filename, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return False
    while work:
        found = work.pop()
        if found == code:
            return True
        work += [constant for constant in found.co_consts if isinstance(constant, CodeType)]
    return False


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
    _unknown.discard(filename)


def filenames() -> list[str]:
    """Return the names of the files whose text was kept, or was found to be another one than what runs."""
    return [*_loaded, *_packed, *_unknown]


def is_kept(filename: str, content: bytes) -> bool:
    """Tell whether this is the text that was kept for a file; one from a cache stays packed.

    Args:
        filename: the file's name as the code objects give it.
        content: the text.
    """
    packed = _packed.get(filename)
    return _loaded.get(filename) == content if packed is None else packed == pack(content)


def lines(filename: str) -> list[str] | None:
    """Return the source lines that running code was compiled from, without line ends, or None if they are not known.

    A text that was kept comes first. Without one the file on disk will do if it has not been written since
    the process began, and so will what `linecache` was given for code that never had a file.

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
        unchanged = os.stat(filename).st_mtime <= _process_started()
    except (OSError, ValueError):
        # No file: interactive prompts and notebooks put what was typed into linecache under an invented name.
        unchanged = True
    if not unchanged:
        return None
    return [line.rstrip("\n") for line in linecache.getlines(filename)] or None
