"""The results as a file of pyperf, for `python -m pyperf compare_to` and the like."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure

_SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3}


def timings(figures: Iterable[Figure]) -> Iterator[tuple[str, list[float]]]:
    """What took how long, in seconds: plain and vaccinated code each for itself; figures that are no time are left out."""
    for figure in figures:
        name = f"{figure.group}: {figure.name}"
        plain = [value * _SECONDS.get(figure.plain_unit, 0.0) for value in figure.plain]
        if all(value > 0 for value in plain) and plain:
            yield f"{name}, plain", plain
            if figure.unit == "ratio" and len(figure.values) == len(plain):
                pairs = zip(figure.values, plain, strict=True)
                yield f"{name}, vaccinated", [ratio * value for ratio, value in pairs]
        elif figure.unit in _SECONDS and not figure.control:
            values = [value * _SECONDS[figure.unit] for value in figure.values]
            if all(value > 0 for value in values):
                yield name, values


def save(path: Path, machine: dict[str, Any], figures: Iterable[Figure]) -> None:
    """Write the file; nothing where pyperf is not installed.

    Args:
        path: the file.
        machine: what describes the machine.
        figures: the results.
    """
    if importlib.util.find_spec("pyperf") is None:
        return
    pyperf = importlib.import_module("pyperf")
    described = {name: value for name, value in machine.items() if isinstance(value, (str, int, float))}
    benchmarks = [
        pyperf.Benchmark(
            [
                pyperf.Run(
                    values, metadata={**described, "name": name, "unit": "second"}, collect_metadata=False
                )
            ]
        )
        for name, values in timings(figures)
    ]
    if benchmarks:
        pyperf.BenchmarkSuite(benchmarks).dump(str(path), replace=True)
