"""ResNet-18 and ResNet-50 with few channels: an eighth and a sixteenth."""

from __future__ import annotations

import torch
from torch import nn


class BasicBlock(nn.Module):
    """Two convolutions beside a shortcut.

    Args:
        inputs: channels that come in.
        width: channels of the block.
        stride: of the first convolution.
    """

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *convolution(inputs, width, 3, stride), nn.ReLU(), *convolution(width, width, 3, 1)
        )
        self.shortcut = shortcut(inputs, width, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output."""
        return torch.relu(self.body(x) + self.shortcut(x))


class Bottleneck(nn.Module):
    """A convolution between two of size one that narrow and widen, beside a shortcut.

    Args:
        inputs: channels that come in.
        width: channels of the inner convolution.
        stride: of the inner convolution.
    """

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *convolution(inputs, width, 1, 1),
            nn.ReLU(),
            *convolution(width, width, 3, stride),
            nn.ReLU(),
            *convolution(width, width * self.expansion, 1, 1),
        )
        self.shortcut = shortcut(inputs, width * self.expansion, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output."""
        return torch.relu(self.body(x) + self.shortcut(x))


def convolution(inputs: int, outputs: int, size: int, stride: int) -> tuple[nn.Module, nn.Module]:
    """A convolution and its normalisation."""
    layer = nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False)
    return layer, nn.BatchNorm2d(outputs)


def shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    """What goes past a block: its input, brought to the shape of its output."""
    if inputs == outputs and stride == 1:
        return nn.Identity()
    return nn.Sequential(*convolution(inputs, outputs, 1, stride))


class ResNet(nn.Module):
    """The stem, four stages of blocks, and a linear layer on the average.

    Args:
        block: kind of the blocks.
        depths: how many of them each stage has.
        width: channels of the first stage.
        classes: how many there are to tell apart.
    """

    def __init__(
        self, block: type[BasicBlock | Bottleneck], depths: tuple[int, ...], width: int, classes: int
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(*convolution(3, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        blocks: list[nn.Module] = []
        inputs = width
        for stage, depth in enumerate(depths):
            for number in range(depth):
                stride = 2 if stage and not number else 1
                blocks.append(block(inputs, width << stage, stride))
                inputs = (width << stage) * block.expansion
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return scores."""
        return self.head(self.blocks(self.stem(images)).mean((2, 3)))


def resnet18() -> nn.Module:
    """Two basic blocks in each stage."""
    return ResNet(BasicBlock, (2, 2, 2, 2), 8, 10)


def resnet50() -> nn.Module:
    """3, 4, 6 and 3 bottlenecks."""
    return ResNet(Bottleneck, (3, 4, 6, 3), 4, 10)
