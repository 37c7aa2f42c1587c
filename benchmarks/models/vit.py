"""A vision transformer: patches as words, a token for the class, normalisation before each layer."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    """Each position looks at all.

    Args:
        width: of a position's vector.
        heads: how many parts of it are compared by themselves.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.mixed = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what each position has taken from the others."""
        batch, length, width = x.shape
        split = self.mixed(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        taken = functional.scaled_dot_product_attention(query, key, value)
        return self.output(taken.transpose(1, 2).reshape(batch, length, width))


class Encoder(nn.Module):
    """Attention and a perceptron, each beside a shortcut.

    Args:
        width: of a position's vector.
        heads: of the attention.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.before_perceptron = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output."""
        x = x + self.attention(self.before_attention(x))
        return x + self.perceptron(self.before_perceptron(x))


class ViT(nn.Module):
    """A vision transformer.

    Args:
        size: of an image's side.
        patch: of a patch's side.
        width: of a position's vector.
        depth: how many layers.
        heads: of the attention.
        classes: how many there are to tell apart.
    """

    def __init__(self, size: int, patch: int, width: int, depth: int, heads: int, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(1, (size // patch) ** 2 + 1, width))
        self.layers = nn.ModuleList(Encoder(width, heads) for _ in range(depth))
        self.normal = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return scores."""
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.normal(x[:, 0]))


def vit() -> nn.Module:
    """Six layers of width 48 for images of 32 by 32."""
    return ViT(size=32, patch=4, width=48, depth=6, heads=3, classes=10)
