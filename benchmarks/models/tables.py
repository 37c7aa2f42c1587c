"""The figures of the models as Markdown tables."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from benchmarks.figures import Figure
from benchmarks.models import arithmetic
from benchmarks.models.catalogue import KINDS
from benchmarks.report import number, spread

Figures = dict[str, Figure]
WAYS = ("`torch.save`, every 1", "`torch.save`, every 10", "`async_save`, every 1", "`async_save`, every 10")
IN_PLACE = ("`pass`", "action, `pass`", "`surgery`, `pass`")
BEGIN, END = "<!-- models: begin -->", "<!-- models: end -->"
#: The paper's speed-up.
PAPER = 1372


def spoken(way: str) -> str:
    """A way of checkpointing as a reader is told of it."""
    return way.replace(", every 10", " at each tenth step").replace(", every 1", " at each step")


def grouped(figures: list[Figure]) -> dict[str, Figures]:
    """The figures by group and name."""
    found: dict[str, Figures] = {}
    for figure in figures:
        found.setdefault(figure.group, {})[figure.name] = figure
    return found


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _head(*cells: str) -> list[str]:
    return [_row(*cells), _row(*("---" for _ in cells))]


def _titles(figures: Figures) -> list[str]:
    names = {name.partition(",")[0] for name in figures}
    return [kind.title for kind in KINDS.values() if kind.title in names]


def _ratio(figure: Figure) -> str:
    return number(figure.median, "ratio") + spread(figure.values, "ratio")


def _control(figure: Figure) -> str:
    return number(statistics.median(figure.control), "ratio") + spread(figure.control, "ratio")


def overhead(figures: Figures) -> Iterator[str]:
    """Vaccinated against plain, in CPU time."""
    yield from _head(
        "model", "a step, plain", "scope `project`", "scope `all`", "plain against plain", "rounds"
    )
    for title in _titles(figures):
        project, everything = (figures[f"{title}, scope `{scope}`"] for scope in ("project", "all"))
        step = f"{number(statistics.median(project.plain), 'ms')} ms"
        yield _row(
            title, step, _ratio(project), _ratio(everything), _control(project), str(len(project.values))
        )


def instructions(figures: Figures, overheads: Figures) -> Iterator[str]:
    """Counted instructions."""
    yield from _head(
        "model", "a step, plain", "scope `project`", "scope `all`", "functions vaccinated in each"
    )
    for title in _titles(figures):
        project, everything = (figures[f"{title}, scope `{scope}`"] for scope in ("project", "all"))
        notes = [overheads[figure.name].note.partition(" ")[0] for figure in (project, everything)]
        yield _row(
            title,
            number(project.plain[0], "instructions"),
            f"+{number(project.median, 'instructions')}",
            f"+{number(everything.median, 'instructions')}",
            " and ".join(notes),
        )


def checkpoints(figures: Figures) -> Iterator[str]:
    """Checkpoints against none."""
    yield from _head("model", *(spoken(way) for way in WAYS), "plain against plain")
    for title in _titles(figures):
        found = [figures[f"{title}, {way}"] for way in WAYS]
        yield _row(title, *(_ratio(figure) for figure in found), _control(found[0]))


def expected(groups: dict[str, Figures]) -> Iterator[str]:
    """The arithmetic."""
    yield from _head(
        "model",
        "a step",
        "a checkpoint",
        "starting again",
        "best every",
        "share lost then",
        "a crash in place",
        "share lost in place",
        "as little work is lost with one every",
        "which makes a step longer by",
    )
    for title in _titles(groups["restoring"]):
        ratio, cost = (groups[name][f"{title}, {WAYS[0]}"] for name in ("checkpoints", "cost"))
        restoring = groups["restoring"]
        step = statistics.median(ratio.plain) / 1e3
        saving = max(cost.median, 0.0) / 1e3
        restart = restoring[f"{title}, from a checkpoint, to the first step"].median / 1e3
        recovery = restoring[f"{title}, {IN_PLACE[0]}"].median / 1e3
        interval = arithmetic.best_interval(saving)
        same = arithmetic.same_loss(recovery, step)
        yield _row(
            title,
            f"{number(step * 1e3, 'ms')} ms",
            f"{number(saving * 1e3, 'ms')} ms",
            f"{number(restart, 's')} s",
            f"{interval / step:,.0f} steps",
            f"{arithmetic.share_lost(interval, saving, restart):.3%}",
            f"{number(recovery * 1e3, 'ms')} ms",
            f"{recovery / arithmetic.BETWEEN_FAILURES:.5%}",
            f"{same:.1f} steps",
            f"{saving / (max(1.0, same) * step):.0%}",
        )


def restoring(figures: Figures) -> Iterator[str]:
    """From the decision, or the start of Python, to the crashed statement's running again."""
    yield from _head("model", *IN_PLACE, "from scratch", "of this, to the first step", "from a checkpoint")
    for title in _titles(figures):
        place = [figures[f"{title}, {way}"] for way in IN_PLACE]
        anew = [
            figures[f"{title}, {way}"]
            for way in ("from scratch", "from scratch, to the first step", "from a checkpoint")
        ]
        yield _row(
            title,
            *(f"{number(figure.median, 'ms')} ms{spread(figure.values, 'ms')}" for figure in place),
            *(
                f"{number(figure.median / 1e3, 's')} s{spread([v / 1e3 for v in figure.values], 's')}"
                for figure in anew
            ),
        )


