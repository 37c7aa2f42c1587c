"""Training steps of small networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class Perceptron(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.second = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return scores."""
        hidden = torch.relu(self.first(x))
        return self.second(hidden)


class Convolutions(nn.Module):
    """Two convolutions and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 16, 3, padding=1)
        self.output = nn.Linear(16 * 7 * 7, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return scores."""
        for layer in (self.first, self.second):
            x = torch.max_pool2d(torch.relu(layer(x)), 2)
        return self.output(x.flatten(1))


def trainer(network: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[int], float]:
    """Work that trains for so many steps."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    criterion = nn.CrossEntropyLoss()

    def step() -> Any:
        optimizer.zero_grad()
        with torch.enable_grad():
            loss = criterion(network(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def train(steps: int) -> float:
        total = torch.zeros(())
        for _ in range(steps):
            total += step()
        return float(total)

    return train


def perceptron() -> Callable[[int], float]:
    """A step that takes a fraction of a millisecond: Python is most of it."""
    torch.manual_seed(1)
    return trainer(Perceptron(), torch.randn(8, 16), torch.randint(4, (8,)))


def convolutions() -> Callable[[int], float]:
    """A step of some milliseconds."""
    torch.manual_seed(2)
    return trainer(Convolutions(), torch.randn(16, 1, 28, 28), torch.randint(10, (16,)))
