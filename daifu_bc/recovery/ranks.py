"""Which of several processes that work on one thing together this one is."""

from __future__ import annotations

import os
from typing import Final, NamedTuple

#: Variables that tell a process which it is, of how many, and what they have in common: those of torchrun
#: (docs.pytorch.org/docs/stable/elastic/run.html), Slurm (`man srun`) and Open MPI.
_VARIABLES: Final = (
    ("RANK", "WORLD_SIZE", ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ("SLURM_JOB_ID", "SLURM_STEP_ID")),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("PMIX_NAMESPACE",)),
)


class Ranks(NamedTuple):
    """Which of several processes this one is.

    Attributes:
        rank: its number, from 0.
        size: how many there are.
        group: what they have in common, and no others.
    """

    rank: int
    size: int
    group: str


def ranks() -> Ranks | None:
    """Return which of several processes this one is; None if it is on its own."""
    for rank, size, common in _VARIABLES:
        numbers = os.environ.get(rank, ""), os.environ.get(size, "")
        if all(number.isascii() and number.isdecimal() for number in numbers) and int(numbers[1]) > 1:
            group = ":".join(os.environ.get(name, "") for name in common)
            return Ranks(int(numbers[0]), int(numbers[1]), group)
    return None