def speed_up(figures: Figures) -> Iterator[str]:
    """How many times as long a restart takes."""
    yield from _head(
        "model",
        *(f"{way}: from scratch / from a checkpoint" for way in IN_PLACE),
        f"{PAPER:,} times (`pass`), if lost",
        "an hour lost (`pass`)",
    )
    for title in _titles(figures):
        scratch, saved, start = (
            figures[f"{title}, {way}"].median
            for way in ("from scratch", "from a checkpoint", "from a checkpoint, to the first step")
        )
        place = [figures[f"{title}, {way}"].median for way in IN_PLACE]
        yield _row(
            title,
            *(f"{scratch / recovery:,.0f} / {saved / recovery:,.0f}" for recovery in place),
            f"{max(0.0, PAPER * place[0] - start) / 1e3:,.1f} s",
            f"{(start + 3.6e6) / place[0]:,.0f}",
        )


def body(figures: list[Figure], heading: str = "##") -> list[str]:
    """All tables, each under a heading."""
    groups = grouped(figures)
    parts: list[tuple[str, Iterator[str]]] = []
    if "overhead" in groups:
        parts += [
            ("A training step: vaccinated / plain, CPU time", overhead(groups["overhead"])),
            (
                "Bytecode instructions in a step, those of PyTorch included",
                instructions(groups["instructions"], groups["overhead"]),
            ),
            ("A training step with checkpoints / without, on the wall", checkpoints(groups["checkpoints"])),
            ("The same in CPU time", checkpoints(groups["checkpoints CPU"])),
        ]
    if "restoring" in groups:
        parts += [
            ("From a crash to the same statement's running again", restoring(groups["restoring"])),
            ("How many times as long a restart takes", speed_up(groups["restoring"])),
        ]
    if {"overhead", "restoring"} <= set(groups):
        hours = arithmetic.BETWEEN_FAILURES / 3600
        parts.append(
            (f"What is lost on the average, with a failure every {hours:.1f} hours", expected(groups))
        )
    lines: list[str] = []
    for title, rows in parts:
        lines += ["", f"{heading} {title}", "", *rows]
    return lines


def markdown(machine: dict[str, Any], figures: list[Figure]) -> str:
    """All tables, and the machine."""
    head = [f"- {name}: {value}" for name, value in machine.items() if value not in ("", None)]
    return "\n".join(["# The models", "", *head, *body(figures)]) + "\n"


def document(text: str, machine: dict[str, Any], figures: list[Figure]) -> str:
    """The documentation's page with the tables that it shows made anew."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the page has no {BEGIN} with an {END}")
    head = (
        f"CPython {machine['python'].split()[0]}, PyTorch {machine['torch']}, {machine['cpu_count']} virtual cores"
        f" that had other work to do: load average {machine['load_average_while_measuring']}."
    )
    return "\n".join([before + BEGIN, head, *body(figures, "###"), END]) + after
