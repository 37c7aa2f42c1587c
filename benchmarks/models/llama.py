"""LLaMA: RMSNorm, rotary positions, a gated perceptron (SwiGLU), no biases, fewer keys than queries."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class RMSNorm(nn.Module):
    """Divides by the root of the mean square.

    Args:
        width: of a position's vector.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return vectors of about the same length."""
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


def rotary(length: int, width: int) -> torch.Tensor:
    """The turns that tell a position: a complex number for each pair of a head's numbers."""
    speeds = 10000.0 ** (-torch.arange(0, width, 2) / width)
    angles = torch.outer(torch.arange(length), speeds)
    return torch.polar(torch.ones_like(angles), angles)


def turned(x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Queries or keys, turned by their positions."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turns).flatten(-2)


class Attention(nn.Module):
    """Each position looks at itself and those before it; several heads share keys and values.

    Args:
        width: of a position's vector.
        heads: of the queries.
        shared: heads of keys and values.
    """

    def __init__(self, width: int, heads: int, shared: int) -> None:
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, width // heads
        self.query = nn.Linear(width, heads * self.size, bias=False)
        self.key = nn.Linear(width, shared * self.size, bias=False)
        self.value = nn.Linear(width, shared * self.size, bias=False)
        self.output = nn.Linear(heads * self.size, width, bias=False)

    def forward(self, x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        """Return what each position has taken from those before it."""
        batch, length, _ = x.shape
        query = self.query(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        key = self.key(x).view(batch, length, self.shared, self.size).transpose(1, 2)
        value = self.value(x).view(batch, length, self.shared, self.size).transpose(1, 2)
        times = self.heads // self.shared
        taken = functional.scaled_dot_product_attention(
            turned(query, turns),
            turned(key, turns).repeat_interleave(times, 1),
            value.repeat_interleave(times, 1),
            is_causal=True,
        )
        return self.output(taken.transpose(1, 2).reshape(batch, length, -1))


class SwiGLU(nn.Module):
    """A perceptron with a gate.

    Args:
        width: of a position's vector.
        inner: of the vector in between.
    """

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output."""
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """Attention and a perceptron, each beside a shortcut.

    Args:
        width: of a position's vector.
        heads: of the queries.
        shared: heads of keys and values.
    """

    def __init__(self, width: int, heads: int, shared: int) -> None:
        super().__init__()
        self.before_attention = RMSNorm(width)
        self.attention = Attention(width, heads, shared)
        self.before_perceptron = RMSNorm(width)
        self.perceptron = SwiGLU(width, width * 8 // 3)

    def forward(self, x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        """Return the layer's output."""
        x = x + self.attention(self.before_attention(x), turns)
        return x + self.perceptron(self.before_perceptron(x))


class LLaMA(nn.Module):
    """A decoder of text.

    Args:
        words: how many different tokens there are.
        length: of the longest text.
        width: of a position's vector.
        depth: how many layers.
        heads: of the queries.
        shared: heads of keys and values.
    """

    turns: torch.Tensor

    def __init__(self, words: int, length: int, width: int, depth: int, heads: int, shared: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads, shared) for _ in range(depth))
        self.normal = RMSNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.register_buffer("turns", rotary(length, width // heads), persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return scores of each position's next token."""
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x, self.turns[: tokens.shape[1]])
        return self.head(self.normal(x))


def llama() -> nn.Module:
    """Six layers of width 48, texts of 48 tokens."""
    return LLaMA(words=256, length=48, width=48, depth=6, heads=6, shared=2)
