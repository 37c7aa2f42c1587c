"""What a debugger costs that is attached, vaccinated and not: `python -m benchmarks.debugger`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.debugged import started, under_debugpy

REPEATED = 3

PROGRAM = """\
import time

def inner(x):
    try:
        return x + 1
    finally:
        x -= 1

def work(n):
    total = 0
    for k in range(n):
        if k & 1:
            total += inner(k)
        else:
            total -= k
    return total

def unrelated():
    return 0

work(1000)
best = []
for _ in range(7):
    began = time.perf_counter()
    work(100_000)
    best.append(time.perf_counter() - began)
print(min(best), flush=True)
"""
#: A line of `unrelated`.
ELSEWHERE = 19
#: Name, whether a client is attached, its breakpoints.
CASES = (
    ("no debugger", False, ()),
    ("attached", True, ()),
    ("attached, a breakpoint in another function", True, (ELSEWHERE,)),
)


def seconds(breakpoints: tuple[int, ...], *, vaccinated: bool, attached: bool) -> float:
    """Return the best time of a loop."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.py").write_text(PROGRAM)
        words = ["-m", "daifu_bc", "run", "program.py"] if vaccinated else ["program.py"]
        command = under_debugpy(*words) if attached else [sys.executable, *words]
        with started(folder, command, PYDEVD_DISABLE_FILE_VALIDATION="1") as run:
            if attached:
                run.attach(breakpoints, ("uncaught",), justMyCode=True).event("terminated")
            return float(run.end()[0])


def main() -> None:
    """Print a table in Markdown."""
    print("| Python", sys.version.split()[0], "| plain | vaccinated |")
    print("| --- | --- | --- |")
    for name, attached, breakpoints in CASES:
        times = [
            min(seconds(breakpoints, vaccinated=vaccinated, attached=attached) for _ in range(REPEATED))
            for vaccinated in (False, True)
        ]
        print(f"| {name} | {times[0] * 1000:.1f} ms | {times[1] * 1000:.1f} ms |")


if __name__ == "__main__":
    main()
