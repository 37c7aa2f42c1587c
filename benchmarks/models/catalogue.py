"""The models by name, and what they are trained on. Without torch the names can still be listed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch
    from torch import nn


class Kind(NamedTuple):
    """A model: where it is defined, and its synthetic data.

    Attributes:
        title: what people call it.
        maker: `module:function`.
        text: whether it reads tokens; images else.
        batch: how many samples a step has.
    """

    title: str
    maker: str
    text: bool
    batch: int


KINDS = {
    "resnet18": Kind("ResNet-18", "resnet:resnet18", False, 8),
    "resnet50": Kind("ResNet-50", "resnet:resnet50", False, 8),
    "vit": Kind("ViT", "vit:vit", False, 8),
    "swin": Kind("Swin", "swin:swin", False, 4),
    "gpt2": Kind("GPT-2", "gpt2:gpt2", True, 8),
    "llama": Kind("LLaMA", "llama:llama", True, 8),
}
IMAGE = (3, 32, 32)
CLASSES = 10
WORDS, LENGTH = 256, 48


def model(name: str) -> nn.Module:
    """A model with random weights."""
    module, _, function = KINDS[name].maker.partition(":")
    made: nn.Module = getattr(importlib.import_module(f"benchmarks.models.{module}"), function)()
    return made


def samples(name: str, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """So many inputs and targets, random ones."""
    import torch

    if KINDS[name].text:
        text = torch.randint(WORDS, (count, LENGTH + 1))
        return text[:, :-1], text[:, 1:]
    return torch.randn(count, *IMAGE), torch.randint(CLASSES, (count,))
