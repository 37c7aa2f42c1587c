"""Run the crash cases: `python -m benchmarks.crashes [--output FOLDER] [CASE ...]`.

Each case is run as the fixed program, as the one that crashes, and under `daifu run` with each of its recoveries. The
table goes to standard output and, with all numbers, to `crash_cases.md` and `crash_cases.json` in `benchmarks/results`
(results of other cases that are in there stay). When all cases have run, the table in `docs/benchmarks.md` and the figures in
`docs/figures` are made anew, with `--output` the figures alone, in that folder. The exit code is 1 if anything is not as the case says. Needs PyTorch; the figures, matplotlib.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

from benchmarks.crash_cases import table
from benchmarks.crash_cases.case import CATEGORIES, all_cases
from benchmarks.crash_cases.result import Result, results_of
from benchmarks.machine import describe
from benchmarks.pairs import FOLDER
from benchmarks.report import RESULTS


def main() -> int:
    """Run the cases; the exit code says whether all went as expected."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.crashes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="of the results")
    parser.add_argument("names", nargs="*", metavar="CASE", help="cases to run; all without")
    options = parser.parse_args()
    cases = {case.name: case for case in all_cases()}
    folders = {case.folder.name: name for name, case in cases.items()}
    names = [folders.get(name, name) for name in options.names] or list(cases)
    unknown = set(names) - set(cases)
    if unknown:
        parser.error(f"there is no case {', '.join(sorted(unknown))}; there are {', '.join(cases)}")
    machine, folder = describe(), options.output or RESULTS
    results: list[Result] = []
    for name in names:
        found = results_of(cases[name])
        for one in found:
            for problem in one.problems:
                print(f"{name}, {one.recovery}: {problem}", file=sys.stderr)
        print(
            f"{name}: {'not as expected' if any(one.problems for one in found) else 'as expected'}",
            file=sys.stderr,
        )
        results += found
    kept = [one for one in table.load(folder) if options.names and one.case not in names]
    together = sorted(kept + results, key=lambda one: (CATEGORIES.index(one.category), one.case))
    table.save(folder, machine, together)
    if not options.names and not options.output:
        page = FOLDER.parent / "docs" / "benchmarks.md"
        page.write_text(table.document(page.read_text(encoding="utf-8"), together), encoding="utf-8")
    if not options.names and importlib.util.find_spec("matplotlib") is not None:
        from benchmarks.crash_cases.drawing import DOCUMENTATION, draw

        draw(together, options.output or DOCUMENTATION)
    print(table.markdown(results), end="")
    print(table.summary(results))
    return 1 if any(one.problems for one in results) else 0


if __name__ == "__main__":
    sys.exit(main())
