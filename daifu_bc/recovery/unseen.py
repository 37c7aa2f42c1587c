"""What an action has assigned that the function it ran in does not see."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from types import CodeType


def unseen(action: CodeType, body: CodeType) -> list[str]:
    """The names that an action assigns in a frame, and that its function looks up in the module.

    Args:
        action: the code that ran in the frame.
        body: the function's.
    """
    if not body.co_flags & inspect.CO_OPTIMIZED:  # a module or a class: what is assigned is what it reads
        return []
    # Disassembling takes a millisecond, and most actions have no name in common with what is looked up.
    if set(action.co_names).isdisjoint(_looked_up(body)):
        return []
    assigned = dict.fromkeys(_names(action, "STORE_NAME"))
    read = set(_read(body)).difference(body.co_varnames, body.co_cellvars, body.co_freevars)
    return [name for name in assigned if name in read]


def _names(code: CodeType, instruction: str) -> Iterator[str]:
    return (found.argval for found in dis.get_instructions(code) if found.opname == instruction)


def _looked_up(code: CodeType) -> Iterator[str]:
    """All names but those of variables that a function, and those that it defines, use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _looked_up(constant)


def _read(code: CodeType) -> Iterator[str]:
    """The names that a function, and those that it defines, look up in the module."""
    yield from _names(code, "LOAD_GLOBAL")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _read(constant)
