"""What runs tell of themselves has the form that is read here: it may come from another version, or from anybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

_Check = Callable[[Any], bool]
#: Later than any moment that is told, and what a date can be made of.
_NEVER: Final = 1e11


def is_run(facts: Any) -> bool:
    """Tell whether something is what the file of a run has.

    Args:
        facts: as it was read.
    """
    return _has(facts, _RUN, ("pid", "state", "command"))


def is_hold(facts: Any) -> bool:
    """Tell whether something is what is told of a hold."""
    return _has(facts, _HOLD, tuple(_HOLD))


def _has(facts: Any, form: Mapping[str, _Check], needed: tuple[str, ...]) -> bool:
    return (
        isinstance(facts, dict)
        and all(name in facts for name in needed)
        and all(check(facts[name]) for name, check in form.items() if name in facts)
    )


def _is_text(found: Any) -> bool:
    return isinstance(found, str)


def _is_number(found: Any) -> bool:
    return isinstance(found, int) and not isinstance(found, bool)


def _is_time(found: Any) -> bool:
    return isinstance(found, int | float) and 0 <= found < _NEVER


def _are_texts(found: Any) -> bool:
    return isinstance(found, list) and all(map(_is_text, found))


def _is_nothing_or(check: _Check) -> _Check:
    return lambda found: found is None or check(found)


def _of(**form: _Check) -> _Check:
    return lambda found: _has(found, form, tuple(form))


_HOLD: Final[dict[str, _Check]] = {
    "number": _is_number,
    "thread": _is_text,
    "file": _is_text,
    "line": _is_number,
    "function": _is_text,
    "error": _of(type=_is_text, text=_is_text),
    "since": _is_time,
}
_RUN: Final[dict[str, _Check]] = {
    "pid": _is_number,
    "state": _is_text,
    "command": _are_texts,
    "folder": _is_text,
    "host": _is_text,
    "namespace": _is_text,
    "identity": _is_text,
    "started": _is_time,
    "pause_signal": _is_nothing_or(_is_text),
    "hold": _is_nothing_or(is_hold),
    "ranks": _is_nothing_or(_of(rank=_is_number, size=_is_number, group=_is_text)),
    "debugger": _is_nothing_or(_of(host=_is_text, port=_is_number)),
}
