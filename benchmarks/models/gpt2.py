"""GPT-2: learned positions, normalisation before each layer, the embedding's weights for the output too."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    """Each position looks at itself and those before it.

    Args:
        width: of a position's vector.
        heads: how many parts of it are compared by themselves.
        dropout: part of the values that is left out in training.
    """

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.mixed = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what each position has taken from those before it."""
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.mixed(x).split(width, -1)
        )
        taken = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.dropout(self.output(taken.transpose(1, 2).reshape(batch, length, width)))


class Block(nn.Module):
    """Attention and a perceptron, each beside a shortcut.

    Args:
        width: of a position's vector.
        heads: of the attention.
        dropout: part of the values that is left out in training.
    """

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout)
        self.before_perceptron = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(approximate="tanh"),
            nn.Linear(4 * width, width),
            nn.Dropout(dropout),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output."""
        x = x + self.attention(self.before_attention(x))
        return x + self.perceptron(self.before_perceptron(x))


class GPT2(nn.Module):
    """A decoder of text.

    Args:
        words: how many different tokens there are.
        length: of the longest text.
        width: of a position's vector.
        depth: how many layers.
        heads: of the attention.
        dropout: part of the values that is left out in training.
    """

    def __init__(
        self, words: int, length: int, width: int, depth: int, heads: int, dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(length, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(depth))
        self.normal = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return scores of each position's next token."""
        x = self.dropout(
            self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        )
        for block in self.blocks:
            x = block(x)
        return self.head(self.normal(x))


def gpt2() -> nn.Module:
    """Six layers of width 48, texts of 48 tokens."""
    return GPT2(words=256, length=48, width=48, depth=6, heads=3)
