"""A readable disassembly, for code whose source is not to be had."""

from __future__ import annotations

import dis
from types import CodeType

from daifu_bc.recovery.bodies import flow_of
from daifu_bc.recovery.restarts import statements_of


def listing(code: CodeType, offset: int) -> str:
    """The instructions of a pristine code object, one a line.

    Args:
        code: the code object.
        offset: that of the present instruction, whose line begins with `>`; -1 for none.

    Returns:
        Lines of mark, source line, offset, name and argument; a statement's first instruction is marked with `*`.
    """
    flow = flow_of(code)
    table = statements_of(flow)
    here = flow.place_at(offset) if offset >= 0 else -1
    text: list[str] = []
    last: int | None = None
    starts = {instruction.offset: place for place, instruction in enumerate(flow.instructions)}
    for instruction in dis.get_instructions(code):
        place = starts.get(instruction.offset)
        if place is None:  # EXTENDED_ARG
            continue
        owner = table.of[place]
        line = owner.first if owner is not None else None
        number = f"{line}" if line is not None and line != last else ""
        last = line if line is not None else last
        mark = ("> " if place == here else "  ") + ("*" if table.is_start(place) else " ")
        argument = f"  {instruction.argrepr}" if instruction.argrepr else ""
        text.append(f"{mark} {number:>4} {instruction.offset:>5}  {instruction.opname}{argument}".rstrip())
    return "\n".join(text) + "\n"
