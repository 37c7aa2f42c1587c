"""A readable disassembly, for code whose source is not to be had."""

from __future__ import annotations

import dis
import inspect
from types import CodeType
from typing import Final

from daifu_bc.recovery.bodies import flow_of
from daifu_bc.recovery.restarts import statements_of

_ATTRIBUTES: Final = frozenset({"LOAD_ATTR", "STORE_ATTR", "DELETE_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"})
_LONGEST: Final = 60


def listing(code: CodeType, offset: int) -> str:
    """The instructions of a pristine code object, one a line.

    Args:
        code: the code object.
        offset: that of the present instruction, whose line begins with `>`; -1 for none.

    Returns:
        Lines of mark, source line, offset, name and argument; a statement's first instruction is marked with `*`.
        Behind an empty line the names and constants of the code follow.
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
    return "\n".join([*text, "", *contents(code)]) + "\n"


def contents(code: CodeType) -> list[str]:
    """The names and constants of a code object, a line for each kind that it has."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    used: dict[str, dict[str, None]] = {"global names": {}, "attributes": {}}
    for instruction in dis.get_instructions(code):
        if instruction.opname.endswith(("_GLOBAL", "_NAME")):
            used["global names"][str(instruction.argval)] = None
        elif instruction.opname in _ATTRIBUTES:
            used["attributes"][str(instruction.argval)] = None
    constants = [
        f"<code of {constant.co_name}>" if isinstance(constant, CodeType) else _short(constant)
        for constant in code.co_consts
    ]
    found = {
        "parameters": code.co_varnames[:count],
        "locals": code.co_varnames[count:],
        "locals that inner functions share": code.co_cellvars,
        "variables of functions around": code.co_freevars,
        **used,
        "constants": constants,
    }
    return [f"  {kind}: {', '.join(names)}" for kind, names in found.items() if names]


def _short(constant: object) -> str:
    text = repr(constant)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
