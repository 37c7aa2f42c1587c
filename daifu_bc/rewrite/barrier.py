"""Vaccinates a code object: the pristine instructions byte for byte, barriers over them, stubs behind them.

Offsets, lines and `f_lasti` stay the same, and the normal path executes not one instruction more. The last constant
remembers what is needed to get the pristine code object back, so that vaccinated code can be cached on disk.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Final

from daifu_bc.analysis.code import ExceptionEntry, encode_exception_entries
from daifu_bc.analysis.flow import Flow
from daifu_bc.analysis.regions import Region, regions
from daifu_bc.errors import CannotVaccinate, VerificationError
from daifu_bc.rewrite.assemble import Assembler, last_line
from daifu_bc.rewrite.tails import Ending, cold_code

#: The last constant of vaccinated code begins with this; changes with its layout.
MARKER: Final = b"\0daifu\3"

# Behind it: where the body and its line table begin, how long they are, how many constants and names it has, its
# stack size; then the exception table. One short constant, as all that is read from the cache costs time.
_NUMBERS: Final = 7

#: Told of each refusal; the journal listens.
on_refusal: Callable[[CodeType, Exception], None] | None = None

_pristine: dict[int, tuple[weakref.ref[CodeType], CodeType]] = {}

#: Comprehensions of 3.11 are part of the statement around them, as they are from 3.12 on.
PART_OF_STATEMENT: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>"})


def is_vaccinated(code: CodeType) -> bool:
    """Whether `code` has barriers, and is no continuation."""
    return _memory(code) is not None


def _memory(code: CodeType) -> bytes | None:
    last = code.co_consts[-1] if code.co_consts else None
    return last if type(last) is bytes and last.startswith(MARKER) else None


def memory_of(code: CodeType, start: int = 0, first_line: int = 0) -> bytes:
    """What the last constant of vaccinated code tells of the pristine code object that it was made from.

    Args:
        code: the pristine code object.
        start: offset at which its instructions begin in the vaccinated one.
        first_line: where its line table begins in that of the vaccinated one.
    """
    sizes = len(code.co_code), first_line, len(code.co_linetable), len(code.co_consts), len(code.co_names)
    packed = bytearray(MARKER)
    for number in (start, *sizes, code.co_stacksize):
        rest = number
        while rest > 127:
            packed.append(rest & 127 | 128)
            rest >>= 7
        packed.append(rest)
    return bytes(packed) + code.co_exceptiontable


def _unpacked(memory: bytes) -> tuple[list[int], bytes]:
    """The numbers of a memory, and the exception table."""
    numbers: list[int] = []
    position = len(MARKER)
    while len(numbers) < _NUMBERS:
        number = shift = 0
        while True:
            byte = memory[position]
            position += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        numbers.append(number)
    return numbers, memory[position:]


def pristine(code: CodeType) -> CodeType:
    """The code object as the compiler made it; `code` itself if it was never vaccinated."""
    memory = _memory(code)
    if memory is None:
        return code
    known = _pristine.get(id(code))
    if known is not None and known[0]() is code:
        return known[1]
    (start, size, first_line, lines, consts, names, stacksize), table = _unpacked(memory)
    original = code.replace(
        co_code=code.co_code[start : start + size],
        co_exceptiontable=table,
        co_linetable=code.co_linetable[first_line : first_line + lines],
        co_consts=code.co_consts[:consts],
        co_names=code.co_names[:names],
        co_stacksize=stacksize,
    )
    remember_pristine(code, original)
    return original


def remember_pristine(code: CodeType, original: CodeType) -> None:
    """Keeps `original` as long as `code` lives."""
    key = id(code)

    def forget(_: object, known: dict[int, tuple[weakref.ref[CodeType], CodeType]] = _pristine) -> None:
        known.pop(key, None)

    _pristine[key] = (weakref.ref(code, forget), original)


def vaccinate_code(
    code: CodeType, *, recursive: bool = True, analyse: Callable[[CodeType], Flow] = Flow
) -> CodeType:
    """A vaccinated copy of `code` and, if `recursive`, of the code objects among its constants.

    Args:
        code: any code object.
        recursive: whether nested functions, classes and so on are vaccinated with it.
        analyse: how the code itself is analysed, for who needs its analysis too.

    Returns:
        The copy; `code` itself where it has to stay as it is, which `on_refusal` is told of.
    """
    if is_vaccinated(code):
        return code
    if recursive:
        code = _vaccinate_nested(code)
    if code.co_name in PART_OF_STATEMENT:
        return code
    try:
        built = build(analyse(code))
        from_verify(built, code)
    except (CannotVaccinate, VerificationError, RecursionError) as error:
        if on_refusal is not None:
            on_refusal(code, error)
        return code
    remember_pristine(built, code)
    return built


def _vaccinate_nested(code: CodeType) -> CodeType:
    consts = code.co_consts
    for index, constant in enumerate(consts):
        if isinstance(constant, CodeType):
            nested = vaccinate_code(constant)
            if nested is not constant:
                consts = (*consts[:index], nested, *consts[index + 1 :])
    return code if consts is code.co_consts else code.replace(co_consts=consts)


def build(flow: Flow) -> CodeType:
    """The vaccinated code object of one analysed code object; not verified."""
    code = flow.code
    found = regions(flow)
    if not found:
        raise CannotVaccinate("there is nothing in it that can raise")
    asm = Assembler(code)
    stubs = cold_code(asm, found, code, Ending.CALL, 0)
    size = len(code.co_code)
    cold, cold_entries = asm.finish(size)
    table = merge_entries(flow.entries, found, [asm.offset(start) for start in stubs], 0)
    lines, _ = asm.line_entries(last_line(code))
    return code.replace(
        co_code=code.co_code + cold,
        co_exceptiontable=encode_exception_entries(table + cold_entries),
        co_linetable=code.co_linetable + lines,
        co_consts=(*asm.consts, memory_of(code)),
        co_names=tuple(asm.names),
        co_stacksize=max(code.co_stacksize, asm.deepest),
    )


def merge_entries(
    entries: list[ExceptionEntry], found: list[Region], starts: list[int], shift: int
) -> list[ExceptionEntry]:
    """The exception table of a body under barriers.

    Args:
        entries: the pristine table.
        found: the regions, whose barriers win over the pristine entries.
        starts: offset of each region's stub.
        shift: how far the body lies behind its pristine place.
    """
    barriers = sorted(
        ExceptionEntry(start + shift, end + shift, target, len(region.kinds), True)
        for region, target in zip(found, starts, strict=False)
        for start, end in region.ranges
    )
    merged: list[ExceptionEntry] = []
    pending = [
        entry._replace(start=entry.start + shift, end=entry.end + shift, target=entry.target + shift)
        for entry in entries
    ]
    pending.reverse()
    for barrier in barriers:
        while pending and pending[-1].end <= barrier.start:
            merged.append(pending.pop())
        while pending and pending[-1].start < barrier.end:
            entry = pending.pop()
            if entry.start < barrier.start:
                merged.append(entry._replace(end=barrier.start))
            if entry.end > barrier.end:
                pending.append(entry._replace(start=barrier.end))
                break
        merged.append(barrier)
    merged.extend(reversed(pending))
    return merged


def from_verify(built: CodeType, code: CodeType) -> None:
    """Hands what was built to the verifier."""
    from daifu_bc.rewrite.verify import verify

    verify(built, code)


def runs_in_namespace(code: CodeType) -> bool:
    """Whether its locals are a namespace (module, class body, `exec`) and not slots of the frame."""
    return not code.co_flags & inspect.CO_OPTIMIZED
