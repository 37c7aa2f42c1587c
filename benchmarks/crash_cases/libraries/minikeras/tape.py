"""Gradients without `fit`: what a model computes is recorded only while a tape runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Self

import torch

_running = threading.local()


def recording() -> bool:
    """Return whether a tape runs in this thread."""
    return getattr(_running, "count", 0) > 0


class GradientTape:
    """Records what models compute inside its `with`."""

    def __enter__(self) -> Self:
        _running.count = getattr(_running, "count", 0) + 1
        return self

    def __exit__(self, *_details: object) -> None:
        _running.count -= 1

    def gradient(self, value: Any, weights: Sequence[Any]) -> list[Any]:
        """Return the gradient for each weight; None where the value does not depend on it, as far as was recorded."""
        if not value.requires_grad:
            return [None] * len(weights)
        return list(torch.autograd.grad(value, list(weights), allow_unused=True))
