"""A step of a PyTorch training loop, vaccinated against plain; nothing where torch is not installed."""

from __future__ import annotations

import importlib.util

from benchmarks.figures import Figure
from benchmarks.pairs import FOLDER, calibrate, interleave, settle, variants

#: The names in training.py, and what they are.
NETWORKS = {
    "perceptron": "step of a tiny MLP (batch 8, width 16)",
    "convolutions": "step of a ConvNet (batch 16, 28x28)",
}


def measure(quick: bool) -> list[Figure]:
    """A figure for each network."""
    if importlib.util.find_spec("torch") is None:
        return []
    import torch

    torch.set_num_threads(1)
    editions, rounds, seconds = (1, 5, 0.05) if quick else (3, 21, 0.12)
    figures = {
        name: Figure("torch", text, "ratio", [], plain_unit="µs", note=f"torch {torch.__version__}")
        for name, text in NETWORKS.items()
    }
    for _ in range(editions):
        modules = variants(FOLDER / "training.py")
        settle()
        for name, figure in figures.items():
            if len({module[name]()(5) for module in modules}) > 1:
                raise AssertionError(f"{name} gives different results")
            works = [module[name]() for module in modules]
            count = min(calibrate(work, seconds) for work in works)
            for first, second, third in interleave(works, count, rounds):
                figure.plain.append(first / count * 1e6)
                figure.values.append(second / first)
                figure.control.append(third / first)
    return list(figures.values())
