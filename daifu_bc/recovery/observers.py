"""Libraries that watch how code runs, and what they have to know of us; an integration puts one in for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import get_ident
from types import CodeType
from typing import Protocol


class Observer(Protocol):
    """What is called about a library; nothing that it does may raise."""

    def pause(self) -> Callable[[], None]:
        """Keep the library from watching this thread, and return what lets it watch again."""

    def continuation(self, code: CodeType) -> None:
        """Take note of the code of a continuation, before it runs."""

    def replaced(self) -> None:
        """Take note that functions have got new code."""


#: What is called when a thread leaves our code, by the threads' numbers.
left: dict[int, list[Callable[[], None]]] = {}
_observers: list[Observer] = []
#: The same list, for who asks often whether there are any.
present = _observers


def add(observer: Observer) -> None:
    """Call an observer from now on.

    Args:
        observer: it is called in the order of adding.
    """
    _observers.append(observer)


def remove(observer: Observer) -> None:
    """Call an observer no more."""
    if observer in _observers:
        _observers.remove(observer)


def pause() -> Iterable[Callable[[], None]]:
    """Keep all libraries from watching this thread, and return what lets them watch again, in the order to call it."""
    # Asked at each exception that meets a barrier.
    if not _observers:
        return ()
    return [observer.pause() for observer in _observers][::-1]


def when_left(function: Callable[[], None]) -> None:
    """Call a function when this thread, which is held, leaves our code."""
    left.setdefault(get_ident(), []).append(function)


def leave() -> None:
    """This thread leaves our code."""
    for function in left.pop(get_ident(), ()):
        function()


def continuation(code: CodeType) -> None:
    """Tell that a continuation was built."""
    for observer in _observers:
        observer.continuation(code)


def replaced() -> None:
    """Tell that functions have got new code."""
    for observer in _observers:
        observer.replaced()
