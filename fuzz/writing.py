"""Who writes the programs: the generator of the properties, driven by random numbers, and hypothesmith's grammar."""

from __future__ import annotations

import importlib
import importlib.util
import random
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from fuzz import mending
from fuzz.case import Case
from tests.strategies import Options, Writer

#: The oracles for programs of our own generator.
OWN = ("no-crash", "raise", "retry", "skip", "surgery", "statements", "continuation", "build")
#: The oracles for programs of the whole grammar, whose names mean nothing.
GRAMMAR = ("open-no-crash", "build", "continuation")

_MARK = re.compile(r"⟨\d+⟩")
# It is slow: a batch must not take longer than a run may overrun its time.
_BATCH = 6


class NumberedWriter(Writer):
    """The generator, its choices made by a function that gives a number from 0 to another one."""

    def __init__(self, choose: Callable[[int], int], options: Options) -> None:
        super().__init__(lambda _: 0, options)
        self._choose = choose

    def number(self, most: int) -> int:
        """Choose a number from 0 to `most`."""
        return self._choose(most)


def options_for(oracle: str) -> Options:
    """What programs for an oracle may contain."""
    if oracle in ("no-crash", "open-no-crash", "build"):
        return Options(crashes=oracle == "build", leaves_finally=True)
    return Options(
        crashes=oracle not in ("statements", "continuation"), crashes_without_statement=oracle != "skip"
    )


def written(choose: Callable[[int], int], oracle: str) -> str:
    """A program for an oracle."""
    writer = NumberedWriter(choose, options_for(oracle))
    writer.program()
    return _MARK.sub("", writer.text())


def own_case(choose: Callable[[int], int], oracle: str) -> Case | None:
    """A case of our own generator; None if the program has nothing for this oracle."""
    source = written(choose, oracle)
    parameters = parameters_for(choose, oracle, source)
    return None if parameters is None else Case(oracle, source, parameters)


def parameters_for(choose: Callable[[int], int], oracle: str, source: str) -> dict[str, Any] | None:
    """What the oracle is to try on a program; None if there is nothing."""
    if oracle == "retry":
        return {"plan": {"mode": "every", "period": 1 + choose(3)}}
    if oracle == "statements":
        return {"word": ["pass", "skip"][choose(1)]}
    if oracle == "build":
        return {"seed": choose(1 << 30), "most": 40}
    if oracle == "continuation":
        return {
            "seed": choose(1 << 30),
            "share": [100, 30][choose(1)],
            "times": [1, 1, 3][choose(2)],
            "own_code": [0, 30, 70][choose(2)],
        }
    if oracle in ("raise", "skip", "surgery"):
        keys = mending.keys_of(source)
        if not keys:
            return None
        if oracle == "surgery":
            key = keys[choose(len(keys) - 1)]
            plan: dict[str, Any] = {"mode": "broken", "keys": {str(key): [1 + choose(1)]}}
            return {"plan": plan, "moved": choose(1) == 1}
        # Many of them are never called.
        chosen = {keys[choose(len(keys) - 1)] for _ in range(4 + choose(8))}
        return {"plan": {"mode": "keyed", "keys": {str(key): [1 + choose(2)] for key in sorted(chosen)}}}
    return {}


def own_cases(seed: int, oracles: tuple[str, ...]) -> Iterator[Case]:
    """Cases of our own generator without end, the oracles in turn."""
    number = 0
    while True:
        for oracle in oracles:
            number += 1
            chooser = random.Random(f"{seed}/{number}")
            case = own_case(lambda most, chooser=chooser: chooser.randint(0, most), oracle)  # type: ignore[misc]
            if case is not None:
                yield case


def has_grammar() -> bool:
    """Whether hypothesmith is there."""
    return importlib.util.find_spec("hypothesmith") is not None


def grammar_cases(seed: int, oracles: tuple[str, ...]) -> Iterator[Case]:
    """Cases of the whole grammar without end, each program for all the oracles."""
    batch = 0
    while True:
        batch += 1
        for source in _grammar_batch(seed * 100_003 + batch, tree=batch % 2 == 0):
            for oracle in oracles:
                chooser = random.Random(f"{seed}/{source}")
                parameters = parameters_for(
                    lambda most, chooser=chooser: chooser.randint(0, most),  # type: ignore[misc]
                    oracle,
                    source,
                )
                if oracle == "continuation":
                    parameters = (parameters or {}) | {"open": True}
                yield Case(oracle, source, parameters or {})


def _grammar_batch(seed: int, *, tree: bool) -> list[str]:
    """Some programs of hypothesmith's: from the grammar's rules, or from libcst's nodes."""
    hypothesis: Any = importlib.import_module("hypothesis")
    hypothesmith: Any = importlib.import_module("hypothesmith")
    strategy = hypothesmith.from_node() if tree else hypothesmith.from_grammar()
    sources: list[str] = []

    def collect(source: str) -> None:
        if source.strip() and source not in sources:
            sources.append(source)

    settings = hypothesis.settings(
        max_examples=_BATCH,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    run = hypothesis.seed(seed)(settings(hypothesis.given(strategy)(collect)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run()
    return sources
