"""Draws the results: `python -m benchmarks.crash_cases.drawing [--results FOLDER] [--output FOLDER]`. Needs matplotlib."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.crash_cases import table
from benchmarks.crash_cases.case import RECOVERED
from benchmarks.crash_cases.result import Result
from benchmarks.crash_cases.table import KINDS, first_of_each, kinds_of_stops
from benchmarks.pairs import FOLDER
from benchmarks.report import RESULTS

DOCUMENTATION = FOLDER.parent / "docs" / "figures"
#: Colours that can be told apart by everybody.
BLUE, ORANGE, GREEN, GREY, PURPLE = "#0072b2", "#e69f00", "#009e73", "#999999", "#cc79a7"
LOST, WORDS = "crash_cases_lost.svg", "crash_cases_words.svg"

COLOURS = dict(zip(KINDS, (PURPLE, ORANGE, BLUE, GREEN, GREY), strict=True))


def draw(results: Iterable[Result], folder: Path) -> None:
    """Draw both figures as SVG.

    Args:
        results: of all cases.
        folder: where the files go.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = [one for one in results if one.category != "control" and one.outcome == RECOVERED]
    recorded = first_of_each(found)
    # The same results give the same file.
    style = {
        "svg.hashsalt": "crash cases",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with mpl.rc_context(style):
        for name, figure in ((LOST, _lost(recorded)), (WORDS, _words(recorded, found))):
            figure.savefig(folder / name, metadata={"Date": None}, facecolor="white")
            text = (folder / name).read_text(encoding="utf-8")
            (folder / name).write_text(
                "\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8"
            )


def _lost(results: list[Result]) -> Any:
    figure = Figure(figsize=(8, 0.22 * len(results) + 1.2), layout="constrained")
    axes = figure.subplots()
    rows = range(len(results))
    axes.scatter(
        [one.restart.seconds for one in results], rows, marker="o", color=ORANGE, label="restart from scratch"
    )
    saved = [(one.checkpoint.seconds, row) for row, one in enumerate(results) if one.checkpoint is not None]
    axes.scatter(
        *zip(*saved, strict=True),
        marker="s",
        facecolors="none",
        edgecolors=PURPLE,
        label="restart from the last checkpoint",
    )
    repair = [sum(one.repair) / 1000 for one in results]
    axes.scatter(
        repair, rows, marker="D", color=BLUE, label="daifu_bc, from the exception until the run goes on"
    )
    again = [sum(one.running_again) / 1000 for one in results]
    axes.scatter(again, rows, marker="|", color=BLUE, label="of that, from the word that decides")
    axes.set_yticks(rows, [one.case for one in results])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("seconds lost, all stops of a run together (without the person's time)")
    axes.grid(axis="x", color="#dddddd")
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure


def _words(recorded: list[Result], results: list[Result]) -> Any:
    figure = Figure(figsize=(8, 2.1), layout="constrained")
    axes = figure.subplots()
    bars = {"one for each case": kinds_of_stops(recorded), "all recoveries": kinds_of_stops(results)}
    left = [0] * len(bars)
    for name, colour in COLOURS.items():
        widths = [counted[name] for counted in bars.values()]
        drawn = axes.barh(list(bars), widths, left=left, color=colour, label=name)
        axes.bar_label(
            drawn, [str(width) if width else "" for width in widths], label_type="center", color="white"
        )
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel("stops")
    figure.legend(loc="outside upper center", ncols=len(COLOURS), frameon=False)
    return figure


def main() -> None:
    """Draw the results that are written down."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crash_cases.drawing", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument("--output", type=Path, default=DOCUMENTATION, metavar="FOLDER")
    options = parser.parse_args()
    draw(table.load(options.results), options.output)


if __name__ == "__main__":
    main()
