"""Plays torchvision's MNIST: small images of ten shapes, as a dataset in memory.

Each class is one random 12x12 pattern; an image is its pattern, shifted by a pixel or two, with noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

SIDE = 12


class Digits:
    """Images of one channel, 12x12, and their classes 0 to 9.

    Args:
        size: how many.
        train: the training part; else the one for testing.
        transform: what is done to each image.
    """

    def __init__(self, size: int, *, train: bool, transform: Callable[[Any], Any] | None = None) -> None:
        generator = torch.Generator().manual_seed(7)
        patterns = torch.rand(10, SIDE, SIDE, generator=generator).round()
        generator.manual_seed(11 if train else 12)
        self.labels = torch.randint(0, 10, (size,), generator=generator)
        shifts = torch.randint(-1, 2, (size, 2), generator=generator).tolist()
        images = [
            torch.roll(patterns[label], shift, (0, 1))
            for label, shift in zip(self.labels.tolist(), shifts, strict=True)
        ]
        noise = 0.3 * torch.randn(size, SIDE, SIDE, generator=generator)
        self.images = (torch.stack(images) + noise)[:, None]
        self.transform = transform

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image = self.images[index]
        return (self.transform(image) if self.transform else image), int(self.labels[index])
