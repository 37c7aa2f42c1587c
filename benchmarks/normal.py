"""The normal path: work that raises nothing, or handles what it raises in the same function."""

from __future__ import annotations

from benchmarks import kernels
from benchmarks.figures import Figure
from benchmarks.pairs import FOLDER, calibrate, interleave, settle, somebody_answering, variants

BOUND = 1.01
#: Where a clean-up makes the exception meet a barrier, it is a crossing: its bound in microseconds.
CROSSING_BOUND = 5.0


def measure(quick: bool) -> list[Figure]:
    """Vaccinated against plain, a figure for each kernel.

    Each edition compiles the module anew: where code objects happen to lie in memory makes a difference of per cents,
    and it is another one each time.
    """
    editions, rounds, seconds = (1, 5, 0.002) if quick else (2, 9, 0.004)
    figures = {
        function.__name__: Figure("normal", function.__name__, "ratio", [], BOUND)
        for function in kernels.NORMAL
    }
    for name in kernels.MEETING:
        figures[name] = Figure(
            "normal", name, "µs", [], CROSSING_BOUND, note="meets a barrier: more per crossing"
        )
    with somebody_answering():
        _measure_all(figures, editions, rounds, seconds)
    return list(figures.values())


def _measure_all(figures: dict[str, Figure], editions: int, rounds: int, seconds: float) -> None:
    for _ in range(editions):
        plain, vaccinated, again = variants(FOLDER / "kernels.py")
        settle()
        for name, figure in figures.items():
            works = [module[name] for module in (plain, vaccinated, again)]
            count = min(calibrate(work, seconds) for work in works)
            figure.plain_unit = "ns"
            if {work(7) for work in works} != {works[0](7)}:
                raise AssertionError(f"{name} gives different results")
            for first, second, third in interleave(works, count, rounds):
                figure.plain.append(first / count * 1e9)
                if figure.unit == "ratio":
                    figure.values.append(second / first)
                    figure.control.append(third / first)
                else:
                    figure.values.append((second - first) / count * 1e6)
                    figure.control.append((third - first) / count * 1e6)
