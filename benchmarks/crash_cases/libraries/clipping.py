"""Plays the `clip_grad_norm_` of earlier versions of PyTorch, which moved the factor to the device for each gradient."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


def clip_grad_norm_(parameters: Iterable[Any], max_norm: float) -> Any:
    """Scale all gradients so that their norm is no more than `max_norm`; return what it was."""
    gradients = [parameter.grad.detach() for parameter in parameters if parameter.grad is not None]
    total_norm = torch.norm(torch.stack([torch.norm(gradient) for gradient in gradients]))
    factor = max_norm / (total_norm + 1e-6)
    if factor < 1:
        for gradient in gradients:
            gradient.mul_(factor.to(gradient.device))
    return total_norm
