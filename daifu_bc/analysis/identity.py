"""A table from code objects by identity."""

from __future__ import annotations

import weakref
from types import CodeType
from typing import Generic, TypeVar

Value = TypeVar("Value")


class ByIdentity(Generic[Value]):
    """A table from code objects, by identity, to values; an entry goes when its code object does.

    Code objects compare by value, so that a plain dictionary would mix up equal ones.
    """

    def __init__(self) -> None:
        self._table: dict[int, tuple[weakref.ref[CodeType], Value]] = {}

    def get(self, code: CodeType) -> Value | None:
        """What is known of `code`."""
        known = self._table.get(id(code))
        return known[1] if known is not None and known[0]() is code else None

    def put(self, code: CodeType, value: Value) -> None:
        """Remembers `value`, which must not refer to `code` itself."""
        key, table = id(code), self._table
        table[key] = (weakref.ref(code, lambda _: table.pop(key, None)), value)

    def items(self) -> list[tuple[CodeType, Value]]:
        """All entries."""
        found = [(reference(), value) for reference, value in list(self._table.values())]
        return [(code, value) for code, value in found if code is not None]

    def __len__(self) -> int:
        return len(self._table)
