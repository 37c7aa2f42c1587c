"""Frames that an exception crosses on its way to who handles it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

EMPTY: dict[int, int] = {}


def value_error(depth: int) -> int:
    """Raise so many frames further in."""
    if depth > 1:
        return value_error(depth - 1)
    raise ValueError(depth)


def key_error(depth: int) -> int:
    """The same for an exception that C code often expects."""
    if depth > 1:
        return key_error(depth - 1)
    return EMPTY[depth]


def cleaned(depth: int) -> int:
    """The same with a clean-up in each frame."""
    try:
        if depth > 1:
            return cleaned(depth - 1)
        raise ValueError(depth)
    finally:
        depth = 0


class Nothing:
    """Has no attributes and no elements."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def __iter__(self) -> Nothing:
        return self

    def __next__(self) -> int:
        raise StopIteration


def endless() -> Iterator[int]:
    """A generator that is closed before its end."""
    while True:
        yield 1
