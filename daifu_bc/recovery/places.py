"""Where a frame is in the code as the user wrote it."""

from __future__ import annotations

from types import CodeType

from daifu_bc.analysis.flow import Flow
from daifu_bc.recovery.bodies import continuation_of
from daifu_bc.rewrite.barrier import is_vaccinated, pristine


def locate(code: CodeType, offset: int) -> tuple[CodeType, int]:
    """The pristine code of any code object, and the offset in it; -1 in code of ours, where no handlers apply."""
    continuation = continuation_of(code)
    if continuation is not None:
        return continuation.flow.code, continuation.pristine_offset(offset)
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
    return place or 0
