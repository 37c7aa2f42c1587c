"""A figure: what was measured, its spread, and the bound that it is held against."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Figure:
    """Samples of one quantity.

    Attributes:
        group: which measure it belongs to.
        name: what was measured.
        unit: of the values: `ratio`, `ns`, `µs`, `ms`, `instructions`.
        values: the samples; paired ones where it is a comparison with plain code.
        bound: the highest median that is good enough, None where there is none.
        control: the same samples with plain code in the place of vaccinated code.
        plain: what plain code takes, absolutely.
        plain_unit: of `plain`.
        note: what the reader should know.
    """

    group: str
    name: str
    unit: str
    values: list[float]
    bound: float | None = None
    control: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    plain_unit: str = ""
    note: str = ""

    @property
    def median(self) -> float:
        """The figure itself."""
        return statistics.median(self.values)

    @property
    def reached(self) -> bool | None:
        """Whether the bound is kept; None without one."""
        return None if self.bound is None else self.median <= self.bound

    @property
    def hidden(self) -> bool:
        """Whether the median lies within the spread of the control: no difference could be seen."""
        if not self.control:
            return False
        low, high = quartiles(self.control)
        return low <= self.median <= high

    def as_json(self) -> dict[str, Any]:
        """What is written into the file of results."""
        return asdict(self) | {"median": self.median, "quartiles": quartiles(self.values)}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Figure:
        """The figure that was written."""
        known = {name: entry[name] for name in cls.__dataclass_fields__ if name in entry}
        return cls(**known)


def quartiles(values: list[float]) -> tuple[float, float]:
    """First and third quartile."""
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def merge(figures: Iterable[Figure]) -> list[Figure]:
    """Put the samples of several processes together, in the order of the first one."""
    merged: dict[tuple[str, str], Figure] = {}
    for figure in figures:
        known = merged.setdefault((figure.group, figure.name), figure)
        if known is not figure:
            known.values += figure.values
            known.control += figure.control
            known.plain += figure.plain
    return list(merged.values())
