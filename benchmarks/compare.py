"""Show what has become slower between two files of results: `python -m benchmarks.compare OLD NEW`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.figures import Figure, quartiles
from benchmarks.report import load, number

#: A median that has grown by less is taken for noise.
THRESHOLD = 0.1
RATIO_THRESHOLD = 0.02


def worse(old: Figure, new: Figure) -> bool:
    """Whether a figure has grown beyond its noise, or misses a bound that it kept."""
    if old.reached and new.reached is False and not new.hidden:
        return True
    threshold = RATIO_THRESHOLD if new.unit == "ratio" else THRESHOLD
    apart = len(old.values) < 2 or len(new.values) < 2 or quartiles(new.values)[0] > quartiles(old.values)[1]
    return apart and new.median - old.median > threshold * max(abs(old.median), 1e-9)


def main() -> int:
    """Print a table; the exit code is 1 if something has become worse."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--all", action="store_true", help="show what has not changed, too")
    options = parser.parse_args()
    (_, before), (_, after) = load(options.old), load(options.new)
    known = {(figure.group, figure.name): figure for figure in before}
    print("| group | what | old | new | change | |")
    print("| --- | --- | --- | --- | --- | --- |")
    regressions = 0
    for new in after:
        old = known.pop((new.group, new.name), None)
        if old is None:
            print(f"| {new.group} | {new.name} | | {number(new.median, new.unit)} {new.unit} | | new |")
            continue
        bad, good = worse(old, new), worse(new, old)
        regressions += bad
        if bad or good or options.all:
            change = f"{new.median / old.median - 1:+.0%}" if old.median else ""
            values = f"{number(old.median, old.unit)} | {number(new.median, new.unit)} {new.unit}"
            print(
                f"| {new.group} | {new.name} | {values} | {change} | {'**worse**' if bad else 'better' if good else ''} |"
            )
    for group, name in known:
        print(f"| {group} | {name} | | | | gone |")
    print(f"\n{regressions} worse" if regressions else "\nnothing is worse")
    return 1 if regressions else 0


if __name__ == "__main__":
    sys.exit(main())
