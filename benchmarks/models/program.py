"""Trains a model for an epoch, and fails in the middle of it: `python -m benchmarks.models.program MODEL ...`.

It writes down when it comes by the place of the failure, and at its end what has become of the weights. With `--steps`
it needs no other epoch; `--until` ends it a few steps behind the place.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from pathlib import Path

import torch

from benchmarks.models.catalogue import KINDS
from benchmarks.models.training import Training

#: The failures: one that does not come again, a value that is wrong, and a mistake in the code.
SHARES: dict[str, Callable[[], Iterator[float]]] = {
    "none": lambda: repeat(1.0),
    "transient": lambda: chain([0.0], repeat(1.0)),
    "value": lambda: repeat(0.0),
    "code": lambda: repeat(1.0),
}
PLACE = {"share": 1.0}


def train(training: Training, options: argparse.Namespace, done: int) -> list[float]:
    """Train for the rest of the epoch; when the run came by the place of the failure."""
    reached: list[float] = []
    shares = SHARES[options.fault]()
    for number, inputs, targets in training.batches(done):
        if number == options.until:
            break
        if number == options.crash:
            if options.fault == "code":
                reached.append(time.monotonic() * PLACE["shaer"])
            else:
                reached.append(time.monotonic() / next(shares))
        training.step(inputs, targets)
        if options.every and (number + 1) % options.every == 0:
            training.save(options.checkpoint, number + 1)
    return reached


def digest(training: Training) -> str:
    """What tells two sets of weights apart, by any bit."""
    found = hashlib.sha256()
    for value in training.model.state_dict().values():
        found.update(value.numpy().tobytes())
    return found.hexdigest()


def main() -> None:
    """Train as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=KINDS)
    parser.add_argument("--steps", type=int, required=True, help="of the epoch")
    parser.add_argument("--crash", type=int, required=True, metavar="STEP")
    parser.add_argument("--until", type=int, required=True, metavar="STEP")
    parser.add_argument("--fault", choices=SHARES, default="none")
    parser.add_argument("--checkpoint", type=Path, metavar="FILE")
    parser.add_argument("--every", type=int, default=0, metavar="STEPS", help="between checkpoints")
    parser.add_argument("--resume", action="store_true", help="from the checkpoint")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    options = parser.parse_args()
    torch.set_num_threads(1)
    training = Training(options.model, options.steps)
    done = training.load(options.checkpoint) if options.resume else 0
    ready = time.monotonic()
    reached = train(training, options, done)
    result = {"ready": ready, "reached": reached, "digest": digest(training)}
    options.output.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
