"""The named programs of the grid, read from the text files beside this module.

A program starts with a line ``#### NAME``. Lines ``#: KEY VALUE`` before its text set what `GridProgram` says;
``#---- edited`` and ``#---- expected`` begin the text after surgery and the program that says what must have
happened then.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from tests.grid.program import GridProgram

FOLDER = Path(__file__).parent / "named"


@lru_cache(maxsize=1)
def named_programs() -> dict[str, GridProgram]:
    """All named programs by name."""
    programs: dict[str, GridProgram] = {}
    for path in sorted(FOLDER.glob("*.txt")):
        for piece in re.split(r"^#### ", path.read_text(), flags=re.MULTILINE)[1:]:
            name, _, text = piece.partition("\n")
            if name in programs:
                raise ValueError(f"two programs are called {name!r}")
            programs[name] = _parse(name, text)
    return programs


def _parse(name: str, text: str) -> GridProgram:
    sections = re.split(r"^#---- (\w+)\n", text, flags=re.MULTILINE)
    directives = re.findall(r"^#: (\w+) ?(.*)\n", sections[0], flags=re.MULTILINE)
    source = re.sub(r"^#: .*\n", "", sections[0], flags=re.MULTILINE)
    program = GridProgram(name, source.rstrip() + "\n")
    for title, body in zip(sections[1::2], sections[2::2], strict=True):
        text = body.rstrip() + "\n"
        if title == "edited":
            program = replace(program, edited=text)
        elif title == "expected":
            program = replace(program, expected=text)
        else:
            program = replace(program, note=text)
    for key, value in directives:
        program = _directed(program, key, value)
    return program


def _directed(program: GridProgram, key: str, value: str) -> GridProgram:
    if key == "at":
        return replace(program, at=tuple(int(number) for number in value.split()))
    if key == "handled":
        return replace(program, handled=True, remedies=("nothing", "raise"))
    if key == "sourceless":
        return replace(program, sourceless=True)
    if key == "remedies":
        return replace(program, remedies=tuple(value.split()))
    if key == "surgery_mode":
        return replace(program, surgery_mode=value)
    if key == "answers":
        return replace(program, answers=(tuple(word.strip() for word in value.split(";")),))
    if key == "repeat":
        return replace(program, source=_long_program(int(value)))
    raise ValueError(f"{program.name}: no such directive: {key}")


def _long_program(statements: int) -> str:
    lines = ["def main():", "    x = 0", "    for i in range(2):"]
    lines += [f"        v{number % 300} = x + {number % 7}" for number in range(statements)]
    lines += ["        x = crash(x + v1)", "        say(x)", "    return x"]
    return "\n".join(lines) + "\n"
