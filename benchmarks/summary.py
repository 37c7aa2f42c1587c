"""One table for each measure with a column for each version: `python -m benchmarks.summary FILE ...`."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.report import TITLES, load, number, spread


def cell(figure: Figure | None) -> str:
    """A median with its quartiles; bold if it misses its bound."""
    if figure is None:
        return ""
    value = number(figure.median, figure.unit)
    if figure.reached is False and not figure.hidden:
        value = f"**{value}**"
    return value + spread(figure.values, figure.unit)


def noise(figures: list[Figure]) -> str:
    """The span of the medians of plain code against plain code."""
    medians = [statistics.median(figure.control) for figure in figures if figure.control]
    if not medians:
        return ""
    low, high = (number(value, figures[0].unit) for value in (min(medians), max(medians)))
    return low if low == high else f"{low}..{high}"


def table(group: str, columns: dict[str, list[Figure]]) -> Iterator[str]:
    """The lines of a measure's table."""
    found = {name: {f.name: f for f in figures if f.group == group} for name, figures in columns.items()}
    names = list(dict.fromkeys(name for figures in found.values() for name in figures))
    versions = [name for name, figures in found.items() if figures]
    yield f"| what | bound | {' | '.join(versions)} | plain against plain |"
    yield f"| --- | --- | {' | '.join('---' for _ in versions)} | --- |"
    for name in names:
        known = [found[version][name] for version in versions if name in found[version]]
        first = known[0]
        unit = "" if first.unit == "ratio" else f", {first.unit}"
        bound = "" if first.bound is None else number(first.bound, first.unit)
        cells = " | ".join(cell(found[version].get(name)) for version in versions)
        yield f"| {name}{unit} | {bound} | {cells} | {noise(known)} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.summary", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    columns = {path.stem: load(path)[1] for path in options.files}
    for group, title in TITLES.items():
        if any(figure.group == group for figures in columns.values() for figure in figures):
            print(f"\n### {title}\n")
            print("\n".join(table(group, columns)))


if __name__ == "__main__":
    main()
