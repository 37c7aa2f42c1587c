"""Data sets that are made up on the spot, always the same: images of bars, one class for each place of the bar."""

from __future__ import annotations

from typing import Any

import numpy as np


class _Images:
    def __init__(self, side: int, channels: int, training: int, test: int) -> None:
        self._side, self._channels, self._counts = side, channels, (training, test)

    def load_data(self) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        """Return (images, labels) for training and for the test, as unsigned bytes."""
        random = np.random.RandomState(self._side)
        return self._part(random, self._counts[0]), self._part(random, self._counts[1])

    def _part(self, random: Any, count: int) -> tuple[Any, Any]:
        labels = random.randint(0, 10, count)
        images = random.randint(0, 60, (count, self._side, self._side, self._channels))
        for image, label in zip(images, labels, strict=True):
            place = int(label % 5) * (self._side // 5)
            bar = image[place : place + 2] if label < 5 else image[:, place : place + 2]
            bar += 180
        images = images.astype("uint8")
        return (images[..., 0], labels) if self._channels == 1 else (images, labels.reshape(-1, 1))


#: Grey images of 12 times 12 points; labels in one row.
mnist = _Images(12, 1, 384, 96)
#: Coloured images of 16 times 16 points; labels in one column.
cifar10 = _Images(16, 3, 256, 64)
