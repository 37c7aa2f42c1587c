"""Where an edited function goes on, by the rule that the guide gives, and by what each statement is known to be.

The blocks that both texts have stay open; the run goes on in the innermost of them, at its first statement that has
changed, or at the crashed one if that comes first. A block that is gone is left, with all that is open in it.
"""

from __future__ import annotations

from tests.walking.tree import Node, along, everything, path_to
from tests.walking.walker import Frame, Step


class Impossible(Exception):
    """It cannot be told where to go on: the words must refuse."""


class Ambiguous(Exception):
    """More than one place would do."""


def where(frame: Frame, crashed: Node, new: list[Node]) -> tuple[tuple[Step, ...], int]:
    """Where the new body goes on, and how many of the open blocks stay open or need not be left.

    Raises:
        Impossible: there is no such place.
        Ambiguous: it is for nobody to say.
    """
    before, after = frame.function.body, new
    inner = [opened.node for opened in frame.open[1:]] + [crashed]
    target, left = crashed, len(frame.open)
    for number, (opened, following) in enumerate(zip(frame.open, inner, strict=False)):
        node, block, _ = opened
        found = _found(after, node, block)
        if found is not None and not _is_in(found.blocks[block], following) and _is_in(new, following):
            raise Ambiguous(f"what runs in statement {node.ident} has been moved out of it")
        if found is not None and left < len(frame.open) and node.keeps(block):
            target = node
            break
        target = following
        if found is None:
            if block == "finalbody":
                raise Impossible(f"the `finally` of statement {node.ident} is gone")
            if node.keeps(block):
                left = min(left, number)
            index = before.index(node)
            content = node.blocks[block]
            if node.kind == "try" and block == "orelse":
                content = [*node.blocks["body"], *content]
            before = [*before[:index], *content, *before[index + 1 :]]
        else:
            before, after = node.blocks[block], found.blocks[block]
    return _way(frame, new, *_in_block(before, before.index(target), after)), left


def _found(after: list[Node], node: Node, block: str) -> Node | None:
    """What a block has become: in the same place, or in a new block that can be entered anywhere."""
    for other in after:
        if other.ident == node.ident:
            return other if block in other.blocks else None
    for other in after:
        if other.kind in ("if", "while", "try"):
            for name in ("body", "orelse") if other.kind == "if" else ("body",):
                found = _found(other.blocks.get(name, []), node, block)
                if found is not None:
                    return found
    return None


def _is_in(block: list[Node], node: Node) -> bool:
    return any(other.ident == node.ident for other in everything(block))


def _in_block(before: list[Node], index: int, after: list[Node]) -> tuple[Node, bool]:
    """The statement to go on at, and whether to go on behind it."""
    known = {node.ident for node in before}
    while True:
        same = 0
        while same < min(len(before), len(after)) and before[same].said() == after[same].said():
            same += 1
        if same > index:
            return after[index], False
        if same >= len(after):
            return after[-1], True
        first = after[same]
        around = first.kind == "try" and first.ident not in {node.ident for node in everything(before)}
        if not around or not any(node.ident in known for node in first.blocks["body"]):
            return first, False
        # A `try` around what runs is entered where the run is.
        after = [*after[:same], *first.blocks["body"], *after[same + 1 :]]


def _way(frame: Frame, new: list[Node], node: Node, behind: bool) -> tuple[Step, ...]:
    path = path_to(new, node.ident)
    assert path is not None
    states = {opened.node.ident: opened.state for opened in frame.open}
    steps = [
        Step(index, name, states.get(passed.ident))
        for (index, name), passed in zip(path, along(new, path), strict=True)
    ]
    if behind:
        steps[-1] = Step(steps[-1].place + 1)
    return tuple(steps)
