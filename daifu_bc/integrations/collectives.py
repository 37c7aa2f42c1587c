"""Processes that work on one thing together: when one of them is held, the others wait for it, and not for ever."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Final

from daifu_bc.recovery.ranks import ranks

_DISTRIBUTED: Final = "torch.distributed"


def _patience() -> float | None:
    """How long torch's processes wait for each other, in seconds; None if nobody knows."""
    distributed: Any = sys.modules.get(_DISTRIBUTED)
    # Each device may have a backend of its own; the first that can be asked will do, as all are given the same time.
    for device in ("cpu", "cuda"):
        # Private names, which another torch may not have: then it is not told.
        with contextlib.suppress(Exception):
            backend = distributed.group.WORLD._get_backend(sys.modules["torch"].device(device))
            return float(backend.options._timeout.total_seconds())
    return None


def remark() -> str:
    """Return what a person has to know who is asked about one of several processes; nothing if it is on its own."""
    found = ranks()
    if found is None:
        return ""
    patience = _patience()
    limit = "" if patience is None else f", for at most {patience:g} s"
    return (
        f"rank {found.rank} of {found.size}; the others wait for it in their next collective operation{limit}"
    )
