"""The final numbers of a program: one line that changes with any bit of them."""

from __future__ import annotations

import hashlib
from typing import Any


def fingerprint(state: dict[str, Any]) -> str:
    """Return the SHA-256 of all tensors of a state dict, in order, names included."""
    digest = hashlib.sha256()
    for name, tensor in state.items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
