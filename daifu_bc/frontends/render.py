"""A hold as plain text: what a person at a terminal, a log and a playbook's transcript get to read."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Sequence

from daifu_bc.frontends.values import describe, printable
from daifu_bc.frontends.width import fits, padded, terminal_width, width
from daifu_bc.integrations import collectives
from daifu_bc.recovery import cells
from daifu_bc.recovery.attributes import cause_of, context_of, members_of, suppresses_context, traceback_of
from daifu_bc.recovery.interface import FrameLike, HoldLike

#: Lines of source shown before and after the present one.
AROUND = 5
#: Lines of a disassembly shown before and after the present instruction.
AROUND_INSTRUCTION = 12
#: Links of an exception's chain, and members of a group, that are shown.
LINKS = 8
RULE = 78
#: Frames that a report shows; `where` shows all.
MOST_FRAMES = 24
#: The parts of a report that are empty lines.
BLANK_PARTS = (2, 6)


def report(hold: HoldLike) -> str:
    """Return everything that a person needs at the beginning of a hold.

    A part that cannot be made is left out with a word why; the person is to be asked all the same.
    """
    first = hold.selected
    title = f"-- daifu: hold {hold.number}, thread {printable(hold.thread_name)} "
    parts = [
        padded(title, min(RULE, terminal_width() or RULE), "-"),
        error(hold.exception),
        "",
        _guarded(lambda: surroundings(first)),
        _guarded(lambda: "\n".join(section("Values", values_in_line(first)))),
        _guarded(lambda: "\n".join(section("Frames", frames(hold, most=MOST_FRAMES)))),
        "",
        _guarded(lambda: again(hold)),
        f"Held: {_guarded(lambda: verdict(hold))}",
        f"Next: {_guarded(hold.where_next)}",
        *(f"Ranks: {text}" for text in [_guarded(collectives.remark)] if text),
    ]
    return "\n".join(part for number, part in enumerate(parts) if part or number in BLANK_PARTS)


def again(hold: HoldLike) -> str:
    """Return a line on retries that have changed nothing; nothing if there are none."""
    sentence = hold.repetition.sentence
    return f"Again: {sentence}" if sentence else ""


def _guarded(make: Callable[[], str]) -> str:
    try:
        return make()
    except Exception as problem:  # noqa: BLE001 - the user's objects take part in all of it
        return f"(not available: {type(problem).__name__})"


def section(title: str, lines: Iterable[str]) -> list[str]:
    """Return a titled block of lines, or nothing if there are none."""
    body = list(lines)
    return ["", f"{title}:", *body] if body else []


def place(frame: FrameLike) -> str:
    """Return where a frame is: file, line, function. A file under the working directory is named from there."""
    return f"{short_path(frame.filename)}, line {frame.line}, in {frame.name}"


def short_path(filename: str) -> str:
    """Return a file's name from the working directory if it lies under it; of a notebook's cell what that is called."""
    label = cells.label(filename)
    if label:
        return printable(label)
    try:
        base = os.getcwd()
    except OSError:  # the directory may have been deleted
        return printable(filename)
    inside = filename.startswith(base + os.sep)
    return printable(filename[len(base) + 1 :] if inside else filename)


# ------------------------------------------------------------------ the error


def error(exception: BaseException, known: BaseException | None = None) -> str:
    """Return an exception with its notes, the members of a group, and what it came from, but for what is known."""
    lines: list[str] = []
    seen: set[int] = set()
    link: BaseException | None = exception
    label = ""
    while link is not None and link is not known and id(link) not in seen:
        if len(seen) == LINKS:
            lines.append("  ... and more before that")
            break
        seen.add(id(link))
        lines += _one_error(link, label)
        cause = cause_of(link)
        if cause is not None:
            label, link = "  because of ", cause
        elif suppresses_context(link):
            break
        else:
            label, link = "  while handling ", context_of(link)
    return "\n".join(lines)


def _one_error(exception: BaseException, label: str) -> list[str]:
    try:
        text = "".join(traceback.format_exception_only(exception)).rstrip("\n")
    except Exception as problem:  # noqa: BLE001 - the user's class may do anything when it is written out
        text = f"{type(exception).__name__}: {_message(exception, problem)}"
    first, *rest = printable(text).splitlines() or [type(exception).__name__]
    indent = " " * (len(label) - len(label.lstrip()) + 2 if label else 2)
    lines = [label + first, *(indent + line for line in rest)]
    origin = _raised_at(exception) if label else ""
    if origin:
        lines[0] += f"   ({origin})"
    if issubclass(type(exception), BaseExceptionGroup):
        members = members_of(exception)
        for member in members[:LINKS]:
            lines += [f"{indent}{line}" for line in _one_error(member, "+ ")]
        if len(members) > LINKS:
            lines.append(f"{indent}+ {len(members) - LINKS} more")
    return lines


def _message(exception: BaseException, problem: Exception) -> str:
    """Return an exception's text where another attribute of it has raised."""
    try:
        return str(exception)
    except Exception:  # noqa: BLE001 - the same again
        return f"<its message raised {type(problem).__name__}>"


def _raised_at(exception: BaseException) -> str:
    """Return the innermost place of an exception's traceback."""
    step = traceback_of(exception)
    if step is None:
        return ""
    while step.tb_next is not None:
        step = step.tb_next
    code = step.tb_frame.f_code
    return f"{short_path(code.co_filename)}, line {step.tb_lineno}, in {code.co_qualname}"


