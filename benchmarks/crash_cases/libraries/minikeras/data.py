"""A pipeline of data: nothing is computed before it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch


def _stack(elements: list[Any]) -> Any:
    if isinstance(elements[0], tuple):
        return tuple(torch.stack(parts) for parts in zip(*elements, strict=True))
    return torch.stack(elements)


class Dataset:
    """Can be iterated over any number of times."""

    def __init__(self, make: Callable[[], Iterable[Any]]) -> None:
        self._make = make

    @classmethod
    def range(cls, count: int) -> Dataset:
        """Return the data set of the numbers 0 to `count` - 1."""
        return cls(lambda: range(count))

    def map(self, function: Callable[[Any], Any]) -> Dataset:
        """Return the data set of the function's results."""
        return Dataset(lambda: map(function, self))

    def batch(self, size: int) -> Dataset:
        """Return the data set of `size` elements each, stacked."""

        def batches() -> Iterator[Any]:
            elements: list[Any] = []
            for element in self:
                elements.append(element)
                if len(elements) == size:
                    yield _stack(elements)
                    elements = []

        return Dataset(batches)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._make())
