"""The names of a frame as a mapping in which code can run: also code that deletes a name."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping


class Namespace(MutableMapping[str, object]):
    """A frame's own names, from which a name can be deleted.

    What writes through to a frame (PEP 667) cannot forget a variable of its function, on 3.13.0 no name at all: `del`
    would fail, and with it the end of each `except .. as name`. A name that is deleted is gone for the code that runs
    here; in the frame it is None afterwards.

    Args:
        names: the frame's `f_locals`.
    """

    __slots__ = ("_gone", "_names")

    def __init__(self, names: MutableMapping[str, object]) -> None:
        self._names = names
        self._gone: set[str] = set()

    def __getitem__(self, name: str) -> object:
        if name in self._gone:
            raise KeyError(name)
        return self._names[name]

    def __setitem__(self, name: str, value: object) -> None:
        self._gone.discard(name)
        self._names[name] = value

    def __delitem__(self, name: str) -> None:
        if name in self._gone or name not in self._names:
            raise KeyError(name)
        self._gone.add(name)
        # What it referred to is let go.
        self._names[name] = None

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._names if name not in self._gone)

    def __len__(self) -> int:
        return sum(1 for _ in self)
