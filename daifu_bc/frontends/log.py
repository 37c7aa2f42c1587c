"""`daifu log`: the journal, to be read by a person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from daifu_bc.errors import UsageError
from daifu_bc.frontends.values import printable

#: What of a damaged line is shown.
DAMAGED = 120
MINUTE = 60


def read(name: str) -> Iterator[str]:
    """Yield the journal's entries, each as a text of one or more lines.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        # A damaged line may hold any bytes.
        with open(name, encoding="utf-8", errors="backslashreplace") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield entry(line, number)
    except FileNotFoundError:
        raise UsageError(
            f"there is no journal {name}: nothing has been held yet, or it is elsewhere"
        ) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the journal {name}: {error}") from None


def entry(line: str, number: int) -> str:
    """Return a line of the journal readably; a damaged one is shown as damaged."""
    try:
        facts = json.loads(line)
        if not isinstance(facts, dict) or not isinstance(facts.get("event"), str):
            raise TypeError
        return _readable(facts)
    except (ValueError, TypeError, RecursionError):
        text = printable(line.strip())
        return f"(line {number} is damaged: {text[:DAMAGED]}{'...' if len(text) > DAMAGED else ''})"


def _readable(facts: dict[str, Any]) -> str:
    event = facts.pop("event")
    head = [_time(facts.pop("time", None)), f"[{facts.pop('pid', '?')}]"]
    if "hold" in facts:
        head.append(f"hold {facts.pop('hold')}")
    head.append(event)
    what, code, values = (facts.pop(name, None) for name in ("what", "code", "values"))
    if event == "held" and what:
        head.append(str(what))
    head += _place(facts)
    if event == "running again" and {"seconds", "held"} <= facts.keys():
        since, held = facts.pop("seconds"), facts.pop("held")
        head.append(f"{duration(since)} after the word, held for {duration(held)}")
    if "seconds" in facts:
        head.append(f"after {duration(facts.pop('seconds'))}" if event != "action" else _took(facts))
    outcome = facts.pop("outcome", None)
    if outcome and outcome != "done":
        head.append(f"- {outcome}")
    head += [f"{name}={value}" for name, value in facts.items()]
    lines = [printable(" ".join(head))]
    for text in (code, values):
        lines += [f"      | {printable(part)}" for part in str(text or "").splitlines()]
    return "\n".join(lines)


def _took(facts: dict[str, Any]) -> str:
    return f"in {duration(facts.pop('seconds'))}"


def _place(facts: dict[str, Any]) -> list[str]:
    file, line = facts.pop("file", None), facts.pop("line", None)
    function, thread = facts.pop("function", None), facts.pop("thread", None)
    parts = [f"at {file}:{line}"] if file else []
    if function:
        parts.append(f"in {function}")
    if thread and thread != "MainThread":
        parts.append(f"(thread {thread})")
    return parts


def _time(text: object) -> str:
    """Return a time as the reader's clock showed it."""
    try:
        return datetime.fromisoformat(str(text)).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "(no time)"


def duration(seconds: object) -> str:
    """Return a time span as one says it."""
    if not isinstance(seconds, (int, float)):
        return str(seconds)
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), MINUTE)
    hours, minutes = divmod(minutes, MINUTE)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"
