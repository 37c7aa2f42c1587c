"""Measure at well-known architectures: `python -m benchmarks.models [--quick] [MODEL ...]`.

What a training step costs vaccinated and with checkpoints, and how long it takes from a crash to the same statement's
running again, in place and by a restart. The tables go to standard output and, with all figures, to `models.md` and
`models.json` in `benchmarks/results`; what is known of other models stays. The tables in `docs/benchmarks.md` and the
pictures in `docs/figures` are made anew, unless it was `--quick`; with `--output` the pictures alone, in that folder. Needs PyTorch;
the pictures, matplotlib.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import report
from benchmarks.figures import Figure
from benchmarks.machine import describe
from benchmarks.models import drawing, tables
from benchmarks.models.catalogue import KINDS
from benchmarks.pairs import FOLDER

MEASURES = ("overhead", "restoring")
TIMEOUT_SECONDS = 1800


def work(measure: str, name: str, *, quick: bool) -> None:
    """In a process of its own: measure, and print the figures as JSON."""
    from benchmarks.models import overhead, restoring

    function = overhead.measure if measure == "overhead" else restoring.measure
    print(json.dumps([figure.as_json() for figure in function(name, quick)]))


def measured(measure: str, name: str, *, quick: bool) -> list[Figure]:
    """The figures of one model by one measure."""
    command = [sys.executable, "-m", "benchmarks.models", "--worker", measure, name]
    done = subprocess.run(
        [*command, *(["--quick"] if quick else [])],
        cwd=FOLDER.parent,
        env={key: value for key, value in os.environ.items() if not key.startswith("DAIFU")}
        | {"DAIFU_ATTACH": "0"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=TIMEOUT_SECONDS,
    )
    return [Figure.from_json(entry) for entry in json.loads(done.stdout)]


def main() -> int:
    """Measure, and write down what was found; the exit code is 1 if a measure failed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.models",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="few samples: to see that it works")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="of the results")
    parser.add_argument("--measure", choices=MEASURES, action="append", help="only this one")
    parser.add_argument("--worker", choices=MEASURES, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="MODEL", help=f"{', '.join(KINDS)}; all without")
    options = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        parser.error("PyTorch is not installed")
    unknown = set(options.names) - set(KINDS)
    if unknown:
        parser.error(f"there is no model {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    names = options.names or list(KINDS)
    if options.worker:
        work(options.worker, names[0], quick=options.quick)
        return 0
    if options.quick and not options.output:
        options.output = Path(tempfile.mkdtemp(prefix="models-"))
        print(f"quick figures go to {options.output}", file=sys.stderr)
    path: Path = (options.output or report.RESULTS) / "models.json"
    machine = describe() | {"torch": importlib.metadata.version("torch")}
    figures = report.load(path)[1] if path.exists() else []
    failed = False
    loads = [os.getloadavg()[0]]
    for name in names:
        for measure in options.measure or MEASURES:
            start = time.perf_counter()
            try:
                found = measured(measure, name, quick=options.quick)
            except (subprocess.SubprocessError, ValueError) as error:
                print(f"{measure} of {name} failed: {error}", file=sys.stderr)
                failed = True
                continue
            new = {(figure.group, figure.name) for figure in found}
            figures = [figure for figure in figures if (figure.group, figure.name) not in new] + found
            loads.append(os.getloadavg()[0])
            print(f"{measure} of {name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
        machine["load_average_while_measuring"] = f"{min(loads):.1f} to {max(loads):.1f}"
        report.save(path, machine, figures)
    if not figures:
        return 1
    text = tables.markdown(machine, figures)
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    documentation = FOLDER.parent / "docs"
    drawing.draw(figures, options.output or documentation / "figures")
    if not options.output:
        page = documentation / "benchmarks.md"
        page.write_text(tables.document(page.read_text(encoding="utf-8"), machine, figures), encoding="utf-8")
    print(text, end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
