"""`python -m fuzz --minutes N`: generated programs against every oracle, for as long as it is told to.

Each failure is made small and written as a sample. The exit code is 1 if there was any.
"""

from __future__ import annotations

import argparse
import itertools
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from fuzz import samples
from fuzz.case import Case, Report
from fuzz.process import Examination
from fuzz.shrinking import shrunk
from fuzz.writing import GRAMMAR, OWN, grammar_cases, has_grammar, own_cases

#: So many failures that look alike are made small; further ones are only counted.
MOST_ALIKE = 2


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (default 10)")
    parser.add_argument("--programs", type=int, default=0, help="stop after so many cases")
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument(
        "--oracle", default="", help=f"some of {', '.join(dict.fromkeys(OWN + GRAMMAR))}; default all"
    )
    parser.add_argument(
        "--source", choices=("all", "own", "grammar"), default="all", help="who writes the programs"
    )
    parser.add_argument("--samples", type=Path, default=samples.FOLDER, help="where failures are written")
    parser.add_argument(
        "--shrink", type=float, default=90.0, help="seconds for making one failure small (default 90)"
    )
    return parser.parse_args()


def cases(seed: int, source: str, oracles: tuple[str, ...]) -> Iterator[Case]:
    """The cases to examine, without end."""
    own = tuple(name for name in OWN if not oracles or name in oracles)
    grammar = tuple(name for name in GRAMMAR if not oracles or name in oracles)
    if source != "own" and not has_grammar():
        print("hypothesmith is not installed: no programs of the whole grammar")
        source = "own"
    makers: list[Iterator[Case]] = []
    if source != "grammar" and own:
        makers += [own_cases(seed, own)] * 4
    if source != "own" and grammar:
        makers.append(grammar_cases(seed, grammar))
    for maker in itertools.cycle(makers):
        yield next(maker)


@dataclass
class Tally:
    """What has been seen so far."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    alike: Counter[tuple[str, str]] = field(default_factory=Counter)
    written: list[Path] = field(default_factory=list)

    def add(self, case: Case, report: Report) -> bool:
        """Count a report; whether its failure is to be made small."""
        count = self.counts.setdefault(case.oracle, Counter())
        count["programs"] += report.usable
        count["left out"] += not report.usable
        count["holds"] += report.holds
        count.update(report.notes)
        if not report.found:
            return False
        count["FAILURES"] += 1
        key = (case.oracle, report.signature)
        self.alike[key] += 1
        return self.alike[key] <= MOST_ALIKE

    def show(self) -> None:
        """Print it."""
        for oracle, count in self.counts.items():
            print(f"{oracle:14}", ", ".join(f"{count[name]} {name}" for name in count if count[name]))
        for (oracle, signature), times in self.alike.most_common():
            print(f"{times} x {oracle}: {signature}")


def main() -> int:
    """Run the command."""
    options = arguments()
    seed = int(time.time()) if options.seed is None else options.seed
    oracles = tuple(name for name in options.oracle.split(",") if name)
    print(f"seed {seed}, CPython {sys.version.split()[0]}", flush=True)
    # What was seen is told even if the run is stopped from outside.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    tally = Tally()
    end = time.monotonic() + options.minutes * 60
    try:
        with Examination() as examination:
            for number, case in enumerate(cases(seed, options.source, oracles), 1):
                report = examination.examine(case)
                if tally.add(case, report):
                    small, last = minimised(examination, case, report, options.shrink)
                    path = samples.write(small, last, options.samples)
                    tally.written.append(path)
                    print(f"{path}: {report.signature}", flush=True)
                if time.monotonic() > end or number == options.programs:
                    break
    finally:
        tally.show()
    return bool(tally.written)


def minimised(examination: Examination, case: Case, report: Report, seconds: float) -> tuple[Case, Report]:
    """A smaller case that fails alike, and its report."""
    last = report

    def fails(other: Case) -> bool:
        nonlocal last
        seen = examination.examine(other)
        if not seen.found or seen.signature != report.signature:
            return False
        last = seen
        return True

    if case.oracle == "continuation":
        # All executions of all spots, so that the numbers of the spots do not matter.
        everywhere = replace(case, parameters=case.parameters | {"share": 100})
        case = everywhere if fails(everywhere) else case
    small = shrunk(case, fails, seconds=seconds)
    return small, last


if __name__ == "__main__":
    sys.exit(main())
