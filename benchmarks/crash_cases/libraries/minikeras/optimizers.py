"""Optimisers: chosen before there are weights, bound to them when a model is first trained."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


class Optimizer:
    """The base of all optimisers."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self._bound: Any = None

    def minimize(self, loss: Any, weights: list[Any]) -> None:
        """Take one step."""
        self.apply_gradients(zip(torch.autograd.grad(loss, weights, allow_unused=True), weights, strict=True))

    def apply_gradients(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Take one step with gradients that somebody has computed.

        Raises:
            ValueError: there is not one gradient.
        """
        given = list(pairs)
        if all(gradient is None for gradient, _ in given):
            shapes = [tuple(weight.shape) for _, weight in given]
            raise ValueError(f"No gradients provided for any variable: {shapes}.")
        if self._bound is None:
            self._bound = self._make([weight for _, weight in given])
        for group in self._bound.param_groups:
            group["lr"] = self.learning_rate
        for gradient, weight in given:
            weight.grad = gradient
        self._bound.step()

    def _make(self, weights: list[Any]) -> Any:
        raise NotImplementedError


class SGD(Optimizer):
    """Stochastic gradient descent."""

    def __init__(self, learning_rate: float = 0.01, momentum: float = 0.0) -> None:
        super().__init__(learning_rate)
        self.momentum = momentum

    def _make(self, weights: list[Any]) -> Any:
        return torch.optim.SGD(weights, self.learning_rate, self.momentum)


class Adam(Optimizer):
    """Adam."""

    def __init__(self, learning_rate: float = 0.001) -> None:
        super().__init__(learning_rate)

    def _make(self, weights: list[Any]) -> Any:
        return torch.optim.Adam(weights, self.learning_rate)


OPTIMIZERS = {"sgd": SGD, "adam": Adam}
