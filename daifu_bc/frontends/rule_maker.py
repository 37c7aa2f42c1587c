"""Rules that a program makes: `daifu_bc.on`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

from daifu_bc.frontends.rule_file import rule
from daifu_bc.recovery import policy, rules

_Function = TypeVar("_Function", bound=Callable[..., Any])


@overload
def on(
    *raises: type[BaseException] | str,
    where: str | Iterable[str] | None = None,
    message: str | None = None,
    times: int | None = None,
    total: int | None = None,
    wait: float | None = None,
    factor: float | None = None,
    longest: float | None = None,
    limit: float | None = None,
) -> Callable[[_Function], _Function]: ...


@overload
def on(
    *raises: type[BaseException] | str,
    where: str | Iterable[str] | None = None,
    message: str | None = None,
    do: str,
    times: int | None = None,
    total: int | None = None,
    wait: float | None = None,
    factor: float | None = None,
    longest: float | None = None,
    limit: float | None = None,
) -> None: ...


def on(
    *raises: type[BaseException] | str,
    where: str | Iterable[str] | None = None,
    do: str | None = None,
    **keys: Any,
) -> Callable[[_Function], _Function] | None:
    """Make a rule: what is to be done about holds of some kind, before anybody is asked.

    Without `do` it decorates a function, which is called with the hold. It looks around, and decides by `hold.do("...")`
    or one of the hold's verbs, or returns words; if it does neither, the next rule is asked.

    Args:
        raises: classes of exceptions, or their names; `Exception` if there are none.
        where: names of functions, as for `configure`; what is done is done in the innermost one of them.
        do: words as at the prompt, in lines; `hold` leaves the hold to people.
        keys: `message` is looked for in what the exception says; `times` is how often in a row about the same statement,
            `total` how often in all; `wait` is for how many seconds it waits before, `factor` how many times longer each
            time, up to `longest`; `limit` is for how long people are waited for.

    Raises:
        PolicyError: it has mistakes; all of them are told.
    """
    table: dict[str, Any] = {key: value for key, value in keys.items() if value is not None}
    if raises:
        table["raises"] = list(raises)
    if where is not None:
        table["where"] = where if isinstance(where, str) else list(where)
    if do is not None:
        caller = sys._getframe(1)
        _add(f"{os.path.basename(caller.f_code.co_filename)}:{caller.f_lineno}", table, do)
        return None

    def decorate(function: _Function) -> _Function:
        _add(f"{function.__module__}.{function.__qualname__}", table, function)
        return function

    return decorate


def _add(name: str, table: dict[str, Any], do: object) -> None:
    rules.add(rule(name, {**table, "do": do}))
    policy.ask_anew()
