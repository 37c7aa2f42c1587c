"""Results as a table in Markdown, and as a file of JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.crash_cases.case import RECOVERED
from benchmarks.crash_cases.result import Lost, Result

HEAD = (
    "case",
    "category",
    "exception, held at",
    "recovery",
    "words",
    "recovered?",
    "equal to fixed?",
    "running again, ms",
    "whole repair, ms",
    "restart from scratch loses",
    "from the last checkpoint",
)

#: What a stop is counted as: the first of these whose words are all among its own.
KINDS = {
    "action and surgery": {"action", "surgery"},
    "surgery": {"surgery"},
    "action": {"action"},
    "pass alone": {"pass"},
    "another word alone": set[str](),
}
BEGIN, END = "<!-- crash cases: begin -->", "<!-- crash cases: end -->"


def markdown(results: Iterable[Result]) -> str:
    """The table."""
    return "\n".join(rows(results)) + "\n"


def rows(results: Iterable[Result]) -> Iterator[str]:
    """The lines of the table."""
    yield f"| {' | '.join(HEAD)} |"
    yield f"| {' | '.join('---' for _ in HEAD)} |"
    for result in results:
        cells = (
            result.case,
            result.category,
            "<br>".join(stop.replace("<", "&lt;") for stop in result.stops),
            result.recovery,
            "<br>".join(result.words),
            "yes" if result.outcome == RECOVERED else result.outcome,
            _compared(result),
            " + ".join(f"{value:.1f}" for value in result.running_again),
            " + ".join(f"{value:.0f}" for value in result.repair),
            _lost(result.restart),
            _lost(result.checkpoint),
        )
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def first_of_each(results: Iterable[Result]) -> list[Result]:
    """For each case the first recovery that ended with the fixed program's output."""
    firsts: dict[str, Result] = {}
    for result in results:
        if result.equal and result.category != "control":
            firsts.setdefault(result.case, result)
    return list(firsts.values())


def kinds_of_stops(results: Iterable[Result]) -> Counter[str]:
    """How many stops were answered by which words."""
    counted: Counter[str] = Counter()
    for result in results:
        for words in result.words:
            used = set(words.split(", "))
            counted[next(name for name, needed in KINDS.items() if needed <= used)] += 1
    return counted


def document(page: str, results: list[Result]) -> str:
    """A page of the documentation with these results between its two marks."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{summary(results)}\n\n{markdown(first_of_each(results))}{END}{after}"


def summary(results: list[Result]) -> str:
    """How many cases are recovered, in a line."""
    cases = list(dict.fromkeys(result.case for result in results if result.category != "control"))
    stops = kinds_of_stops(first_of_each(results))
    told = ", ".join(f"{stops[name]} by {name}" for name in KINDS if stops[name])
    good = len(first_of_each(results))
    return f"{good} of {len(cases)} cases are recovered, with the fixed program's output; {stops.total()} stops: {told}."


def _compared(result: Result) -> str:
    if result.equal:
        return "yes"
    if result.outcome != RECOVERED:
        return "it ends"
    return f"no: {result.reason or 'it should be'}"


def _lost(lost: Lost | None) -> str:
    return (
        "no checkpoint"
        if lost is None
        else f"{lost.seconds:.1f} s, {lost.steps} step{'s' * (lost.steps != 1)}"
    )


def save(folder: Path, machine: dict[str, Any], results: list[Result]) -> None:
    """Write both files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(result.as_json(), ensure_ascii=False) for result in results]
    head, body = json.dumps(machine, ensure_ascii=False), ",\n".join(lines)
    text = f'{{"machine": {head},\n"results": [\n{body}\n]}}\n'
    (folder / "crash_cases.json").write_text(text, encoding="utf-8")
    parts = [f"- {name}: {value}" for name, value in machine.items() if value not in ("", None)]
    page = "\n".join(["# The crash cases", "", *parts, "", summary(results), "", markdown(results)])
    (folder / "crash_cases.md").write_text(page, encoding="utf-8")


def load(folder: Path) -> list[Result]:
    """The results that were written into a folder; none if there are none."""
    path = folder / "crash_cases.json"
    if not path.exists():
        return []
    content = json.loads(path.read_text(encoding="utf-8"))
    return [Result.from_json(entry) for entry in content["results"]]
