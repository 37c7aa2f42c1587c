"""The systematic grid: each block with each statement, the frames and origins dealt out evenly."""

from __future__ import annotations

import os
from collections import Counter
from functools import lru_cache
from itertools import product
from textwrap import indent

from tests.grid.parts import BLOCKS, FRAMES, ORIGINS, SETUP, STATEMENTS, Part
from tests.grid.program import REMEDIES, GridProgram

FULL = os.environ.get("DAIFU_GRID") == "full"


@lru_cache(maxsize=1)
def systematic_programs() -> tuple[GridProgram, ...]:
    """All programs of the grid; every third one unless the environment asks for the full grid."""
    used: Counter[tuple[str, ...]] = Counter()
    programs = []
    for number, (block, statement) in enumerate(product(BLOCKS, STATEMENTS)):
        choices = [
            (frame, origin)
            for frame, origin in product(FRAMES, ORIGINS)
            if _fits(frame, block, statement, origin)
        ]
        if not choices:
            continue
        frame, origin = min(choices, key=lambda choice: _use(used, choice[0], choice[1], block, statement))
        for pair in _pairs(frame, origin, block, statement):
            used[pair] += 1
        if FULL or number % 3 == 0:
            programs.append(compose(frame, block, statement, origin))
    return tuple(programs)


def compose(frame: Part, block: Part, statement: Part, origin: Part) -> GridProgram:
    """Put a program together."""
    body = _filled(block.text, "BODY", _filled(statement.text, "CRASH", origin.text))
    text = _filled(_filled(frame.text, "BODY", body), "SETUP", SETUP)
    source = "\n\n".join(part for part in (origin.prelude, statement.prelude, text) if part) + "\n"
    without = origin.without
    sourceless = frame.name.endswith("without source")
    if sourceless and statement.name == "for header":
        # In bytecode alone the else of a loop cannot be told from what follows the loop.
        without |= {"skip"}
    uses_knob = "knob)" in origin.text
    return GridProgram(
        name=f"{frame.name} / {block.name} / {statement.name} / {origin.name}",
        source=source,
        remedies=tuple(remedy for remedy in REMEDIES if remedy not in without),
        sourceless=sourceless,
        action="knob = 1" if uses_knob else "mend()",
        plan_mode="knob" if uses_knob else "unmended",
        note=origin.why,
    )


def _fits(frame: Part, block: Part, statement: Part, origin: Part) -> bool:
    needed = block.needs | statement.needs | origin.needs
    return needed <= frame.gives and not needed & block.forbids


def _pairs(frame: Part, origin: Part, block: Part, statement: Part) -> list[tuple[str, ...]]:
    names = {"frame": frame.name, "origin": origin.name, "block": block.name, "statement": statement.name}
    kinds = [("frame", "origin"), ("frame", "block"), ("frame", "statement")]
    kinds += [("origin", "block"), ("origin", "statement")]
    return [(*kind, *(names[name] for name in kind)) for kind in kinds]


def _use(used: Counter[tuple[str, ...]], frame: Part, origin: Part, block: Part, statement: Part) -> int:
    return sum(used[pair] for pair in _pairs(frame, origin, block, statement))


def _filled(text: str, name: str, filling: str) -> str:
    """Replace the placeholder; one that stands alone on its line is replaced by indented lines."""
    lines = []
    for line in text.splitlines():
        if line.strip() == name:
            lines.append(indent(filling, line[: len(line) - len(line.lstrip())]))
        else:
            lines.append(line.replace(name, filling))
    return "\n".join(lines)
