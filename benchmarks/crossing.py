"""Exceptions that cross vaccinated frames and are handled further up, by code that is not vaccinated."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from benchmarks.figures import Figure
from benchmarks.pairs import (
    FOLDER,
    Namespace,
    Work,
    calibrate,
    interleave,
    settle,
    somebody_answering,
    variants,
)

BOUND = 5.0
#: Takes a figure: name, variants, how many crossings an iteration has.
Take = Callable[..., None]
DEPTHS = (1, 3, 10)
PLAIN_FRAMES = 10


def handled(function: Callable[[int], object], depth: int) -> Work:
    """Work that calls it and handles what comes, so many times."""

    def work(n: int) -> int:
        count = 0
        for _ in range(n):
            try:
                function(depth)
            except (ValueError, KeyError):
                count += 1
        return count

    return work


def far_away(function: Callable[[int], object]) -> Callable[[int], object]:
    """The function behind some more frames that are not vaccinated."""

    def call(depth: int) -> object:
        return between(PLAIN_FRAMES)

    def between(left: int) -> object:
        return between(left - 1) if left > 1 else function(1)

    return call


def lacking(module: Namespace) -> Work:
    """Work that asks for an attribute that is not there."""
    nothing = module["Nothing"]()

    def work(n: int) -> int:
        return sum(hasattr(nothing, "x") for _ in range(n))

    return work


def exhausted(module: Namespace) -> Work:
    """Work that reads an iterator at its end."""
    nothing = module["Nothing"]()

    def work(n: int) -> None:
        for _ in range(n):
            for _ in nothing:
                pass

    return work


def closed(module: Namespace) -> Work:
    """Work that closes generators."""
    endless = module["endless"]

    def work(n: int) -> None:
        for _ in range(n):
            generator = endless()
            next(generator)
            generator.close()

    return work


def measure(quick: bool) -> list[Figure]:
    """Microseconds more than plain code takes."""
    editions, rounds, seconds = (1, 5, 0.002) if quick else (3, 9, 0.006)
    figures: dict[str, Figure] = {}

    def take(name: str, works: list[Work], crossings: int = 1) -> None:
        count = min(calibrate(work, seconds / 8) for work in works)
        figure = figures.get(name)
        if figure is None:
            figure = figures[name] = Figure("crossing", name, "µs", [], BOUND, plain_unit="µs")
        for first, second, third in interleave(works, count, rounds):
            figure.plain.append(first / count * 1e6)
            figure.values.append((second - first) / count / crossings * 1e6)
            figure.control.append((third - first) / count / crossings * 1e6)

    for _ in range(editions):
        modules = variants(FOLDER / "descent.py")
        settle()
        with somebody_answering():
            _measure_all(modules, take)
        take("nobody would answer: ValueError over 1 frame", [handled(m["value_error"], 1) for m in modules])
    return [*figures.values(), *derived(figures)]


def _measure_all(modules: tuple[Namespace, ...], take: Take) -> None:
    for depth in DEPTHS:
        frames = f"{depth} frame{'s' * (depth > 1)}"
        take(
            f"ValueError over {frames}, each",
            [handled(module["value_error"], depth) for module in modules],
            depth,
        )
    take("KeyError over 3 frames, each", [handled(module["key_error"], 3) for module in modules], 3)
    take(
        "ValueError over 3 frames with `finally`, each",
        [handled(module["cleaned"], 3) for module in modules],
        3,
    )
    take(
        f"1 frame, and {PLAIN_FRAMES} plain ones on the way to the handler",
        [handled(far_away(module["value_error"]), 1) for module in modules],
    )
    take("AttributeError of `__getattr__` under `hasattr`", [lacking(module) for module in modules])
    take("StopIteration of `__next__` at the end of a loop", [exhausted(module) for module in modules])
    take("GeneratorExit at `close` of a generator", [closed(module) for module in modules])


def derived(figures: dict[str, Figure]) -> list[Figure]:
    """What the exception costs in all, and what each frame behind the first one costs."""
    found = []
    totals = {}
    for depth in DEPTHS:
        figure = figures[f"ValueError over {depth} frame{'s' * (depth > 1)}, each"]
        totals[depth] = [value * depth for value in figure.values]
        if depth > 1:
            found.append(Figure("crossing", f"ValueError over {depth} frames, in all", "µs", totals[depth]))
    one = statistics.median(totals[1])
    further = [(value - one) / (DEPTHS[-1] - 1) for value in totals[DEPTHS[-1]]]
    found.append(Figure("crossing", "each frame behind the first", "µs", further, BOUND))
    return found
