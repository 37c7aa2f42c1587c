"""A case: a program, the oracle that looks at it, and what the oracle needs to know; and what came of it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, dataclass, field
from typing import Any

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Case:
    """One program for one oracle.

    Attributes:
        oracle: name of the oracle.
        source: the program.
        parameters: what the oracle asks for, as JSON has it.
    """

    oracle: str
    source: str
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Names the program."""
        return hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()[:12]


@dataclass
class Report:
    """What came of a case.

    Attributes:
        found: what was wrong; empty if nothing was.
        usable: whether the case could be examined at all: the plain program ends, and there is something to try.
        holds: how often a run was held.
        notes: what else is worth counting.
    """

    found: list[str] = field(default_factory=list)
    usable: bool = True
    holds: int = 0
    notes: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @property
    def signature(self) -> str:
        """What is the same in each finding that has the same cause, more or less."""
        lines = [line for text in self.found for line in text.splitlines()]
        return "; ".join(_NUMBER.sub("0", _kind(text, lines)) for text in self.found[:1])

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of differences."""
        return frozenset(text.partition(":")[0] for text in self.found)


def _kind(text: str, lines: list[str]) -> str:
    head = lines[0]
    if head.startswith("death"):
        fatal = [line for line in lines if "Fatal" in line or "Error" in line or "exit status" in line]
        return " ".join(["death", *fatal[:1]])
    if head.startswith(("refused", "internal error")):
        return head[:160]
    return text.partition(":")[0]
