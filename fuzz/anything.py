"""An object that stands for every name of a program that means nothing, so that more of the program runs.

What is done to it is an event; what it answers depends on nothing but how often it was asked.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator, Iterator
from typing import Any, Self

_OPERATORS = [
    "add",
    "sub",
    "mul",
    "matmul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "lshift",
    "rshift",
    "and",
    "or",
    "xor",
    "neg",
    "pos",
    "invert",
    "radd",
    "rsub",
    "rmul",
    "rmatmul",
    "rtruediv",
    "rfloordiv",
    "rmod",
    "rpow",
    "rlshift",
    "rrshift",
    "rand",
    "ror",
    "rxor",
]
_COMPARISONS = ["lt", "le", "gt", "ge", "contains"]
_SAY: list[Callable[..., Any]] = []


def start(say: Callable[..., Any]) -> None:
    """Let events be written by this from now on."""
    _SAY[:] = [say]


def _event(*values: object) -> None:
    if _SAY:
        _SAY[0](*values)


class Anything:
    """Allows all that can be done to an object."""

    def __init__(self, *_: object, **__: object) -> None:
        self.__dict__["asked"] = 0

    def __repr__(self) -> str:
        return "Anything"

    def _next(self) -> int:
        self.__dict__["asked"] += 1
        return int(self.__dict__["asked"])

    def __bool__(self) -> bool:
        _event("bool")
        return self._next() % 2 == 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        _event("attribute", name)
        return Anything()

    def __setattr__(self, name: str, value: object) -> None:
        _event("set", name)

    def __delattr__(self, name: str) -> None:
        _event("del", name)

    def __call__(self, *arguments: object, **named: object) -> Any:
        _event("call", len(arguments), *sorted(named))
        return Anything()

    def __getitem__(self, key: object) -> Any:
        if type(key) is int and key > 1:
            raise IndexError(key)
        return Anything()

    def __setitem__(self, key: object, value: object) -> None:
        _event("set item")

    def __delitem__(self, key: object) -> None:
        _event("del item")

    def __iter__(self) -> Iterator[Any]:
        _event("iter")
        yield Anything()
        yield Anything()

    def keys(self) -> list[str]:
        """For two stars."""
        return ["a", "b"]

    def __len__(self) -> int:
        return 2

    def __index__(self) -> int:
        return 1

    def __enter__(self) -> Self:
        _event("enter")
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        _event("exit", type(error).__name__)

    async def __aenter__(self) -> Self:
        await self
        return self.__enter__()

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        await self
        self.__exit__(kind, error, traceback)

    def __await__(self) -> Generator[Any, Any, Any]:
        _event("await")
        yield
        return Anything()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        await self
        if self._next() % 3 == 0:
            raise StopAsyncIteration
        return Anything()


def _operator(name: str) -> Callable[..., Any]:
    def operate(self: Anything, *_: object) -> Any:
        _event(name)
        return Anything()

    return operate


def _comparison(name: str) -> Callable[..., bool]:
    def compare(self: Anything, *_: object) -> bool:
        _event(name)
        return self._next() % 2 == 1

    return compare


for _name in _OPERATORS:
    setattr(Anything, f"__{_name}__", _operator(_name))
for _name in _COMPARISONS:
    setattr(Anything, f"__{_name}__", _comparison(_name))


def exercise(namespace: dict[str, Any]) -> None:
    """Call the functions of a program, and run what they give."""
    for name, value in sorted(namespace.items()):
        if not isinstance(value, types.FunctionType) or name == "main" or name.startswith("_"):
            continue
        if value.__module__ != namespace["__name__"]:
            continue
        for count in (value.__code__.co_argcount, 0):
            _event("function", name, count)
            try:
                _run(value(*[Anything() for _ in range(count)]))
            except Exception as error:
                _event("raised", type(error).__name__, str(error))


def _run(value: object, most: int = 20) -> None:
    if isinstance(value, types.GeneratorType):
        for _ in zip(range(most), value, strict=False):
            _event("item")
        value.close()
    elif isinstance(value, types.CoroutineType):
        _drive(value)
    elif isinstance(value, types.AsyncGeneratorType):

        async def consume() -> None:
            turns = 0
            async for _ in value:
                _event("item")
                turns += 1
                if turns > most:
                    break
            await value.aclose()

        _drive(consume())


def _drive(coroutine: Coroutine[Any, Any, Any]) -> None:
    while True:
        try:
            coroutine.send(None)
        except StopIteration:
            return
