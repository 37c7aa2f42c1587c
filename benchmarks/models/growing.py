"""Trains with a batch that doubles until memory runs out: `python -m benchmarks.models.growing MODEL DEVICE OUTPUT`.

On a GPU that is the GPU's memory; on the CPU a limit that the process sets itself. Nothing is caught: it goes on only if somebody
repairs it. Two more steps behind that, and it is done.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import torch

from benchmarks.models import catalogue
from benchmarks.models.training import Training

#: Memory that the process may still take when it trains on the CPU.
LIMIT_BYTES = 512 << 20
MOST = 1 << 24


def train(training: Training, name: str) -> list[tuple[int, float]]:
    """Train; batch and loss of each step."""
    history: list[tuple[int, float]] = []
    batch, growing = 8, True
    while batch < MOST and (growing or history[-1][0] != history[-2][0]):
        loss = training.step(*catalogue.samples(name, batch))
        history.append((batch, float(loss)))
        if growing:
            batch *= 2
    return history


def main() -> None:
    """Train as the command line says."""
    name, device, output = sys.argv[1:]
    training = Training(name, 1, device)
    if device == "cpu":
        torch.set_num_threads(1)
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + LIMIT_BYTES, resource.RLIM_INFINITY))
    history = train(training, name)
    Path(output).write_text(json.dumps(history), encoding="utf-8")


if __name__ == "__main__":
    main()
