"""Which compound statement of an edited text a block that is being run has become."""

from __future__ import annotations

import ast
import difflib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from daifu_bc.analysis.trees import said

_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BLOCKS: Final = ("body", "orelse", "finalbody", "handlers", "cases")
TRIES: Final = (ast.Try, ast.TryStar)


class Counterpart(NamedTuple):
    """Where a block goes on to be.

    Attributes:
        node: the compound statement of the new text.
        block: the statements of its block that is being run.
        before: the statements of the new text that come before it, those around it first.
    """

    node: ast.stmt
    block: list[ast.stmt]
    before: list[ast.stmt]


def text_of(node: ast.AST) -> object:
    """What a statement says; the bodies of definitions in it count as replaced and not as run."""
    return said(node, ("body",) if isinstance(node, _DEFINITIONS) else ())


def header_of(node: ast.AST) -> object:
    """A compound statement without its blocks."""
    if isinstance(node, TRIES):
        return type(node), bool(node.finalbody), *[said(handler.type) for handler in node.handlers]
    return said(node, _BLOCKS)


def blocks_of(node: ast.stmt) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The blocks of a compound statement, each with its name; a definition has none that are run with it."""
    if isinstance(node, _DEFINITIONS):
        return
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list):
            yield field, block
    for field in ("handlers", "cases"):
        for number, part in enumerate(getattr(node, field, [])):
            yield f"{field}.{number}", part.body


def keeps_something(node: ast.stmt, name: str) -> bool:
    """Whether there is something to be left when a block is: it keeps something on the stack, or a `finally` follows."""
    if isinstance(node, TRIES):
        return bool(node.finalbody) or name.startswith("handlers")
    return name == "body" and isinstance(node, (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith))


def counterpart(
    old: list[ast.stmt], index: int, name: str, new: list[ast.stmt], crashed: ast.stmt
) -> Counterpart | None:
    """What a block that is being run has become; None if it is gone.

    A statement of the same kind is it whose content or header is the same; statements may have been added, changed and
    taken away in front of it, and blocks that can be entered at any place (`try`, `if`, `while`) put around it.

    Args:
        old: the statements around the block in the running text.
        index: the compound statement among them.
        name: which of its blocks is being run.
        new: the statements of the new text that stand in the place of `old`.
        crashed: the statement in the block, or in a block in it, that is being run.
    """
    wanted = old[index]
    key = header_of(crashed) if any(blocks_of(crashed)) else text_of(crashed)
    # Another statement that is still as it was has not become this one.
    others = set(_texts(node for node in old if node is not wanted)) - {text_of(wanted)}
    content = dict(blocks_of(wanted))[name]
    leaves = Counter(_leaves(content))
    # What of the block stands outside of a candidate, and was not outside before.
    outside = Counter(_leaves([node for node in old if node is not wanted]))
    all_new = Counter(_leaves(new))
    best: tuple[float, Counterpart] | None = None
    order = _same_places(old, new)
    for node, before, deep in _candidates(new, type(wanted), []):
        block = _block(wanted, name, node)
        if not block:
            continue
        inner = Counter(_leaves(block))
        here = _share(leaves, inner)
        moved = _share(leaves, all_new - inner - outside)
        same = header_of(node) == header_of(wanted)
        if _own(node) != _own(wanted) and (_holds(block, wanted) or _holds(content, node)):
            continue  # one of the two is around what the other one is
        runs = key in inner
        if text_of(node) in others or (deep and not here):
            continue
        if (moved > here and not runs) or not (
            here or same or (not deep and _only_one(old, wanted, new, node))
        ):
            continue
        score = (
            2 * here
            + 2 * runs
            + same
            + 0.5 * (order.get(index) is node)
            - 0.25 * deep
            + 0.5 * _share(inner, leaves)
        )
        if best is None or score > best[0]:
            best = score, Counterpart(node, block, before)
    return best[1] if best is not None else None


def _candidates(
    new: list[ast.stmt], kind: type[ast.stmt], before: list[ast.stmt], deep: int = 0
) -> Iterator[tuple[ast.stmt, list[ast.stmt], int]]:
    for index, node in enumerate(new):
        passed = [*before, *new[:index]]
        if type(node) is kind:
            yield node, passed, deep
        if isinstance(node, (ast.If, ast.While, *TRIES)):
            fields = ("body", "orelse") if isinstance(node, ast.If) else ("body",)
            for field in fields:
                yield from _candidates(getattr(node, field), kind, [*passed, node], deep + 1)


def _own(node: ast.AST) -> object:
    """What a compound statement says beside its body: a `try` says it at its end."""
    return said(node, ("body", "orelse") if isinstance(node, TRIES) else _BLOCKS)


def _texts(block: Iterable[ast.stmt]) -> Iterator[object]:
    """What the compound statements of a block and of the blocks in it say."""
    for node in block:
        inner = list(blocks_of(node))
        if inner:
            yield text_of(node)
        for _, statements in inner:
            yield from _texts(statements)


def _holds(block: list[ast.stmt], wanted: ast.stmt) -> bool:
    """Whether the same compound statement, whatever its body, lies in a block or in a block in it."""
    return any(
        _is_same(node, wanted) or any(_holds(inner, wanted) for _, inner in blocks_of(node)) for node in block
    )


def _is_same(node: ast.stmt, wanted: ast.stmt) -> bool:
    """Whether two compound statements say the same beside their bodies, or have the same header and most of the body."""
    if type(node) is not type(wanted):
        return False
    if _own(node) == _own(wanted):
        return True
    if (
        header_of(node) != header_of(wanted)
        or _has_inside(wanted, _own(node))
        or _has_inside(node, _own(wanted))
    ):
        return False
    mine, other = (Counter(_leaves(dict(blocks_of(one)).get("body", []))) for one in (wanted, node))
    return _share(mine, other) > 0.5 and _share(other, mine) > 0.5


def _has_inside(node: ast.stmt, own: object) -> bool:
    """Whether one of the compound statements in the blocks of another one says this beside its body."""
    return any(_own(part) == own or _has_inside(part, own) for _, block in blocks_of(node) for part in block)


def _leaves(block: list[ast.stmt]) -> Iterator[object]:
    """What the statements of a block and of the blocks in it say."""
    for node in block:
        inner = list(blocks_of(node))
        if not inner:
            yield text_of(node)
            continue
        if not isinstance(node, TRIES):
            yield header_of(node)
        for _, statements in inner:
            yield from _leaves(statements)


def _share(of: Counter[object], others: Counter[object]) -> float:
    return (of & others).total() / max(1, of.total())


def _same_places(old: list[ast.stmt], new: list[ast.stmt]) -> dict[int, ast.stmt]:
    """The statements of the new text that have the same header as those of the old one, in the order of both."""
    headers = [header_of(node) for node in old], [header_of(node) for node in new]
    matcher = difflib.SequenceMatcher(None, *headers, autojunk=False)
    return {a + k: new[b + k] for a, b, size in matcher.get_matching_blocks() for k in range(size)}


def _only_one(old: list[ast.stmt], wanted: ast.stmt, new: list[ast.stmt], node: ast.stmt) -> bool:
    """Whether a statement has the same rank among those of its kind, of which there are as many as before."""
    kind = type(wanted)
    mine = [other for other in old if type(other) is kind]
    theirs = [other for other in new if type(other) is kind]
    return len(mine) == len(theirs) and theirs[mine.index(wanted)] is node


def _block(wanted: ast.stmt, name: str, node: ast.stmt) -> list[ast.stmt]:
    """The block of a candidate that the one of this name in `wanted` has become; empty if there is none."""
    field, _, number = name.partition(".")
    if not number:
        return getattr(node, field, None) or []
    parts = getattr(node, field, [])
    mine = getattr(wanted, field)[int(number)]
    alike = [part for part in parts if _test(part) == _test(mine)]
    if not alike and len(parts) == len(getattr(wanted, field)):
        alike = [parts[int(number)]]
    return list(alike[0].body) if alike else []


def _test(part: ast.AST) -> object:
    """What decides whether a handler or a case is run."""
    return said(part, ("body",))
