"""What an action has assigned that the function it ran in does not see."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from types import CodeType

from daifu_bc.analysis.code import code_objects


def unseen(action: CodeType, body: CodeType) -> list[str]:
    """The names that an action assigns in a frame, and that its function looks up in the module.

    Args:
        action: the code that ran in the frame.
        body: the function's.
    """
    if not body.co_flags & inspect.CO_OPTIMIZED:  # a module or a class: what is assigned is what it reads
        return []
    # Disassembling takes a millisecond, and most actions have no name in common with what is looked up.
    if not any(set(code.co_names) & set(action.co_names) for code in code_objects(body)):
        return []
    assigned = dict.fromkeys(_names(action, "STORE_NAME"))
    read = {name for code in code_objects(body) for name in _names(code, "LOAD_GLOBAL")}
    read -= {*body.co_varnames, *body.co_cellvars, *body.co_freevars}
    return [name for name in assigned if name in read]


def _names(code: CodeType, instruction: str) -> Iterator[str]:
    return (found.argval for found in dis.get_instructions(code) if found.opname == instruction)
