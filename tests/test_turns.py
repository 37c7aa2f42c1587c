"""Whose turn it is: threads that are held at the same time, and one terminal."""

from __future__ import annotations

import os
import queue
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import pytest

from daifu_bc.errors import Refusal
from daifu_bc.recovery.turns import Turns
from tests.fake_hold import FakeHold, crash, make

PATIENCE = 20


def fake(number: int) -> FakeHold:
    hold = make()
    hold.number = number
    hold.thread_name = f"thread of {number}"
    return hold


class Held:
    """A thread that holds are in, and does what it is told.

    Args:
        turns: the queue.
        numbers: of its holds, each in an action of the one before.
        asks: whether a person is asked.
    """

    def __init__(self, turns: Turns, *numbers: int, asks: bool = True) -> None:
        self.turns = turns
        self.holds = [fake(number) for number in numbers]
        self.answers: queue.Queue[object] = queue.Queue()
        self._orders: queue.Queue[Callable[[], object] | None] = queue.Queue()
        self._places = [ExitStack() for _ in numbers]
        self._thread = threading.Thread(target=self._obey, daemon=True)
        self._thread.start()
        for hold, place in zip(self.holds, self._places, strict=True):
            entered = turns.entered(hold, asks=asks)
            self.do(partial(place.enter_context, entered))

    def _obey(self) -> None:
        while (order := self._orders.get()) is not None:
            self.answers.put(order())

    def end(self) -> None:
        """Let the holds and the thread end."""
        for place in reversed(self._places):
            self._orders.put(place.close)
        self._orders.put(None)
        self._thread.join(PATIENCE)

    def do(self, order: Callable[[], object]) -> object:
        """Have the thread do something, and wait for the answer."""
        self._orders.put(order)
        return self.answers.get(timeout=PATIENCE)

    def wait(self) -> None:
        """Have the innermost hold wait for its turn."""
        number = self.holds[-1].number
        place = next(place for place in self.turns.places() if place.number == number)
        self._orders.put(lambda: (number, self.turns.wait(place)))

    def came(self) -> object:
        """Return what the waiting has ended with."""
        return self.answers.get(timeout=PATIENCE)

    def decide(self) -> None:
        """End the innermost hold."""
        self.do(self._places.pop().close)
        self.holds.pop()


@pytest.fixture
def turns() -> Turns:
    return Turns()


Hold = Callable[..., Held]


@pytest.fixture
def held(turns: Turns) -> Iterator[Hold]:
    threads: list[Held] = []

    def start(*numbers: int, asks: bool = True) -> Held:
        threads.append(Held(turns, *numbers, asks=asks))
        return threads[-1]

    yield start
    turns.leave(fake(0), 0)
    for one in threads:
        one.end()


def test_the_one_who_has_waited_longest_is_next(turns: Turns, held: Hold) -> None:
    first, third, second = held(1), held(3), held(2)
    for one in (second, third, first):
        one.wait()
    assert first.came() == (1, None)
    assert [place.number for place in turns.places()] == [1, 2, 3]
    first.decide()
    assert second.came() == (2, None)
    assert third.answers.empty()
    second.decide()
    assert third.came() == (3, None)
    third.decide()
    assert turns.places() == []
    last = held(4)
    last.wait()
    assert last.came() == (4, None)


def test_the_turn_is_passed_on_when_the_prompt_has_been_left(turns: Turns, held: Hold) -> None:
    first, second, third = held(1), held(2), held(3)
    for one in (first, second, third):
        one.wait()
    assert first.came() == (1, None)
    assert turns.pass_on(first.holds[0], 3).thread == "thread of 3"
    assert not turns.goes_on_asking(first.holds[0])
    assert third.answers.empty()
    first.wait()
    assert third.came() == (3, None)
    assert turns.goes_on_asking(third.holds[0])
    third.decide()
    assert first.came() == (1, None)  # it is older than the second


def test_a_hold_in_an_action_stands_in_its_threads_place(turns: Turns, held: Hold) -> None:
    first, second = held(1, 3), held(2)
    inner = first.holds[1]
    for one in (first, second):
        one.wait()
    assert first.came() == (3, None)
    assert [place.number for place in turns.places()] == [1, 3, 2]
    with pytest.raises(Refusal, match=r"hold 1 waits for this one, .* Decide about this one first\."):
        turns.pass_on(inner, 1)
    turns.pass_on(inner, 2)
    first.wait()
    assert second.came() == (2, None)
    with pytest.raises(Refusal, match=r"hold 1 waits for hold 3, .* `hold 3` goes to that one\."):
        turns.pass_on(second.holds[0], 1)
    second.decide()
    assert first.came() == (3, None)
    first.decide()
    assert turns.goes_on_asking(first.holds[0])  # the action goes on at its own prompt
    assert turns.asking(0) == turns.places()[0].ident


