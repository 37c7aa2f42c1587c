"""What surgeries have made of the frames of a hold: its own ones, and those that are done elsewhere while it is held.

Threads often crash by the same mistake. It is mended once, and each of them goes on in the new text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import CodeType

from daifu_bc.analysis.statements import parse
from daifu_bc.errors import Refusal
from daifu_bc.recovery import history
from daifu_bc.recovery.bodies import flow_of
from daifu_bc.recovery.transfer import transfer
from daifu_bc.recovery.ways import Moved, Ways
from daifu_bc.rewrite.barrier import pristine


class BodyChanges:
    """The changes during one hold.

    Attributes:
        obstacle: why the held frame cannot go on in a body that its function has got elsewhere; empty if it can.
        staying: by the frame's code the same of frames further out.
    """

    def __init__(self) -> None:
        self.obstacle = ""
        self.staying: dict[CodeType, str] = {}
        self._seen = history.steps()
        #: For each surgery what a frame would have gone on in without it.
        self._done: list[tuple[history.Step, Ways, Moved | None]] = []

    def move(self, ways: Ways, moved: Moved, step: history.Step | None) -> None:
        """Let a frame go on in another body.

        Args:
            ways: the frame's.
            moved: the body.
            step: the surgery, if something was replaced.
        """
        if step is not None:
            self._done.append((step, ways, ways.moved))
        ways.moved = moved

    def catch_up(self, ways: Ways) -> None:
        """Let the held frame go on in what its function is now.

        Args:
            ways: the frame's.
        """
        for step in self._in_force():
            if not _has(self._seen, step):
                self._seen.append(step)
                self._follow(ways, step)

    def catch_up_outer(self, ways: Ways) -> None:
        """Let a frame further out, which waits for what it has called, go on in what its function is now.

        Its statement is not over, so that statement is where it goes on, whatever has changed before.

        Args:
            ways: the frame's.
        """
        self.staying.pop(ways.captured.code, None)
        for step in self._in_force():
            for code, values in _next_bodies(ways, step):
                moved = ways.moved
                if ways.move_to(flow_of(code), values):  # blocks have come or gone around the statement
                    try:
                        ways.moved = Moved(transfer(ways.captured, code, _text(code)), values)
                    except Refusal as refusal:
                        self.staying[ways.captured.code] = f"it goes on in the body that it runs: {refusal}"
                        return
                self._done.append((step, ways, moved))

    def _in_force(self) -> list[history.Step]:
        """The surgeries that are in force; frames are taken out of those that no longer are."""
        present = history.steps()
        for done in reversed(self._done):
            if not _has(present, done[0]):
                done[1].moved = done[2]
        self._done = [done for done in self._done if _has(present, done[0])]
        return present

    def _follow(self, ways: Ways, step: history.Step) -> None:
        for code, values in _next_bodies(ways, step):
            try:
                to = transfer(ways.captured, code, _text(code))
            except Refusal as refusal:
                self.obstacle = f"{code.co_qualname} was replaced, and goes on here as it was: {refusal}"
                return
            self.obstacle = ""
            self.move(ways, Moved(to, values), step)


def _next_bodies(ways: Ways, step: history.Step) -> Iterator[tuple[CodeType, dict[str, object]]]:
    """The bodies that a surgery has put in the place of the one in which a frame would go on, one after the other.

    Each with the values of parameters that only it has.
    """
    for before, after in step.codes:
        code = pristine(after)
        if pristine(before) is ways.flow.code and code is not ways.flow.code:
            yield code, step.values.get(id(after), {})


def _text(code: CodeType) -> ast.Module:
    return parse(code) or ast.Module([], [])


def _has(steps: list[history.Step], wanted: history.Step) -> bool:
    return any(step is wanted for step in steps)
