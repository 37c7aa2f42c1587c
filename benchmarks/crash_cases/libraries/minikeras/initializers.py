"""The first values of weights, by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch


class Initializer:
    """Fills a new weight."""

    def __call__(self, shape: tuple[int, ...]) -> Any:
        """Return a tensor of this shape."""
        return self.fill(torch.empty(shape))

    def fill(self, tensor: Any) -> Any:
        """Set the values of a tensor."""
        raise NotImplementedError


class GlorotUniform(Initializer):
    """As wide as the numbers of inputs and outputs allow."""

    def fill(self, tensor: Any) -> Any:
        return torch.nn.init.xavier_uniform_(tensor)


class Zeros(Initializer):
    """Nothing but zeros."""

    def fill(self, tensor: Any) -> Any:
        return torch.nn.init.zeros_(tensor)


class RandomNormal(Initializer):
    """The bell curve. It is asked for in a way that PyTorch calls deprecated."""

    def __init__(self, spread: float = 0.05) -> None:
        self.spread = spread

    def fill(self, tensor: Any) -> Any:
        if not math.isfinite(self.spread):
            raise ValueError(f"the spread must be a number, and is {self.spread}")
        return torch.nn.init.normal(tensor, 0.0, self.spread)


INITIALIZERS: dict[str, Callable[[], Initializer]] = {
    "glorot_uniform": GlorotUniform,
    "zeros": Zeros,
    "random_normal": RandomNormal,
}


def create(name: str, shape: tuple[int, ...]) -> Any:
    """Return a new tensor with the first values of this name."""
    return INITIALIZERS[name]()(shape)
