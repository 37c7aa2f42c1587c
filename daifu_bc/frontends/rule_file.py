"""Rules from a file: tables `[[on]]`, or `[[tool.daifu.on]]` in a project's pyproject.toml; and those that a program makes.

What is to be done is words as at the prompt; the other keys say about what, how often, and after which wait.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from daifu_bc.analysis import filters
from daifu_bc.errors import UsageError
from daifu_bc.frontends.commands import check
from daifu_bc.frontends.script import ScriptError, parse
from daifu_bc.recovery import journal
from daifu_bc.recovery.rules import Rule

#: The line that leaves a hold to people.
HOLD: Final = "hold"
#: The line that has the last will done, and then lets the exception go on.
LAST_WILL: Final = "last-will"
#: Words that repeat what has been done: how often in a row is counted of them.
_REPEATING: Final = frozenset({"pass", "restart", "goto"})
_CLASS: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")


class PolicyError(UsageError):
    """A rule cannot be what it says. Mend what is named: the file, the rule, the key."""

    slug = "policy"


def load(name: str) -> list[Rule]:
    """Read rules from a file and check all of them.

    Raises:
        PolicyError: it cannot be read, or it has mistakes; all of them are told, each with its rule and key.
    """
    import tomllib  # without a file it is not needed

    try:
        # The program may have changed its directory.
        with open(os.path.join(journal.started_in(), os.path.expanduser(name)), "rb") as file:
            content = tomllib.load(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise PolicyError(f"cannot read the rules in {name}: {reason}") from None
    project = content.get("tool", {})
    in_project = isinstance(project, dict) and isinstance(project.get("daifu"), dict)
    table = project["daifu"] if in_project else content
    others = [] if in_project else [key for key in table if key != "on"]
    if others:
        raise PolicyError(
            f"{name}: {', '.join(others)}: there is nothing but rules in such a file",
            remedy="Write [[on]] above each rule.",
        )
    tables = table.get("on", [])
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        head = "[[tool.daifu.on]]" if in_project else "[[on]]"
        raise PolicyError(f"{name}: on: rules are tables of a list", remedy=f"Write {head} above each rule.")
    rules, mistakes = [], []
    for number, one in enumerate(tables, start=1):
        found, wrong = _rule(f"{os.path.basename(name)}#{number}", one)
        rules.append(found)
        mistakes += [f"{name}: rule {number}: {text}" for text in wrong]
    if mistakes:
        raise PolicyError("\n".join(mistakes))
    return rules


def rule(name: str, table: Mapping[str, Any]) -> Rule:
    """Return the rule that a table is.

    Args:
        name: how it is called.
        table: what it says; `do` may also be a function.

    Raises:
        PolicyError: it has mistakes; all of them are told, each with its key.
    """
    found, mistakes = _rule(name, table)
    if mistakes:
        raise PolicyError("\n".join(f"{name}: {text}" for text in mistakes))
    return found


def _rule(name: str, table: Mapping[str, Any]) -> tuple[Rule, list[str]]:
    made = Rule(name, "")
    mistakes = []
    for key, value in table.items():
        setter = _KEYS.get(key)
        if setter is None:
            mistakes.append(f"{key}: there is no such key. Known are {', '.join(_KEYS)}.")
            continue
        try:
            setattr(made, key, setter(value))
        except (UsageError, ValueError) as error:
            mistakes.append(f"{key}: {error}")
    if "do" not in table:
        mistakes.append('do: it is missing. Write do = "retry", say.')
    if not mistakes:
        mistakes += _contradictions(made, table)
    return made, mistakes


def _contradictions(made: Rule, table: Mapping[str, Any]) -> list[str]:
    """What cannot be said together."""
    found = []
    words = _words(made.do) if isinstance(made.do, str) else None
    if words is not None and made.times is not None and not _REPEATING.intersection(words):
        found.append(
            "times: that is how often in a row the same is tried again, and nothing is. Write total instead."
        )
    if "limit" in table and words is not None and HOLD not in words:
        found.append('limit: that is for how long people are waited for. Write do = "hold" with it.')
    without_wait = [key for key in ("factor", "longest") if key in table and not made.wait]
    return [
        *found,
        *(f"{key}: there is no wait that it could be about. Write wait = 10, say." for key in without_wait),
    ]


def _words(text: str) -> list[str]:
    """The names of the words of a text; `hold` and `last-will` are among them, if they are there."""
    ours = (HOLD, LAST_WILL)
    return [command.text if command.text in ours else check(command).name for command in parse(text)]


# -- what the keys take: each returns the value, or raises UsageError or ValueError -------------------------------------


def _several(value: Any, what: str) -> tuple[Any, ...]:
    found = (value,) if isinstance(value, str | type) else value
    if not isinstance(found, list | tuple) or not found:
        raise ValueError(f"it is {what}, or a list of them.")
    return tuple(found)


def _raises(value: Any) -> Sequence[str | type[BaseException]]:
    found = _several(value, "a name of an exception")
    for one in found:
        is_class = isinstance(one, type) and issubclass(one, BaseException)
        if not is_class and not (isinstance(one, str) and _CLASS.fullmatch(one)):
            raise ValueError(f'{one!r} names no exception. Write "OSError" or "package.module.Error".')
    return found


def _where(value: Any) -> Sequence[str]:
    found = _several(value, "a name of a function")
    if not all(isinstance(one, str) for one in found):
        raise ValueError("it is a name of a function, or a list of them.")
    return filters.names_in(",".join(found))


def _message(value: Any) -> Callable[[str], object]:
    if not isinstance(value, str):
        raise ValueError("it is a text that is looked for in what the exception says.")
    try:
        return re.compile(value).search
    except re.error as error:
        raise ValueError(
            f"{value!r} is no regular expression ({error}). A backslash before a character takes it as it is."
        ) from None


def _do(value: Any) -> Any:
    if callable(value):
        return value
    if not isinstance(value, str):
        raise ValueError('it is words as at the prompt. Write "retry", say.')
    try:
        commands = parse(value)
        if not commands:
            raise ValueError('there is not a word in it. Write "raise" to let the exception go on.')
        decides = ""
        for command in commands:
            if decides:
                raise ValueError(f"line {command.line} is never reached: `{decides}` ends the hold before.")
            if command.text in (HOLD, LAST_WILL) and command.body is None:
                decides = command.text
                continue
            word = check(command)
            if word.name == HOLD:
                raise ValueError(f"`{command.text}` is for a person; `hold` alone leaves the hold to one.")
            decides = word.name if word.decides else ""
        if not decides:
            raise ValueError(
                "it comes to no decision. Write `retry`, `skip`, `raise` or the like at its end."
            )
    except ScriptError as error:
        raise ValueError(f"line {error.line}: {error}.") from None
    return value


def _count(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise ValueError(f"{value!r} is no number of times. Write a whole number from 1.")


def _seconds(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
        return float(value)
    raise ValueError(f"{value!r} is no time. Write a number of seconds.")


def _factor(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value < math.inf:
        return float(value)
    raise ValueError(f"{value!r} is no factor. Write a number from 1.")


_KEYS: Final[dict[str, Callable[[Any], Any]]] = {
    "raises": _raises,
    "where": _where,
    "message": _message,
    "do": _do,
    "times": _count,
    "total": _count,
    "wait": _seconds,
    "factor": _factor,
    "longest": _seconds,
    "limit": _seconds,
}
