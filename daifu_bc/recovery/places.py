"""Where a frame is in the code as the user wrote it."""

from __future__ import annotations

import opcode
from types import CodeType
from typing import Final

from daifu_bc import pyversion
from daifu_bc.analysis.code import ExceptionEntry, entry_at, exception_entries
from daifu_bc.analysis.flow import Flow
from daifu_bc.recovery.bodies import located
from daifu_bc.rewrite.barrier import is_vaccinated, pristine

_RERAISE: Final = opcode.opmap["RERAISE"]
_PRECALL: Final = opcode.opmap.get("PRECALL", -1)


def locate(code: CodeType, offset: int) -> tuple[CodeType, int]:
    """The pristine code of any code object, and the offset in it; -1 in code of ours, where no handlers apply."""
    known = located(code)
    if known is not None:
        return known.flow.code, known.pristine_offset(offset)
    if not is_vaccinated(code):
        return code, offset
    original = pristine(code)
    return original, offset if offset < len(original.co_code) else -1


def place_at(flow: Flow, offset: int) -> int:
    """The place of the instruction that the offset lies in; frames' offsets may point into an instruction's caches."""
    place = flow.index.get(offset)
    while place is None and offset > 0:
        offset -= 2
        place = flow.index.get(offset)
    place = place or 0
    if pyversion.HAS_PRECALL and flow.instructions[place].opcode == _PRECALL:
        place += 1  # 3.11 calls C functions in it as soon as it has specialised the call
    return place


def comes_again(code: CodeType, offset: int, here: int) -> bool:
    """Whether an exception raised at `offset` that is at a barrier's code now has been at another barrier before.

    Args:
        code: the frame's code.
        offset: where it was raised, or came out of a call.
        here: where the frame is.
    """
    if locate(code, offset)[1] < 0:
        return False
    entries = exception_entries(code.co_exceptiontable)
    barriers = {
        entry.target
        for entry in entries
        if locate(code, entry.start)[1] >= 0 and locate(code, entry.target)[1] < 0
    }
    asking = max((target for target in barriers if target <= here), default=-1)
    first = entry_at(entries, offset)
    return asking >= 0 and first is not None and first.target in barriers and first.target != asking


def displaced(code: CodeType, offset: int, flow: Flow) -> ExceptionEntry | None:
    """The entry of the pristine code `flow` that a barrier's cold code, which is at `offset`, stands before.

    It covers the re-raise, the first one behind the place where the runtime is asked.
    """
    raw = code.co_code
    while offset < len(raw) and raw[offset] != _RERAISE:
        offset += 2
    entry = entry_at(exception_entries(code.co_exceptiontable), offset)
    if entry is None:
        return None
    _, target = locate(code, entry.target)
    return next((original for original in flow.entries if original.target == target), None)


def around_prefix(code: CodeType, offset: int, flow: Flow) -> ExceptionEntry | None:
    """The entry of the pristine code `flow` that covers what a prefix does at `offset`: it calls exits of blocks."""
    known = located(code)
    if known is None or offset >= known.shift:
        return None
    entries = exception_entries(code.co_exceptiontable)
    entry = entry_at(entries, offset)
    while entry is not None and entry.target < known.shift:  # what is thrown in while it awaits
        entry = entry_at(entries, entry.target)
    if entry is None:
        return None
    _, target = locate(code, entry.target)
    return next((original for original in flow.entries if original.target == target), None)
