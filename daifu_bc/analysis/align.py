"""How an edited body maps to the one that runs: where to go on in the new text."""

from __future__ import annotations

import ast
import contextlib
import difflib
import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from daifu_bc.analysis.counterparts import (
    TRIES,
    blocks_of,
    counterpart,
    header_of,
    keeps_something,
    text_of,
)
from daifu_bc.errors import NoPoint


@dataclass(frozen=True)
class Aligned:
    """Where an edited function goes on.

    Attributes:
        statement: the statement of the new tree.
        changed: whether it is a changed one (else the crashed one, as it was).
        anchor: the statement of the running tree that holds the crash in the innermost block that both trees have.
        passed: first lines of changed statements that have already run and do not run again by themselves.
        again: line of the crashed statement in the new text, if statements before it run again; else 0.
        gone: the compound statements of the running tree whose blocks are left, the outer one first.
        behind: whether the run goes on behind `statement`, as what crashed and all behind it are gone.
    """

    statement: ast.stmt
    changed: bool
    anchor: ast.stmt
    passed: tuple[int, ...] = ()
    again: int = 0
    gone: tuple[ast.stmt, ...] = ()
    behind: bool = False


#: A statement on the way to another one: the name of the block that it is in, and its index there.
_Way = list[tuple[str, int]]


def _path(body: list[ast.stmt], target: ast.stmt) -> _Way | None:
    """The way to a statement, the outermost one first."""
    for index, node in enumerate(body):
        if node is target:
            return [("body", index)]
        for name, block in blocks_of(node):
            if found := _path(block, target):
                return [("body", index), (name, found[0][1]), *found[1:]]
    return None


def align(old: list[ast.stmt], crashed: ast.stmt, new: list[ast.stmt], *, whole: bool = False) -> Aligned:
    """Where the new body goes on: its first changed statement in the innermost common block, else the crashed one.

    A block that is gone is left: what stood in it is compared with what stands in its place.

    Args:
        old: the body that runs.
        crashed: the statement of it that crashed.
        new: the edited body.
        whole: find the crashed statement itself, whatever has changed before it in its block.

    Raises:
        NoPoint: there is no such statement, or a block that is gone cannot be left.
    """
    path = _path(old, crashed)
    if path is None:
        raise NoPoint("the crashed statement is not in the text of its function")
    before, index = _doing(old, path[0][1])
    after, _ = _doing(new)
    passed: list[int] = []
    running = crashed
    gone: list[ast.stmt] = []
    anchor: ast.stmt | None = None
    for (_, _), (name, inner) in itertools.pairwise(path):
        owner = before[index]
        found = counterpart(before, index, name, after, running)
        if found is not None and anchor is not None and keeps_something(owner, name):
            # It could be entered only from its beginning.
            gone.append(owner)
            crashed = owner
            break
        if found is None:
            gone.append(owner)
            if anchor is None and keeps_something(owner, name):
                anchor = owner
            before, index = _without(before, index, name, inner)
            continue
        passed += _changed_before(before[:index], found.before)
        if header_of(owner) != header_of(found.node):
            passed.append(found.node.lineno)
        before, index = _doing(dict(blocks_of(owner))[name], inner)
        after, _ = _doing(found.block)
    if whole:
        return Aligned(_same_statement(before, index, after), False, anchor or crashed, tuple(passed))
    aligned = _in_block(before, index, after)
    return Aligned(
        aligned.statement,
        aligned.changed,
        anchor or crashed,
        tuple(passed),
        aligned.again,
        tuple(gone),
        aligned.behind,
    )


def _doing(block: list[ast.stmt], index: int = -1) -> tuple[list[ast.stmt], int]:
    """The statements of a block without those for which nothing is done: docstrings and declarations.

    Where there are no others, it is them: a block is never empty.

    Args:
        block: the statements.
        index: one of them, which stays; it is given back as it is now.
    """
    kept = block[index] if index >= 0 else None
    found = [node for place, node in enumerate(block) if node is kept or not _only_says(node, place)] or block
    return found, next((place for place, node in enumerate(found) if node is kept), -1)


