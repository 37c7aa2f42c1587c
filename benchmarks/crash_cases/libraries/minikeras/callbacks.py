"""What a training loop calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Callback:
    """The base of all callbacks; `fit` sets `model`."""

    model: Any = None

    def on_train_begin(self) -> None:
        """Called once, before the first epoch."""

    def on_epoch_begin(self, epoch: int) -> None:
        """Called before each epoch."""

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Called after each epoch, with the mean loss and metrics."""


class LearningRateScheduler(Callback):
    """Sets the learning rate before each epoch."""

    def __init__(self, schedule: Callable[[int], float]) -> None:
        self.schedule = schedule

    def on_epoch_begin(self, epoch: int) -> None:
        self.model.optimizer.learning_rate = self.schedule(epoch)


class History(Callback):
    """Collects what `on_epoch_end` is given."""

    def __init__(self) -> None:
        self.history: dict[str, list[float]] = {}

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)
