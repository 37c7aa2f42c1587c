"""How a model is trained: an epoch over shuffled batches, checkpoints, and the way back from one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from benchmarks.models import catalogue

SEED = 7


class Training:
    """A model, its optimiser and its data, everything seeded.

    Args:
        name: of the model in the catalogue.
        steps: how many an epoch has.
        device: where it is trained.
    """

    def __init__(self, name: str, steps: int, device: str = "cpu") -> None:
        torch.manual_seed(SEED)
        self.device = device
        self.model = catalogue.model(name).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        batch = catalogue.KINDS[name].batch
        self.data = TensorDataset(*catalogue.samples(name, steps * batch))
        # Generators of their own: dropout draws from the common one, and a resumed run is to draw the same.
        self.generators = torch.Generator(), torch.Generator()
        order = RandomSampler(self.data, generator=self.generators[0])
        self.loader = DataLoader(self.data, batch_size=batch, sampler=order, generator=self.generators[1])

    def loss(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """How wrong the model is about a batch."""
        scores = self.model(inputs.to(self.device))
        return functional.cross_entropy(scores.flatten(0, -2), targets.to(self.device).flatten())

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Train on a batch; the loss before."""
        self.optimizer.zero_grad()
        loss = self.loss(inputs, targets)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def batches(self, done: int = 0) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
        """Number, inputs and targets of an epoch's batches behind those that are done."""
        for generator in self.generators:
            generator.manual_seed(SEED)
        for number, (inputs, targets) in enumerate(self.loader):
            if number >= done:  # the loader has no way to begin further on: what it gives out is read past
                yield number, inputs, targets

    def state(self, done: int) -> dict[str, Any]:
        """All that a run needs to go on behind so many steps of the epoch."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "done": done,
        }

    def save(self, path: Path, done: int) -> None:
        """Write a checkpoint so that a crash in the middle leaves the one before."""
        new = path.with_suffix(".new")
        torch.save(self.state(done), new)
        new.replace(path)

    def load(self, path: Path) -> int:
        """Take a checkpoint; how many steps of the epoch are done."""
        return self.restore(torch.load(path, weights_only=True))

    def copied_state(self) -> dict[str, Any]:
        """The state, which later steps do not change."""
        return copy.deepcopy(self.state(0))

    def restore(self, state: dict[str, Any]) -> int:
        """Take a state; how many steps of the epoch are done."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        return int(state["done"])