# ------------------------------------------------------------ frames and code


def frames(hold: HoldLike, most: int | None = None) -> list[str]:
    """Return the user's frames, outermost first, the selected one marked; of very many the innermost."""
    shown = list(enumerate(hold.frames))
    left = 0 if most is None else max(len(shown) - most, 0)
    rows = [
        (str(number), frame.name, f"{short_path(frame.filename)}:{frame.line}{_notes(frame)}", frame)
        for number, frame in shown[left:]
    ]
    most_digits = max((len(row[0]) for row in rows), default=0)
    most_columns = max((width(row[1]) for row in rows), default=0)
    heads = [
        f"{'>' if frame is hold.selected else ' '} {number:>{most_digits}}  {padded(name, most_columns)}"
        for number, name, _, frame in rows
    ]
    places = [row[2] for row in rows]
    lines = [f"{head}  {where}" for head, where in zip(heads, places, strict=True)]
    before, indent = most_digits + most_columns + 6, " " * (most_digits + 4)
    if not fits(before, max(map(width, places), default=0), terminal_width()):
        lines = [f"{head.rstrip()}\n{indent}{where}" for head, where in zip(heads, places, strict=True)]
    return [f"  ... {left} more further out, `where` shows them", *lines] if left else lines


def _notes(frame: FrameLike) -> str:
    if frame.held:
        return "   <- held"
    return "" if frame.vaccinated else "   (not vaccinated)"


def surroundings(frame: FrameLike, first: int | None = None, last: int | None = None) -> str:
    """Return a frame's place and the code around it, or the lines `first` to `last`.

    Without source it is the disassembly around the present instruction.
    """
    heading = place(frame)
    if not frame.source:
        return "\n".join([f"{heading} (no source at hand)", *instructions(frame.disassembly())])
    low = frame.line - AROUND if first is None else first
    high = frame.line + AROUND if last is None else last
    return "\n".join([heading, *_numbered(frame.source, low, high, frame.line)])


def whole(frame: FrameLike) -> str:
    """Return a frame's function from its first line to its last."""
    if not frame.source:
        return "\n".join(
            [f"{place(frame)} (no source at hand)", *printable(frame.disassembly()).splitlines()]
        )
    return "\n".join([place(frame), *_numbered(frame.source, 0, frame.source[-1][0], frame.line)])


def _numbered(source: Sequence[tuple[int, str]], low: int, high: int, present: int) -> list[str]:
    shown = [(number, text) for number, text in source if low <= number <= high]
    # A file that ends with a newline has no line behind it.
    while shown and not shown[-1][1].strip() and shown[-1][0] == source[-1][0] != present:
        shown.pop()
    width = len(str(shown[-1][0])) if shown else 0
    return [
        f"{'>' if number == present else ' '} {number:>{width}}  {printable(text.rstrip())}".rstrip()
        for number, text in shown
    ]


def contents(frame: FrameLike) -> list[str]:
    """Return the names and constants of a frame's code, which stand beside its disassembly; nothing if it has source."""
    return [] if frame.source else printable(frame.disassembly().partition("\n\n")[2]).splitlines()


def instructions(disassembly: str) -> list[str]:
    """Return the part of a disassembly around the line that is marked by `>` at its beginning."""
    lines = printable(disassembly.partition("\n\n")[0]).splitlines()
    present = next((number for number, line in enumerate(lines) if line.startswith(">")), 0)
    low = max(present - AROUND_INSTRUCTION, 0)
    high = present + AROUND_INSTRUCTION + 1
    before = ["  ..."] if low else []
    after = ["  ..."] if high < len(lines) else []
    return [*before, *lines[low:high], *after]


# --------------------------------------------------------------------- values


def values_in_line(frame: FrameLike) -> list[str]:
    """Return the values of the names that a frame's present line reads."""
    local = frame.locals()
    scopes = (local, frame.frame.f_globals)
    at_module_level = frame.frame.f_code.co_name == "<module>"
    lines = []
    for name in frame.names_in_line():
        # Functions, classes and modules among the globals say nothing about what went wrong.
        for scope in scopes:
            if name in scope:
                if (scope is local and not at_module_level) or not _is_furniture(scope[name]):
                    lines.append(f"    {name} = {describe(scope[name])}")
                break
    return lines


def _is_furniture(value: object) -> bool:
    return isinstance(value, type) or type(value).__name__ in {
        "function",
        "builtin_function_or_method",
        "module",
    }


def local_values(frame: FrameLike) -> list[str]:
    """Return all local names of a frame with their values, dunder names of a module left out."""
    return [
        f"{name} = {describe(value)}"
        for name, value in frame.locals().items()
        if not (name.startswith("__") and name.endswith("__"))
    ]


def verdict(hold: HoldLike) -> str:
    """Return in a sentence why the exception is held."""
    reasons = [printable(reason.strip()) for reason in hold.verdict.reasons if reason.strip()]
    if not reasons:
        return "nobody is going to handle the exception."
    sentence = reasons[-1] if len(reasons) == 1 else f"{reasons[-1].rstrip('.')} (`why` tells all)."
    return sentence if sentence.endswith((".", "!")) else sentence + "."
