"""Measure what daifu_bc costs: `python -m benchmarks [--quick] [--output FILE] [NAME ...]`.

Each measure runs in fresh processes of the interpreter that runs this; the samples of a measure's processes are put
together. The figures go to `benchmarks/results/VERSION.json` (those of other measures that are in there stay), the tables
beside them and to standard output; where pyperf is installed, what took how long also in its format, to
`VERSION.pyperf.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks import counting, crossing, exchange, importing, normal, recovering, report, steps, vaccinating
from benchmarks.figures import Figure, merge
from benchmarks.machine import describe
from benchmarks.pairs import FOLDER


class Measure(NamedTuple):
    """A measure, and how many processes take its samples."""

    run: Callable[[bool], list[Figure]]
    processes: int


MEASURES = {
    "normal": Measure(normal.measure, 2),
    "counting": Measure(counting.measure, 1),
    "torch": Measure(steps.measure, 1),
    "crossing": Measure(crossing.measure, 2),
    "vaccinating": Measure(vaccinating.measure, 1),
    "importing": Measure(importing.measure, 1),
    "recovering": Measure(recovering.measure, 2),
    "crowded": Measure(recovering.measure_crowded, 1),
}


def work(name: str, *, quick: bool) -> None:
    """In a process of its own: measure, and print the figures as JSON."""
    figures = MEASURES[name].run(quick)
    print(json.dumps([figure.as_json() for figure in figures]))


def measured(name: str, *, quick: bool) -> list[Figure]:
    """The figures of one measure."""
    measure = MEASURES[name]
    command = [sys.executable, "-m", "benchmarks", "--worker", name, *(["--quick"] if quick else [])]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("DAIFU")} | {
        "DAIFU_ATTACH": "0"
    }
    figures: list[Figure] = []
    for _ in range(1 if quick else measure.processes):
        done = subprocess.run(
            command,
            cwd=FOLDER.parent,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=1800,
        )
        figures += [Figure.from_json(entry) for entry in json.loads(done.stdout)]
    return merge(figures)


def main() -> int:
    """Measure, and write down what was found; the exit code is 1 if a measure failed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few samples: to see that it works")
    parser.add_argument("--output", type=Path, help="the file of results")
    parser.add_argument("--worker", choices=MEASURES, help=argparse.SUPPRESS)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"measures to run: {', '.join(MEASURES)}; all without"
    )
    options = parser.parse_args()
    if options.worker:
        work(options.worker, quick=options.quick)
        return 0
    unknown = set(options.names) - set(MEASURES)
    if unknown:
        parser.error(f"there is no measure {', '.join(sorted(unknown))}")
    path: Path = options.output or report.RESULTS / f"{report.version()}.json"
    machine = describe()
    names = options.names or list(MEASURES)
    kept = report.load(path)[1] if path.exists() and options.names else []
    figures = [figure for figure in kept if figure.group not in names]
    failed = False
    for name in names:
        start = time.perf_counter()
        try:
            figures += measured(name, quick=options.quick)
        except (subprocess.SubprocessError, ValueError) as error:
            print(f"{name} failed: {error}", file=sys.stderr)
            failed = True
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    report.save(path, machine, figures)
    exchange.save(path.with_suffix(".pyperf.json"), machine, figures)
    tables = report.markdown(machine, figures)
    path.with_suffix(".md").write_text(tables, encoding="utf-8")
    print(tables, end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
