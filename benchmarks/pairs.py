"""Plain and vaccinated code in one process, run in turns, so that whatever disturbs one disturbs the other.

A sample is CPU time of the process. Each round runs every variant once, in an order that rotates; a figure is the
median of the ratios (or differences) within the rounds. One of the variants is plain code once more: what it shows
against plain is noise, and nothing smaller can be told from it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

from daifu_bc.recovery import policy
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.rewrite.barrier import vaccinate_code

Work = Callable[[int], object]
Namespace = dict[str, Any]

FOLDER = Path(__file__).resolve().parent


def compiled(path: Path) -> CodeType:
    """A file's code, made anew."""
    return compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True)


def loaded(code: CodeType, name: str) -> Namespace:
    """The namespace of a module that has run."""
    namespace: Namespace = {"__name__": name, "__file__": code.co_filename}
    exec(code, namespace)
    return namespace


def variants(path: Path) -> tuple[Namespace, Namespace, Namespace]:
    """A module in three variants: plain, vaccinated, plain again. Each has code objects of its own."""
    name = path.stem
    plain, vaccinated, again = compiled(path), vaccinate_code(compiled(path)), compiled(path)
    return loaded(plain, name), loaded(vaccinated, name), loaded(again, name)


def calibrate(work: Work, seconds: float) -> int:
    """How many iterations take about so long. What the first run has to find out does not count."""
    count = 1
    work(count)
    while True:
        taken = min(sample(work, count), sample(work, count))
        if taken >= seconds / 2:
            return max(1, round(count * seconds / taken))
        count *= 4 if taken < seconds / 8 else 2


def sample(work: Work, count: int) -> float:
    """CPU seconds that a run takes."""
    clock = time.process_time
    start = clock()
    work(count)
    return clock() - start


def interleave(works: Sequence[Work], count: int, rounds: int) -> list[tuple[float, ...]]:
    """CPU seconds of each variant in each round.

    Args:
        works: the variants.
        count: how many iterations a sample has.
        rounds: how many samples each variant gives.
    """
    results = []
    numbers = range(len(works))
    for work in works:  # the interpreter specialises each copy for itself
        work(max(1, count // 10))
    for turn in range(rounds):
        taken = [0.0] * len(works)
        for number in (*numbers[turn % len(works) :], *numbers[: turn % len(works)]):
            gc.collect()
            taken[number] = sample(works[number], count)
        results.append(tuple(taken))
    return results


def held(hold: HoldLike) -> None:
    """Answer a hold where none is expected: everything that these measures raise is handled."""
    hold.let_go()
    raise AssertionError(f"{hold.exception!r} was held")


@contextmanager
def somebody_answering() -> Iterator[None]:
    """Let holds be possible, as in a run at a terminal: if nobody would answer, barriers ask no further."""
    policy.set_playbook(held)
    try:
        yield
    finally:
        policy.set_playbook(None)


def settle() -> None:
    """Leave what is alive by now out of garbage collections, which are then short."""
    gc.collect()
    gc.freeze()
