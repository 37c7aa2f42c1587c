"""How an edited body maps to the one that runs: where to go on in the new text."""

from __future__ import annotations

import ast
import contextlib
import difflib
import itertools
from dataclasses import dataclass

from daifu_bc.analysis.trees import said
from daifu_bc.errors import NoPoint

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


@dataclass(frozen=True)
class Aligned:
    """Where an edited function goes on.

    Attributes:
        statement: the statement of the new tree.
        changed: whether it is a changed one (else the crashed one, as it was).
        again: line of the crashed statement in the new text, if statements before it run again; else 0.
        passed: first lines of changed statements that have already run and do not run again by themselves.
    """

    statement: ast.stmt
    changed: bool
    passed: tuple[int, ...] = ()
    again: int = 0


def text_of(node: ast.AST) -> object:
    """What a statement says; the bodies of definitions in it count as replaced and not as run."""
    return said(node, ("body",) if isinstance(node, _DEFINITIONS) else ())


def header_of(node: ast.AST) -> object:
    """A compound statement without its blocks."""
    return said(node, _BLOCKS)


def _path(body: list[ast.stmt], target: ast.stmt) -> list[tuple[ast.AST | None, str, int]] | None:
    """The way to a statement: for each level its owner, the block's name and the index in it."""

    def search(
        owner: ast.AST | None, name: str, block: list[ast.stmt]
    ) -> list[tuple[ast.AST | None, str, int]] | None:
        for index, node in enumerate(block):
            here = (owner, name, index)
            if node is target:
                return [here]
            if isinstance(node, _DEFINITIONS):
                continue
            for field in ("body", "orelse", "finalbody"):
                inner = getattr(node, field, None)
                if isinstance(inner, list) and (found := search(node, field, inner)):
                    return [here, *found]
            for field in ("handlers", "cases"):
                for number, part in enumerate(getattr(node, field, [])):
                    if found := search(node, f"{field}.{number}", part.body):
                        return [here, *found]
        return None

    return search(None, "body", body)


def _block(node: ast.AST, name: str) -> list[ast.stmt] | None:
    field, _, number = name.partition(".")
    found = getattr(node, field, None)
    if number and isinstance(found, list):
        return list(found[int(number)].body) if int(number) < len(found) else None
    return found if isinstance(found, list) else None


def _partner(old: list[ast.stmt], index: int, new: list[ast.stmt]) -> ast.stmt:
    """The compound statement of `new` that `old[index]` has become."""
    wanted = old[index]
    headers = [header_of(node) for node in old], [header_of(node) for node in new]
    matcher = difflib.SequenceMatcher(None, *headers, autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        if a <= index < a + size:
            return new[b + index - a]
    # Its header was edited: the one of its kind that stands in the same place among its kind.
    kind = type(wanted)
    rank = sum(isinstance(node, kind) for node in old[:index])
    alike = [node for node in new if isinstance(node, kind)]
    if len(alike) == sum(isinstance(node, kind) for node in old):
        return alike[rank]
    raise NoPoint(
        f"the {kind.__name__.lower()} of line {wanted.lineno} that is being run has no counterpart in the new text",
        remedy="Keep the blocks around the crashed statement, or use `goto`.",
    )


def align(old: list[ast.stmt], crashed: ast.stmt, new: list[ast.stmt], *, whole: bool = False) -> Aligned:
    """Where the new body goes on: its first changed statement in the innermost block, else the crashed one.

    Args:
        old: the body that runs.
        crashed: the statement of it that crashed.
        new: the edited body.
        whole: find the crashed statement itself, whatever has changed before it in its block.

    Raises:
        NoPoint: the blocks around the crashed statement are not the same.
    """
    path = _path(old, crashed)
    if path is None:
        raise NoPoint("the crashed statement is not in the text of its function")
    before, after = old, new
    passed: list[int] = []
    for (_, _, index), (_, name, _) in itertools.pairwise(path):
        passed += _changed_before(before, index, after)
        partner = _partner(before, index, after)
        if type(partner) is not type(before[index]):
            raise NoPoint(f"the block of line {before[index].lineno} has become another kind of statement")
        old_block, new_block = _block(before[index], name), _block(partner, name)
        if old_block is None or not new_block:
            raise NoPoint(
                f"the block of line {before[index].lineno} that is being run is gone from the new text"
            )
        before, after = old_block, new_block
    index = path[-1][2]
    if whole:
        return Aligned(_partner(before, index, after), False, tuple(passed))
    same = 0
    for mine, other in zip(before, after, strict=False):
        if text_of(mine) != text_of(other):
            break
        same += 1
    if same > index:
        return Aligned(after[index], False, tuple(passed))
    if same >= len(after):
        raise NoPoint(
            "the crashed statement and all behind it in its block are gone", remedy="Use `skip` or `goto`."
        )
    again = 0
    if same < index:
        with contextlib.suppress(NoPoint):
            again = _partner(before, index, after).lineno
    return Aligned(after[same], True, tuple(passed), again if again > after[same].lineno else 0)


def _changed_before(old: list[ast.stmt], index: int, new: list[ast.stmt]) -> list[int]:
    """Lines of `new` whose statements were changed or added before the one that is being run."""
    texts = [text_of(node) for node in old[:index]]
    partner = _partner(old, index, new)
    known = set(texts)
    return [node.lineno for node in new[: new.index(partner)] if text_of(node) not in known]