def _only_says(node: ast.stmt, place: int) -> bool:
    if isinstance(node, ast.AnnAssign):
        return node.value is None and isinstance(node.target, ast.Name)
    is_text = (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and type(node.value.value) is str
    )
    return (is_text and place == 0) or isinstance(node, ast.Global | ast.Nonlocal)


def _without(before: list[ast.stmt], index: int, name: str, inner: int) -> tuple[list[ast.stmt], int]:
    """The statements of a block, one of its compound statements replaced by what stands in that up to where it is."""
    owner = before[index]
    blocks = dict(blocks_of(owner))
    if name == "finalbody":
        raise NoPoint(
            f"the `finally` that is being run, of the `try` of line {owner.lineno}, is gone from the new text, and it "
            "cannot be told what was to follow it",
            remedy="Keep it, or `skip` to its end first.",
        )
    content, shift = blocks[name], 0
    if name == "orelse" and isinstance(owner, TRIES):
        content, shift = [*owner.body, *content], len(owner.body)
    return [*before[:index], *content, *before[index + 1 :]], index + shift + inner


def _in_block(before: list[ast.stmt], index: int, after: list[ast.stmt]) -> Aligned:
    """Where to go on in a block that both bodies have."""
    crashed = before[index]
    same = _same(before, after)
    while same <= index and same < len(after) and _is_new_try(before, after, same):
        # A `try` that was put around what runs can be entered at any statement.
        after = [*after[:same], *after[same].body, *after[same + 1 :]]  # type: ignore[attr-defined]
        same = _same(before, after)
    if same == index and same < len(after) and _only_blocks_differ(crashed, after[index]):
        return Aligned(after[index], False, crashed)
    if same > index:
        return Aligned(after[index], False, crashed)
    if same >= len(after):
        return Aligned(after[-1], True, crashed, behind=True)
    again = 0
    if same < index:
        with contextlib.suppress(NoPoint):
            again = _same_statement(before, index, after).lineno
    return Aligned(after[same], True, crashed, again=again if again > after[same].lineno else 0)


def _is_new_try(before: list[ast.stmt], after: list[ast.stmt], index: int) -> bool:
    if not isinstance(after[index], TRIES) or (index < len(before) and isinstance(before[index], TRIES)):
        return False
    known = {text_of(node) for node in before}
    return any(text_of(node) in known for node in after[index].body)  # type: ignore[attr-defined]


def _only_blocks_differ(one: ast.stmt, other: ast.stmt) -> bool:
    """Whether a compound statement crashed in its header, which is as it was."""
    return (
        type(one) is type(other)
        and any(block for _, block in blocks_of(one))
        and header_of(one) == header_of(other)
    )


def _same(before: list[ast.stmt], after: list[ast.stmt]) -> int:
    """How many statements are the same at the beginning."""
    same = 0
    for mine, other in zip(before, after, strict=False):
        if text_of(mine) != text_of(other):
            break
        same += 1
    return same


def _same_statement(old: list[ast.stmt], index: int, new: list[ast.stmt]) -> ast.stmt:
    """The statement of `new` that `old[index]` has become."""
    wanted = old[index]
    headers = [header_of(node) for node in old], [header_of(node) for node in new]
    matcher = difflib.SequenceMatcher(None, *headers, autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        if a <= index < a + size:
            return new[b + index - a]
    # It was edited: the one of its kind that stands in the same place among its kind.
    kind = type(wanted)
    rank = sum(isinstance(node, kind) for node in old[:index])
    alike = [node for node in new if isinstance(node, kind)]
    if len(alike) == sum(isinstance(node, kind) for node in old):
        return alike[rank]
    raise NoPoint(
        f"the {kind.__name__.lower()} of line {wanted.lineno} that is being run has no counterpart in the new text",
        remedy="Keep it as it is, or `skip` it first.",
    )


def _changed_before(old: Iterable[ast.stmt], new: Iterable[ast.stmt]) -> list[int]:
    """Lines of `new` whose statements were changed or added before the one that is being run."""
    known = {text_of(node) for node in old}
    return [node.lineno for node in new if text_of(node) not in known]
