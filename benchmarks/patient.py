"""A training run that is made to crash. Its function has 41 lines."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext


def train(check: Callable[[str], object], epochs: int, rate: float = 0.1) -> list[float]:
    """Train for some epochs."""
    history: list[float] = []
    weights = [0.0] * 4
    best = float("inf")
    check("start")
    data = [[float(i + j) for j in range(4)] for i in range(8)]
    order = list(range(len(data)))
    for epoch in range(epochs):
        total = 0.0
        order.reverse()
        check("epoch")
        for number in order:
            sample = data[number]
            predicted = sum(w * x for w, x in zip(weights, sample, strict=True))
            error = predicted - number
            check("batch")
            if error > 1e6:
                weights = [0.0] * 4
                continue
            gradient = [error * x for x in sample]
            for i, step in enumerate(gradient):
                weights[i] -= rate * step * 1e-3
            total += error * error
        with nullcontext(total) as loss:
            check("with")
            mean = loss / len(data)
        try:
            check("try")
            history.append(mean)
        finally:
            total = 0.0
        if mean < best:
            best = mean
        elif epoch > 100:
            rate /= 2
        message = f"epoch {epoch}: {mean:.3f}"
        check(message[:5])
    check("end")
    history.sort()
    return history
