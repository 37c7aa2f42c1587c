"""What models are made of, for programs that want to look inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def function(network: Callable[[Any], Any], loss: Callable[[Any], Any]) -> Callable[[Any], tuple[float, Any]]:
    """Return what computes, for a batch, the loss of the network's output and how it changes with the batch."""

    def compute(batch: Any) -> tuple[float, Any]:
        batch = batch.detach().requires_grad_()
        value = loss(network(batch))
        (gradients,) = torch.autograd.grad(value, batch)
        return value.item(), gradients / (gradients.square().mean().sqrt() + 1e-5)

    return compute
