"""Optimisers: chosen before there are weights, bound to them when a model is first trained."""

from __future__ import annotations

from typing import Any

import torch


class Optimizer:
    """The base of all optimisers."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self._bound: Any = None

    def minimize(self, loss: Any, weights: list[Any]) -> None:
        """Take one step."""
        if self._bound is None:
            self._bound = self._make(weights)
        for group in self._bound.param_groups:
            group["lr"] = self.learning_rate
        self._bound.zero_grad()
        loss.backward()
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
