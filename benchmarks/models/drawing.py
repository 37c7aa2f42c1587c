"""The figures of the models as pictures; where matplotlib is not installed, none."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, quartiles
from benchmarks.models.catalogue import KINDS
from benchmarks.models.tables import IN_PLACE, WAYS, Figures, grouped, spoken

HEIGHT, WIDTH = 3.6, 8.0


def draw(figures: list[Figure], folder: Path) -> list[Path]:
    """Draw what has been measured of all models that are in the figures; the files."""
    if importlib.util.find_spec("matplotlib") is None:
        return []
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "daifu_bc"  # the same picture is the same file
    groups = grouped(figures)
    drawn = []
    if "overhead" in groups:
        series = {f"scope {scope}": f"scope `{scope}`" for scope in ("project", "all")}
        values = {label: _values(groups["overhead"], way) for label, way in series.items()}
        values |= {spoken(way).replace("`", ""): _values(groups["checkpoints"], way) for way in WAYS}
        drawn.append(_bars(folder / "models_overhead.svg", values, "a step, plain = 1", baseline=1.0))
    if "restoring" in groups:
        ways = (*IN_PLACE, "from a checkpoint", "from scratch")
        values = {way.replace("`", ""): _values(groups["restoring"], way) for way in ways}
        drawn.append(_bars(folder / "models_restoring.svg", values, "ms until running again"))
    return drawn


def _values(figures: Figures, way: str) -> dict[str, Figure]:
    found = {}
    for kind in KINDS.values():
        figure = figures.get(f"{kind.title}, {way}")
        if figure is not None:
            found[kind.title] = figure
    return found


def _bars(path: Path, series: dict[str, dict[str, Figure]], label: str, baseline: float = 0.0) -> Path:
    """Groups of bars by model, on a logarithmic scale, with the quartiles."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(WIDTH, HEIGHT), layout="constrained")
    models = list(next(iter(series.values())))
    width = 0.8 / len(series)
    for number, (name, found) in enumerate(series.items()):
        places = [index - 0.4 + (number + 0.5) * width for index in range(len(models))]
        medians = [found[model].median for model in models]
        spreads = [quartiles(found[model].values) for model in models]
        errors: Any = [
            [middle - low for middle, (low, _) in zip(medians, spreads, strict=True)],
            [high - middle for middle, (_, high) in zip(medians, spreads, strict=True)],
        ]
        axes.bar(places, medians, width, label=name, yerr=errors, error_kw={"linewidth": 0.8})
    axes.set_yscale("log")
    if baseline:
        axes.axhline(baseline, color="black", linewidth=0.8)
    axes.set_xticks(range(len(models)), models)
    axes.set_ylabel(label)
    axes.legend(fontsize="small", ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path
