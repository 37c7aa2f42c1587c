"""The local variables of an edited body: which ones have only another name, and which ones have no value yet."""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import CodeType

from daifu_bc.analysis.counterparts import blocks_of
from daifu_bc.analysis.flow import Flow
from daifu_bc.recovery.capture import Capture
from daifu_bc.rewrite.barrier import pristine
from daifu_bc.rewrite.splice import checked_loads


def locals_of(code: CodeType) -> frozenset[str]:
    """The names of a function's variables, cells included."""
    return frozenset(code.co_varnames) | frozenset(code.co_cellvars)


def renamed(old: ast.AST, new: ast.AST, running: CodeType, code: CodeType) -> dict[str, str]:
    """The variables that have got another name, old name -> new name.

    It is one if the old name is gone, the new one was not there, and where statements say the same but for names the
    one always stands in the place of the other.

    Args:
        old: the definition that runs.
        new: the edited one.
        running: the code of `old`.
        code: the code of `new`.
    """
    if not code.co_flags & inspect.CO_OPTIMIZED:
        return {}
    gone = locals_of(running) - locals_of(code) - frozenset(code.co_freevars)
    fresh = locals_of(code) - locals_of(running) - frozenset(running.co_freevars)
    if not gone or not fresh:
        return {}
    before, after = list(_parts(old)), list(_parts(new))
    either = gone | fresh
    shapes = [_shape(part, either) for part in before], [_shape(part, either) for part in after]
    pairs: set[tuple[str, str]] = set()
    for a, b, size in difflib.SequenceMatcher(None, *shapes, autojunk=False).get_matching_blocks():
        for k in range(size):
            names = zip(_names(before[a + k], either), _names(after[b + k], either), strict=True)
            pairs.update(names)
    return {
        mine: other
        for mine, other in pairs
        if mine in gone
        and other in fresh
        and sum(mine == one for one, _ in pairs) == 1
        and sum(other == two for _, two in pairs) == 1
    }


def renamed_around(
    name: str,
    texts: tuple[Mapping[tuple[str, int], ast.AST], Mapping[tuple[str, int], ast.AST]],
    running: Mapping[tuple[str, int], Sequence[CodeType]],
    codes: Mapping[tuple[str, int], CodeType],
) -> dict[str, str]:
    """The variables of the functions around one that have got another name, old name -> new name.

    Args:
        name: the function's qualified name.
        texts: the definitions of the old text and of the new one.
        running: the code objects of the old text.
        codes: those of the new one.
    """
    names: dict[str, str] = {}
    around, locals_, _ = name.rpartition(".<locals>.")
    while locals_:
        key = (around, 0)
        if key in texts[0] and key in texts[1] and key in codes and running.get(key):
            names |= renamed(texts[0][key], texts[1][key], pristine(running[key][0]), codes[key])
        around, locals_, _ = around.rpartition(".<locals>.")
    return names


def _parts(definition: ast.AST) -> Iterator[list[object]]:
    """What statements say, without those in their blocks."""
    arguments = getattr(definition, "args", None)
    for argument in ast.walk(arguments) if isinstance(arguments, ast.arguments) else ():
        if isinstance(argument, ast.arg):
            yield [argument.arg]
    work = list(getattr(definition, "body", []))
    while work:
        node = work.pop(0)
        inner = [statement for _, block in blocks_of(node) for statement in block]
        work[:0] = inner
        # A definition is one part with its body.
        yield list(_flat(node, () if not inner else ("body", "orelse", "finalbody", "cases")))


def _flat(node: object, without: Collection[str] = ()) -> Iterator[object]:
    """The kinds, names and constants of a part of a tree, one after the other."""
    if isinstance(node, ast.AST):
        yield type(node)
        if isinstance(node, ast.ExceptHandler) and without:
            without = ("body",)
        for field in node._fields:
            if field not in without:
                inner = without if field == "handlers" else ()
                yield from _flat(getattr(node, field, None), inner)
        yield None
    elif isinstance(node, list):
        yield list
        for one in node:
            yield from _flat(one, without)
        yield None
    elif type(node) is str:
        yield node
    else:
        yield type(node), repr(node)


def _shape(part: list[object], names: Collection[str]) -> tuple[object, ...]:
    return tuple("" if type(one) is str and one in names else one for one in part)


def _names(part: list[object], names: Collection[str]) -> list[str]:
    return [one for one in part if type(one) is str and one in names]


def without_value(captured: Capture, flow: Flow, place: int, known: Collection[str]) -> list[str]:
    """The variables that only a new body has, that it may read before it has given them a value.

    Args:
        captured: the frame that goes on.
        flow: the new body.
        place: where it goes on.
        known: names of new variables that have a value.
    """
    if not flow.code.co_flags & inspect.CO_OPTIMIZED:
        return []
    bound = frozenset(captured.frame.f_locals) | frozenset(known)
    slots = {slot for found in checked_loads(flow, place, bound).values() for slot in found}
    names = flow.code.co_varnames
    return sorted({names[slot] for slot in slots if slot < len(names)} - locals_of(captured.code))
