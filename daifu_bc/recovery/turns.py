"""Whose turn it is to be asked: threads may be held at the same time, and there is one terminal.

Each held thread asks for itself, but only while the turn is its own; the others wait, in the order in which they have
come. What is known of them here is text: nothing of the program's is kept alive.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from daifu_bc.errors import Refusal
from daifu_bc.recovery.attributes import plain_text
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.interrupts import undisturbed


@dataclass(slots=True, eq=False)
class Place:
    """A hold's place in the queue.

    Attributes:
        number: the hold's.
        asks: whether a person answers it.
        thread: the name of its thread.
        ident: the thread's number.
        filename: the file that it is held in.
        line: the line.
        function: the function's qualified name.
        error: the class of what was raised, and its text if it has a plain one.
        since: when the hold began, as `time.time()` tells it.
        began: the same, as `time.monotonic()` tells it.
        order: the number of the outermost hold of its thread, and its own.
        told: whether the person knows that it is there.
        exit_code: with which it is to end, without being asked.
    """

    number: int
    asks: bool
    thread: str
    ident: int
    filename: str
    line: int
    function: str
    error: tuple[str, str]
    since: float
    began: float
    order: tuple[int, int] = (0, 0)
    told: bool = False
    exit_code: int | None = None


class Turns:
    """The holds that are not decided yet, and the one of them whose turn it is."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._places: list[Place] = []
        self._turn: Place | None = None
        self._wanted: Place | None = None
        self._latest = 0

    # -- the thread of a hold ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def entered(self, hold: HoldLike, *, asks: bool) -> Iterator[Place]:
        """Within, the hold is one of those that are there; afterwards another one has the turn.

        Args:
            hold: it.
            asks: whether a person answers it.
        """
        place = _place(hold, asks)
        with self._changed:
            outer = self._last_of(place.ident)
            place.order = (outer.order[0] if outer else place.number, place.number)
            self._places.append(place)
            self._places.sort(key=lambda one: one.order)
            self._latest = max(self._latest, place.number)
            if asks and self._turn in (None, outer):  # it has come of what was typed at the prompt, if at all
                self._turn = place
        try:
            yield place
        finally:
            with self._changed:
                self._places.remove(place)
                if self._wanted is place:
                    self._wanted = None
                if self._turn is place:
                    self._turn = self._next(place.ident)
                self._changed.notify_all()

    def wait(self, place: Place) -> int | None:
        """Wait for the turn; if the hold is to end with an exit code instead, return that.

        Args:
            place: that of a hold of this thread, which may have the turn and want another one to have it.
        """
        with undisturbed(), self._changed:
            if self._turn is place and self._wanted is not None:
                self._turn, self._wanted = self._wanted, None
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._turn is place or place.exit_code is not None)
            place.told = True
            return place.exit_code

    def _next(self, ident: int) -> Place | None:
        """The hold whose action a thread goes on with, else the one that has waited longest."""
        outer = self._last_of(ident)
        return outer if outer is not None and outer.asks else next(iter(self._waiting()), None)

    def _waiting(self) -> list[Place]:
        """The holds that may have the turn; the oldest first."""
        asking = (place for place in self._places if place.asks and place.exit_code is None)
        return [place for place in asking if self._last_of(place.ident) is place]

    def _last_of(self, ident: int) -> Place | None:
        """The innermost hold of a thread."""
        return next((place for place in reversed(self._places) if place.ident == ident), None)

    # -- the one who answers -------------------------------------------------------------------------------------

    def places(self) -> list[Place]:
        """All holds that are there, in the order of their threads' arrival."""
        return list(self._places)

    def wait_until(self, is_so: Callable[[Sequence[Place]], bool]) -> None:
        """Wait until the holds that are there are such; in a thread that is not held.

        Args:
            is_so: is told the holds.
        """
        with self._changed:
            self._changed.wait_for(lambda: is_so(self._places))

    def inner(self, place: Place) -> Place | None:
        """The hold that has come of an action of this one's, if there is one; this one has to wait for it."""
        last = self._last_of(place.ident)
        return None if last is place else last

    def goes_on_asking(self, hold: HoldLike) -> bool:
        """Tell whether the person is to be asked about this hold now, and not about another one."""
        place = self._of(hold.number)
        if place is None:  # somebody asks who has not entered it
            return True
        return self._turn is place and self._wanted is None and place.exit_code is None

    def asking(self, ident: int) -> int:
        """Return the number of the thread that has the turn.

        Args:
            ident: the number that is returned if none has.
        """
        turn = self._turn
        return ident if turn is None else turn.ident

    def someone_waits(self) -> bool:
        """Tell whether a person will be asked about any hold when the present one is over."""
        return any(place.asks for place in self._places if place is not self._turn)

    def pass_on(self, hold: HoldLike, number: int) -> Place:
        """The hold of that number is to have the turn as soon as this one has left the prompt.

        Raises:
            Refusal: it cannot have it.
        """
        with self._changed:
            place, own = self._of(number), self._of(hold.number)
            if own is None or not own.asks:
                raise Refusal(
                    "there is no prompt that could go to another hold",
                    why="nobody sits at it: each hold is answered as it comes",
                )
            if place is None:
                what = (
                    f"hold {number} is over" if 0 < number <= self._latest else f"there is no hold {number}"
                )
                raise Refusal(what, remedy="`holds` lists those that are there.")
            if place is own:
                raise Refusal(f"this is hold {number}", remedy="`holds` lists the others.")
            if not place.asks:
                raise Refusal(f"hold {number} is answered by a playbook")
            inner = self.inner(place)
            if inner is own:
                raise Refusal(
                    f"hold {number} waits for this one, which has come of an action there",
                    remedy="Decide about this one first.",
                )
            if inner is not None:
                raise Refusal(
                    f"hold {number} waits for hold {inner.number}, which has come of an action there",
                    remedy=f"`hold {inner.number}` goes to that one.",
                )
            self._wanted = place
            return place

    def move_on(self) -> Place | None:
        """Take the turn from a hold whose action does not end, and give it to the oldest other one, if there is one."""
        with self._changed:
            others = [place for place in self._waiting() if place is not self._turn]
            if not others:
                return None
            self._turn, self._wanted = others[0], None
            self._changed.notify_all()
            return others[0]

    def leave(self, hold: HoldLike, code: int) -> list[Place]:
        """All other holds that a person would be asked about end with an exit code, too; those.

        Args:
            hold: the one that is left.
            code: the exit code.
        """
        with self._changed:
            others = [place for place in self._places if place.asks and place.number != hold.number]
            for place in others:
                place.exit_code = code
            self._changed.notify_all()
            return others

    def _of(self, number: int) -> Place | None:
        return next((place for place in self._places if place.number == number), None)

    # ------------------------------------------------------------------------------------------------------------

    def in_child(self) -> None:
        """In a forked child no other thread is held, and the lock may have been anybody's."""
        self._changed = threading.Condition()
        own = threading.get_ident()
        self._places = [place for place in self._places if place.ident == own]
        self._wanted = None
        if self._turn not in self._places:
            self._turn = self._next(own)


def _place(hold: HoldLike, asks: bool) -> Place:
    frame = next((frame for frame in hold.frames if frame.held), hold.selected)
    # Nothing of the program's is run for it: neither a `__str__` nor a property.
    text = plain_text(hold.exception)
    return Place(
        hold.number,
        asks,
        hold.thread_name,
        threading.get_ident(),
        frame.filename,
        frame.line,
        frame.name,
        (type(hold.exception).__name__, text),
        hold.started,
        hold.began,
    )


def facts(hold: HoldLike | Place) -> dict[str, Any]:
    """Return what others are told of a hold, as it goes into JSON.

    Args:
        hold: it, or its place.
    """
    place = hold if isinstance(hold, Place) else _place(hold, asks=False)
    return {
        "number": place.number,
        "thread": place.thread,
        "file": place.filename,
        "line": place.line,
        "function": place.function,
        "error": {"type": place.error[0], "text": place.error[1]},
        "since": place.since,
    }


#: Of this process.
turns: Final = Turns()

os.register_at_fork(after_in_child=turns.in_child)
