"""Processes that work on one thing together: when one of them is held, the others wait for it, and not for ever."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, Final, NamedTuple

#: Variables that tell a process which it is, of how many, and what they have in common: those of torchrun
#: (docs.pytorch.org/docs/stable/elastic/run.html), Slurm (`man srun`) and Open MPI.
_VARIABLES: Final = (
    ("RANK", "WORLD_SIZE", ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ("SLURM_JOB_ID", "SLURM_STEP_ID")),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("PMIX_NAMESPACE",)),
)
_DISTRIBUTED: Final = "torch.distributed"


class Ranks(NamedTuple):
    """Which of several processes this one is.

    Attributes:
        rank: its number, from 0.
        size: how many there are.
        group: what they have in common, and no others.
        patience: seconds for which one of them waits for the others in a collective operation; None if nobody knows.
    """

    rank: int
    size: int
    group: str
    patience: float | None


def ranks() -> Ranks | None:
    """Return which of several processes this one is; None if it is on its own. Nothing is imported for it."""
    for rank, size, common in _VARIABLES:
        numbers = os.environ.get(rank, ""), os.environ.get(size, "")
        if all(number.isascii() and number.isdecimal() for number in numbers) and int(numbers[1]) > 1:
            group = ":".join(os.environ.get(name, "") for name in common)
            return Ranks(int(numbers[0]), int(numbers[1]), group, _patience())
    return None


def _patience() -> float | None:
    """How long torch's processes wait for each other."""
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
    limit = "" if found.patience is None else f", for at most {found.patience:g} s"
    return (
        f"rank {found.rank} of {found.size}; the others wait for it in their next collective operation{limit}"
    )
