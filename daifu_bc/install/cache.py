"""Vaccinated code on disk, beside the interpreter's own cache: ``__pycache__/name.<tag>-daifu-<version>.pyc``.

Guarantees: a file that is damaged, foreign or out of date is taken for absent; a file is whole or not there at
all; a cache that cannot be written changes nothing. The source text lies in the file, packed, with the code that
it was compiled into, so that one read gives both.

An entry belongs to one build of CPython, one version of daifu_bc, and one state of the file that the code was
compiled from (time of change in nanoseconds, and size).
"""

from __future__ import annotations

import functools
import importlib.util
import marshal
import os
import struct
import sys
import time
from types import CodeType
from typing import Final, NamedTuple

from daifu_bc.analysis.filters import at_start

#: Our version, a part of the key and of the file's name.
OUR_VERSION = "0.1.0"

_FORMAT = 5
# Time of change and size of the file that the code is from; time of writing; lengths of the code and of the packed
# source; checksum of what follows. The time of writing is that of the cache file too, in whole seconds, which every file system can keep.
_HEADER = struct.Struct("<qqqqq8s")

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What decides how vaccinated code looks. An edit there makes a new key, where daifu_bc may be edited: in a checkout.
_INSTALLED = "site-packages" in _PACKAGE
_MAKERS = ("analysis", "rewrite")


#: Nanoseconds within which two changes of a file may have the same time: some ticks of the slowest kernel's.
_COARSEST: Final = 50_000_000


class State(NamedTuple):
    """The state of a file: what a cache entry is made for.

    Attributes:
        changed: the time of its last change, in nanoseconds.
        size: its size in bytes.
    """

    changed: int
    size: int


class Entry(NamedTuple):
    """What the cache knows about a file.

    Attributes:
        code: the vaccinated module code.
        packed_source: the text that it was compiled from, packed (see `daifu_bc.analysis.sources`); empty if
            there is none.
    """

    code: CodeType
    packed_source: bytes


def state_of(path: str) -> State | None:
    """Return the present state of a file, or None if there is none.

    Args:
        path: the file.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    return State(status.st_mtime_ns, status.st_size)


def settled(state: State) -> bool:
    """Tell whether a file that changes now would have another state: the clock of file systems is coarse.

    Args:
        state: the file's.
    """
    return abs(time.time_ns() - state.changed) > _COARSEST


def path_of(path: str) -> str | None:
    """Return where the vaccinated code of a file is cached, or None if this interpreter caches nothing.

    Args:
        path: the source file (or the bytecode file that has none).
    """
    try:
        plain = importlib.util.cache_from_source(path)
    except NotImplementedError:
        return None
    return f"{plain.removesuffix('.pyc')}-daifu-{OUR_VERSION}.pyc"


@functools.cache
def _key() -> bytes:
    """Return what all entries of this interpreter and this daifu_bc begin with."""
    parts = [f"daifu_bc {OUR_VERSION} {_FORMAT}", sys.version, importlib.util.MAGIC_NUMBER.hex()]
    parts += at_start()
    for folder in () if _INSTALLED else _MAKERS:
        with os.scandir(os.path.join(_PACKAGE, folder)) as files:
            for file in sorted(files, key=lambda file: file.name):
                if file.name.endswith(".py"):
                    status = file.stat()
                    parts.append(f"{file.name} {status.st_mtime_ns} {status.st_size}")
    text = "\n".join(parts).encode()
    return b"daifu_bc" + importlib.util.source_hash(text)


def load(path: str, state: State, filename: str) -> Entry | None:
    """Return the cached code for a file in its present state, or None.

    Args:
        path: where the cache entry would be, as from `path_of`.
        state: the file's present state.
        filename: the file's name as the code has to give it.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            data = file.read()
            touched = os.fstat(file.fileno()).st_mtime_ns
        key = _key()
        start = len(key) + _HEADER.size
        if not data.startswith(key):
            return None
        changed, size, written, code_length, source_length, checksum = _HEADER.unpack_from(data, len(key))
        if (changed, size) != state:
            return None
        content = memoryview(data)[start:]
        if len(content) != code_length + source_length:
            return None
        # Damaged code could take the interpreter down. A file that nobody touched since we wrote it is as good as
        # the interpreter's own, which has no checksum; reading one takes a tenth of an import's time.
        if touched != written and importlib.util.source_hash(content) != checksum:
            return None
        code = marshal.loads(content[:code_length])
    except (OSError, ValueError, EOFError, TypeError, struct.error):
        return None
    # A folder that was moved as it was keeps times and sizes, but the code tells the old place.
    if not isinstance(code, CodeType) or code.co_filename != filename:
        return None
    return Entry(code, bytes(content[code_length:]))


def store(path: str, state: State, entry: Entry, mode: int = 0o644) -> None:
    """Write a cache entry, all or nothing; do nothing if the interpreter is told to write none or it cannot be done.

    Args:
        path: where the entry goes, as from `path_of`.
        state: the state of the file that the code was made from.
        entry: what to keep.
        mode: the permissions of the new file.
    """
    if sys.dont_write_bytecode:
        return
    temporary = f"{path}.{os.getpid()}-{id(entry)}"
    try:
        code = marshal.dumps(entry.code)
        content = code + entry.packed_source
        checksum = importlib.util.source_hash(content)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        written = int(time.time()) * 1_000_000_000
        descriptor = os.open(temporary, os.O_EXCL | os.O_CREAT | os.O_WRONLY, mode & 0o666)
        try:
            with open(descriptor, "wb") as file:
                lengths = len(code), len(entry.packed_source)
                file.write(_key() + _HEADER.pack(*state, written, *lengths, checksum) + content)
            os.utime(temporary, ns=(written, written))
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
    except (OSError, ValueError):
        # Unwritable, full, or code with a constant that cannot be marshalled: the next run does the work again.
        return
