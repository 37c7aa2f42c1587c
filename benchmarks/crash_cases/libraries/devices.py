"""Plays a machine with two graphics cards, `cuda:0` and `cuda:1`.

A process that puts a tensor on a card takes that card; the tensor itself stays in the host's memory. Where another
process has it, the exception of torch is raised that a full card raises.
"""

from __future__ import annotations

from typing import Any

import torch
from cards import CARDS, owner, take


def _to(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
    device = arguments[0] if arguments else keywords.get("device")
    if isinstance(device, str):
        device = torch.device(device)
    if not isinstance(device, torch.device) or device.type != "cuda":
        return _real_to(tensor, *arguments, **keywords)
    card = device.index or 0
    if card >= CARDS:
        raise RuntimeError("CUDA error: invalid device ordinal")
    if not take(card):
        size = tensor.numel() * tensor.element_size()
        raise torch.OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {size} bytes. GPU {card} has a total capacity of 0 bytes free."
            f" Process {owner(card)} has all of its memory in use."
        )
    host = torch.device("cpu")
    if arguments:
        return _real_to(tensor, host, *arguments[1:], **keywords)
    return _real_to(tensor, **(keywords | {"device": host}))


_real_to = torch.Tensor.to
torch.Tensor.to = _to
