"""Which code objects say the same, wherever they stand, and which one of an edited text another has become."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from types import CodeType

from daifu_bc.rewrite.barrier import pristine


def saying(code: CodeType) -> tuple[object, ...]:
    """All that a code object does, and those in it; not where it stands."""
    return (
        code.co_name,
        code.co_code,
        code.co_names,
        code.co_varnames,
        code.co_cellvars,
        code.co_freevars,
        *(
            saying(pristine(constant)) if isinstance(constant, CodeType) else repr(constant)
            for constant in code.co_consts
        ),
    )


def inside(code: CodeType) -> Iterator[CodeType]:
    """The pristine code objects in another one, in the order of the text."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield pristine(constant)
            yield from inside(pristine(constant))


def ranked(module: CodeType) -> Iterator[tuple[CodeType, tuple[str, int]]]:
    """The named code objects of a module."""
    counts: dict[str, int] = {}
    for code in inside(module):
        if not code.co_name.startswith("<"):
            rank = counts.get(code.co_qualname, 0)
            counts[code.co_qualname] = rank + 1
            yield code, (code.co_qualname, rank)


def counterpart(code: CodeType, around: Iterable[CodeType], edited: CodeType) -> CodeType | None:
    """What a lambda, a comprehension or a generator expression has become: they have no name to be found by.

    Args:
        code: the pristine code that runs.
        around: code objects that it may be in.
        edited: the code of the new text.

    Returns:
        None if that cannot be told.
    """
    after = [other for other in inside(edited) if other.co_qualname == code.co_qualname]
    for outer in around:
        before = [other for other in inside(outer) if other.co_qualname == code.co_qualname]
        for index, other in enumerate(before):
            if other is code or _place(other) == _place(code):
                return _partner(before, index, after)
    return after[0] if len(after) == 1 else None


def _place(code: CodeType) -> tuple[object, ...]:
    return code.co_firstlineno, code.co_linetable, saying(code)


def _partner(before: list[CodeType], index: int, after: list[CodeType]) -> CodeType | None:
    if len(before) == len(after):
        return after[index]
    matcher = difflib.SequenceMatcher(
        None, list(map(saying, before)), list(map(saying, after)), autojunk=False
    )
    for _, first, last, start, end in matcher.get_opcodes():
        if first <= index < last and last - first == end - start:
            return after[start + index - first]
    return None
