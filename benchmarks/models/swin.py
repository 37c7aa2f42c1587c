"""A Swin transformer: attention inside windows, which every second layer shifts, in stages that halve the image."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class WindowAttention(nn.Module):
    """Each position looks at those of its window; where they lie counts too.

    Args:
        width: of a position's vector.
        heads: how many parts of it are compared by themselves.
        window: of a window's side.
    """

    places: torch.Tensor

    def __init__(self, width: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads = heads
        self.mixed = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.bias = nn.Parameter(0.02 * torch.randn((2 * window - 1) ** 2, heads))
        axes = torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")
        grid = torch.stack(axes).flatten(1)
        apart = grid[:, :, None] - grid[:, None, :] + window - 1
        self.register_buffer("places", apart[0] * (2 * window - 1) + apart[1])

    def forward(self, windows: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Return what each position has taken from those in its window."""
        count, length, width = windows.shape
        split = self.mixed(windows).view(count, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        bias = self.bias[self.places].permute(2, 0, 1)[None]
        if mask is not None:
            bias = bias + mask.repeat(count // len(mask), 1, 1)[:, None]
        taken = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        return self.output(taken.transpose(1, 2).reshape(count, length, width))


class Layer(nn.Module):
    """Attention in windows and a perceptron, each beside a shortcut.

    Args:
        width: of a position's vector.
        heads: of the attention.
        size: of the image's side, in positions.
        window: of a window's side.
        shift: by how much the windows are moved.
    """

    mask: torch.Tensor | None

    def __init__(self, width: int, heads: int, size: int, window: int, shift: int) -> None:
        super().__init__()
        self.window, self.shift = window, shift if size > window else 0
        self.before_attention = nn.LayerNorm(width)
        self.attention = WindowAttention(width, heads, window)
        self.before_perceptron = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.register_buffer("mask", self._mask(size) if self.shift else None)

    def _mask(self, size: int) -> torch.Tensor:
        """Keep positions apart that a shifted window has brought together from opposite edges."""
        areas = torch.zeros(1, size, size, 1)
        cuts = (slice(-self.window), slice(-self.window, -self.shift), slice(-self.shift, None))
        for number, (rows, columns) in enumerate((r, c) for r in cuts for c in cuts):
            areas[:, rows, columns] = number
        areas = self._windows(areas).squeeze(-1)
        return (areas[:, None] != areas[:, :, None]) * -100.0

    def _windows(self, x: torch.Tensor) -> torch.Tensor:
        batch, size, _, width = x.shape
        side = size // self.window
        cut = x.view(batch, side, self.window, side, self.window, width).transpose(2, 3)
        return cut.reshape(-1, self.window**2, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output; x is batch, row, column, vector."""
        batch, size, _, width = x.shape
        side = size // self.window
        inner = self.before_attention(x)
        if self.shift:
            inner = torch.roll(inner, (-self.shift, -self.shift), (1, 2))
        inner = self.attention(self._windows(inner), self.mask)
        inner = inner.view(batch, side, side, self.window, self.window, width).transpose(2, 3)
        inner = inner.reshape(batch, size, size, width)
        if self.shift:
            inner = torch.roll(inner, (self.shift, self.shift), (1, 2))
        x = x + inner
        return x + self.perceptron(self.before_perceptron(x))


class Merging(nn.Module):
    """Four neighbours become one position of twice the width.

    Args:
        width: of a position's vector.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.normal = nn.LayerNorm(4 * width)
        self.narrow = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return an image with half the sides."""
        parts = [x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        return self.narrow(self.normal(torch.cat(parts, -1)))


class Swin(nn.Module):
    """A Swin transformer.

    Args:
        size: of an image's side.
        patch: of a patch's side.
        window: of a window's side, in patches.
        width: of a position's vector in the first stage.
        depths: how many layers each stage has.
        classes: how many there are to tell apart.
    """

    def __init__(
        self, size: int, patch: int, window: int, width: int, depths: tuple[int, ...], classes: int
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        size //= patch
        layers: list[nn.Module] = []
        for stage, depth in enumerate(depths):
            if stage:
                layers.append(Merging(width))
                width, size = 2 * width, size // 2
            layers += [
                Layer(width, width // 16, size, window, window // 2 if number % 2 else 0)
                for number in range(depth)
            ]
        self.layers = nn.Sequential(*layers)
        self.normal = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return scores."""
        x = self.layers(self.patches(images).permute(0, 2, 3, 1))
        return self.head(self.normal(x).mean((1, 2)))


def swin() -> nn.Module:
    """Three stages of two layers, windows of 4 by 4, for images of 32 by 32."""
    return Swin(size=32, patch=2, window=4, width=32, depths=(2, 2, 2), classes=10)
