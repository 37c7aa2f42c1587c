"""The surgeries of this process: what each has changed, so that it can be taken back and be written down."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType
from typing import Any, Final

from daifu_bc.errors import Refusal
from daifu_bc.recovery import observers
from daifu_bc.recovery.closures import give

_MISSING: Final = object()


@dataclass(frozen=True)
class TextChange:
    """What a surgery has changed in a text.

    Attributes:
        filename: the file that the code was loaded from.
        old: the text before; empty if it is not known.
        new: the text after it, or the new definition alone.
    """

    filename: str
    old: str
    new: str


@dataclass
class Step:
    """One surgery.

    Attributes:
        texts: what it has changed in texts.
        title: what it was, in a few words.
        codes: code objects before and after, of which each function got the second in the place of the first.
        values: by the id of the second, the values of parameters that only that one has.
    """

    title: str
    codes: list[tuple[CodeType, CodeType]] = field(default_factory=list)
    texts: list[TextChange] = field(default_factory=list)
    values: dict[int, dict[str, object]] = field(default_factory=dict)
    _restore: list[Callable[[], str]] = field(default_factory=list)

    def give_code(
        self, function: FunctionType, code: CodeType, closure: tuple[CellType, ...] | None = None
    ) -> None:
        """Gives a function new code, and the cells for it if it has other free variables than the old one."""
        before, cells = function.__code__, function.__closure__
        same = before.co_freevars == code.co_freevars
        if same:
            function.__code__ = code
        else:
            give(function, code, closure)
        self.codes.append((before, code))

        def back() -> str:
            if function.__code__ is not code:
                return f"{function.__qualname__} has got other code since, and is left as it is"
            if same:
                function.__code__ = before
            else:
                give(function, before, cells)
            return ""

        self._restore.append(back)

    def give_defaults(
        self, function: FunctionType, positional: tuple[Any, ...] | None, keyword: dict[str, Any] | None
    ) -> None:
        """Gives a function new default values."""
        before = function.__defaults__, function.__kwdefaults__
        function.__defaults__, function.__kwdefaults__ = positional, keyword

        def back() -> str:
            function.__defaults__, function.__kwdefaults__ = before
            return ""

        self._restore.append(back)

    def set_item(self, namespace: dict[str, Any], name: str, value: object) -> None:
        """Gives a name of a namespace a value."""
        self.will_change(namespace, (name,))
        namespace[name] = value

    def set_attribute(self, owner: type, name: str, value: object) -> None:
        """Gives a class an attribute."""
        before = vars(owner).get(name, _MISSING)
        setattr(owner, name, value)

        def back() -> str:
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
            return ""

        self._restore.append(back)

    def will_change(self, namespace: dict[str, Any], names: Iterator[str] | tuple[str, ...]) -> None:
        """Remembers what names of a namespace are now; they are about to be changed."""
        before = {name: namespace.get(name, _MISSING) for name in names}

        def back() -> str:
            for name, value in before.items():
                if value is _MISSING:
                    namespace.pop(name, None)
                else:
                    namespace[name] = value
            return ""

        self._restore.append(back)

    def take_back(self) -> list[str]:
        """Puts everything back as it was before; what could not be, in sentences."""
        notes = [note for restore in reversed(self._restore) if (note := restore())]
        observers.replaced()
        return notes


_lock = threading.Lock()
_steps: list[Step] = []


def add(step: Step) -> None:
    """Remembers a surgery that has been done."""
    with _lock:
        _steps.append(step)


def steps() -> list[Step]:
    """The surgeries that are in force, the first one first."""
    with _lock:
        return list(_steps)


def undo() -> tuple[Step, list[str]]:
    """Takes the last surgery back.

    Returns:
        It, and sentences on what could not be put back.

    Raises:
        Refusal: there is none.
    """
    with _lock:
        if not _steps:
            raise Refusal("there is no surgery to take back")
        step = _steps.pop()
    return step, step.take_back()