def test_the_turn_is_taken_from_one_who_is_busy(turns: Turns, held: Hold) -> None:
    first = held(1)
    first.wait()
    assert first.came() == (1, None)
    assert turns.move_on() is None
    assert turns.goes_on_asking(first.holds[0])
    second = held(2, 3)
    second.wait()
    place = turns.move_on()
    assert place is not None
    assert place.number == 3
    assert second.came() == (3, None)
    assert not turns.goes_on_asking(first.holds[0])
    second.decide()
    assert turns.goes_on_asking(second.holds[0])
    second.decide()
    assert turns.goes_on_asking(first.holds[0])


def test_what_cannot_have_the_turn(turns: Turns, held: Hold) -> None:
    first, played = held(2), held(4, asks=False)
    hold = first.holds[0]
    for number, why in (
        (1, "hold 1 is over"),
        (2, "this is hold 2"),
        (4, "hold 4 is answered by a playbook"),
        (5, "there is no hold 5"),
    ):
        with pytest.raises(Refusal, match=why):
            turns.pass_on(hold, number)
        assert turns.goes_on_asking(hold)
    with pytest.raises(Refusal, match="each hold is answered as it comes"):
        turns.pass_on(played.holds[0], 2)


def test_leaving_one_leaves_all_that_a_person_would_be_asked_about(turns: Turns, held: Hold) -> None:
    first, second = held(1, 4), held(2)
    held(3, asks=False)
    for one in (first, second):
        one.wait()
    assert first.came() == (4, None)
    assert [place.number for place in turns.leave(first.holds[1], 7)] == [1, 2]
    assert second.came() == (2, 7)
    second.decide()
    first.decide()
    assert not turns.goes_on_asking(first.holds[0])
    first.wait()
    assert first.came() == (1, 7)
    first.decide()
    assert [place.number for place in turns.places()] == [3]
    after = held(5)
    after.wait()
    assert after.came() == (5, None)


def test_nothing_of_the_programs_runs_or_is_kept_for_a_place(turns: Turns) -> None:
    class Rude(Exception):
        def __str__(self) -> str:
            raise AssertionError("it was asked for its text")

        @property
        def args(self) -> tuple[object, ...]:  # type: ignore[override]
            raise AssertionError("it was asked for its arguments")

    def fail(*arguments: object) -> None:
        raise Rude(*arguments)

    with (
        turns.entered(FakeHold(crash(fail, "plain")), asks=True) as plain,
        turns.entered(FakeHold(crash(fail, object())), asks=True) as other,
    ):
        assert (plain.error, other.error) == (("Rude", "plain"), ("Rude", ""))


def in_child(turns: Turns, check: Callable[[], bool]) -> bool:
    """Tell what a forked child finds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        status = 2
        try:
            turns.in_child()
            status = int(not check())
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_forked_child_waits_for_nobody(turns: Turns, held: Hold) -> None:
    """Neither for the thread that has the turn nor for the one that was changing something."""
    first, second = held(1), held(2)
    for one in (first, second):
        one.wait()
    assert first.came() == (1, None)
    leave = threading.Event()

    def change() -> bool:
        with turns._changed:
            first.answers.put("changing")
            return leave.wait(PATIENCE)

    first._orders.put(change)
    assert first.came() == "changing"

    def check() -> bool:
        with turns.entered(fake(3), asks=True) as place:
            return turns.wait(place) is None and turns.places() == [place]

    assert in_child(turns, check)
    leave.set()
    assert first.came() is True


def test_a_fork_in_an_action_stays_at_its_prompt(turns: Turns, held: Hold) -> None:
    first = held(1)
    hold = fake(2)
    with turns.entered(hold, asks=True) as place:
        turns.pass_on(first.holds[0], 2)
        first.wait()
        assert turns.wait(place) is None
        third = held(3)
        turns.pass_on(hold, 3)  # is over in the child

        def check() -> bool:
            asks = turns.goes_on_asking(hold) and turns.wait(place) is None
            return asks and turns.places() == [place]

        assert in_child(turns, check)
    third.wait()
    assert first.came() == (1, None)
    first.decide()
    assert third.came() == (3, None)
