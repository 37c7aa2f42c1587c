"""Plays a torch whose calls fail now and then: of itself, and not again.

In front of the path it is imported at the start of a process. The `FAULTY_TO`th call of `Tensor.to` raises what a card
raises whose kernel has failed, and the first `torch.save` finds its file closed to it.
"""

from __future__ import annotations

import os
from typing import Any

import torch

_at = int(os.environ["FAULTY_TO"])
_calls = {"to": 0, "save": 0}
_real_to, _real_save = torch.Tensor.to, torch.save


def _to(*arguments: Any, **keywords: Any) -> Any:
    _calls["to"] += 1
    if _calls["to"] == _at:
        raise RuntimeError("CUDA error: device-side assert triggered")
    return _real_to(*arguments, **keywords)


def _save(*arguments: Any, **keywords: Any) -> Any:
    _calls["save"] += 1
    if _calls["save"] == 1:
        raise PermissionError(13, "Permission denied")
    return _real_save(*arguments, **keywords)


torch.Tensor.to = _to
torch.save = _save
