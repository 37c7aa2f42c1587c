"""A small plotting library after the manner of matplotlib: figures are numbered and kept, axes draw into an array."""

from __future__ import annotations

from typing import Any

import numpy as np

#: All figures that are open, by their number.
figures: dict[int, Figure] = {}
_made = 0


class Axes:
    """One picture of a figure."""

    def __init__(self) -> None:
        self.title = ""
        self.image: Any = np.zeros((1, 1))

    def imshow(self, image: Any) -> None:
        """Draw an image."""
        self.image = np.asarray(image)

    def set_title(self, title: str) -> None:
        """Write a line above the picture."""
        self.title = title


class Figure:
    """Some axes side by side."""

    def __init__(self, number: int, axes: list[Axes]) -> None:
        self.number = number
        self.axes = axes

    def to_bytes(self) -> bytes:
        """Return what a file of the figure would hold."""
        return b"".join(axes.title.encode() + axes.image.tobytes() for axes in self.axes)


def subplots(columns: int = 1) -> tuple[Figure, Any]:
    """Open a figure and return it with its axes: a list of them, or the bare object if there is only one."""
    global _made
    _made += 1
    axes = [Axes() for _ in range(columns)]
    figures[_made] = Figure(_made, axes)
    return figures[_made], axes[0] if columns == 1 else axes


def close(figure: Figure) -> None:
    """Close a figure."""
    del figures[figure.number]
