"""Several processes work on one thing; one of them, or all, crash while the others wait for it."""

from __future__ import annotations

from typing import Final

SIZE: Final = 3
STEPS: Final = 6

#: Each rank meets the others after every step, as in a collective operation, which gives up after a time.
PROGRAM: Final = """
import os
import time
from pathlib import Path

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
meeting = Path(os.environ["MEETING"])

def meet(step):
    (meeting / f"{step}.{rank}").touch()
    until = time.monotonic() + 90
    while len(list(meeting.glob(f"{step}.*"))) < size:
        if time.monotonic() > until:
            raise TimeoutError(f"rank {rank} has waited in vain at step {step}")
        time.sleep(0.005)

def loss_of(step, scales):
    return 10 * (rank + 1) + SCALE

def train(steps):
    scales = [1, 2, 3, 4, 5, 6]
    total = 0
    for step in range(steps):
        total += loss_of(step, scales)
        meet(step)
        print("rank", rank, "step", step, "total", total, flush=True)

train(6)
"""

RIGHT: Final = PROGRAM.replace("SCALE", "scales[step]")
#: Rank 1 has lost some of its data.
ONE_FAILS: Final = RIGHT.replace(
    "    total = 0\n", "    if rank == 1:\n        del scales[4:]\n    total = 0\n"
)
#: All have the same mistake in the same line, which shows after some steps.
ALL_FAIL: Final = PROGRAM.replace("SCALE", "(scales[step] if step < 4 else scale[step])")


def expected(rank: int) -> str:
    """Return what a rank of the right program prints, worked out by hand."""
    totals = [10 * (rank + 1) * (step + 1) + (step + 1) * (step + 2) // 2 for step in range(STEPS)]
    return "".join(f"rank {rank} step {step} total {total}\n" for step, total in enumerate(totals))
