"""Figures as Markdown tables, and as a file of JSON."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, quartiles
from benchmarks.pairs import FOLDER

RESULTS = FOLDER / "results"

TITLES = {
    "normal": "The normal path: vaccinated / plain",
    "counting": "Instructions executed",
    "torch": "A step of a PyTorch training loop: vaccinated / plain",
    "crossing": "An exception that crosses vaccinated frames and is handled further up: more than plain",
    "vaccinating": "Vaccinating",
    "importing": "Importing",
    "recovering": "From the word to the statement running again",
    "crowded": "The same with many live objects",
}


def version() -> str:
    """The version of CPython, as in the name of the file of results."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def number(value: float, unit: str) -> str:
    """A value with as many digits as say something."""
    if unit == "ratio":
        return f"{value:.3f}"
    if unit == "instructions":
        return f"{value:,.0f}" if abs(value - round(value)) < 1e-9 else f"{value:,.1f}"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"


def spread(values: list[float], unit: str) -> str:
    """The quartiles, if there is more than one sample."""
    if len(values) < 2:
        return ""
    low, high = quartiles(values)
    return f" [{number(low, unit)}..{number(high, unit)}]"


def verdict(figure: Figure) -> str:
    """Whether the bound is kept."""
    if figure.bound is None:
        return "no difference" if figure.hidden else ""
    return "yes" if figure.reached else "yes (in the noise)" if figure.hidden else "**no**"


def rows(figures: Iterable[Figure]) -> Iterator[str]:
    """The lines of a table."""
    yield "| what | plain | median [quartiles] | plain against plain | samples | bound | reached |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for figure in figures:
        unit = "" if figure.unit == "ratio" else f" {figure.unit}"
        plain = (
            f"{number(statistics.median(figure.plain), figure.plain_unit)} {figure.plain_unit}"
            if figure.plain
            else ""
        )
        control = ""
        if figure.control:
            control = number(statistics.median(figure.control), figure.unit) + spread(
                figure.control, figure.unit
            )
        value = f"**{number(figure.median, figure.unit)}**{unit}{spread(figure.values, figure.unit)}"
        bound = "" if figure.bound is None else number(figure.bound, figure.unit)
        name = f"{figure.name} ({figure.note})" if figure.note else figure.name
        yield f"| {name} | {plain} | {value} | {control} | {len(figure.values)} | {bound} | {verdict(figure)} |"


def markdown(machine: dict[str, Any], figures: list[Figure]) -> str:
    """All tables."""
    parts = [f"# CPython {machine['python'].split()[0]}", ""]
    parts += [f"- {name}: {value}" for name, value in machine.items() if value not in ("", None)]
    for group, title in TITLES.items():
        members = [figure for figure in figures if figure.group == group]
        if members:
            parts += ["", f"## {title}", "", *rows(members)]
    return "\n".join(parts) + "\n"


def save(path: Path, machine: dict[str, Any], figures: list[Figure]) -> None:
    """Write a file of results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(_rounded(figure.as_json()), ensure_ascii=False) for figure in figures]
    # A line for each figure, so that differences can be read.
    head, body = json.dumps(machine, ensure_ascii=False), ",\n".join(lines)
    text = f'{{"machine": {head},\n"figures": [\n{body}\n]}}\n'
    path.write_text(text, encoding="utf-8")


def _rounded(value: Any) -> Any:
    """The same with numbers of five digits."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, (list, tuple)) else value


def load(path: Path) -> tuple[dict[str, Any], list[Figure]]:
    """Read a file of results."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return content["machine"], [Figure.from_json(entry) for entry in content["figures"]]
