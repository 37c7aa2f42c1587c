"""The surgeries of this process as one unified diff against the files on disk, for `git apply`."""

from __future__ import annotations

import difflib
import os
import tokenize
from collections.abc import Iterable, Iterator

from daifu_bc.recovery import cells
from daifu_bc.recovery.history import Step

_NO_END = "\\ No newline at end of file"


def patch(steps: Iterable[Step]) -> str:
    """The diff of all that surgeries have changed and that is not in the files yet.

    What belongs to no file stands before it in lines that begin with `#`, which `git apply` passes over.

    Args:
        steps: the surgeries, the first one first.
    """
    texts: dict[str, str] = {}
    loose: list[str] = []
    for step in steps:
        for change in step.texts:
            name = change.filename
            if name not in texts:
                found = _read(name)
                if found == change.new:  # it was taken from there
                    continue
                if found is None and change.old and cells.is_cell(name):
                    changed = _diff(cells.label(name), change.old, change.new)
                    loose += [f"# {step.title}, in a cell:", *(f"# {line.rstrip()}" for line in changed)]
                    continue
                if found is None or not change.old:
                    loose += [f"# {step.title}, which has no file:"]
                    loose += [f"# {line}" for line in change.new.strip("\n").split("\n")]
                    continue
                texts[name] = found
            texts[name], conflicts = merged(change.old, change.new, texts[name])
            loose += [f"# {name}: {conflict}" for conflict in conflicts]
    parts = [line + "\n" for line in loose]
    for name, text in texts.items():
        before = _read(name)
        if before is not None and before != text:
            parts += _diff(name, before, text)
    return "".join(parts)


def difference(step: Step) -> str:
    """The diff of one surgery, between the texts before and after it."""
    return "".join(line for change in step.texts for line in _diff(change.filename, change.old, change.new))


def merged(old: str, new: str, present: str) -> tuple[str, list[str]]:
    """A text with the changes that lead from one text to another.

    Args:
        old: the text that was edited.
        new: the edited text.
        present: the text that takes the changes; lines may have moved, and some changes may be there already.

    Returns:
        It, and sentences on changes that it could not take because other changes stand in the same place.
    """
    ends = "\r\n" if "\r\n" in present else "\n"
    before, after = old.split("\n"), new.split("\n")
    here = present.replace("\r\n", "\n").split("\n")
    there = _positions(before, here)
    conflicts: list[str] = []
    changes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for kind, first, last, new_first, new_last in reversed(changes):
        if kind == "equal":
            continue
        wanted = after[new_first:new_last]
        # From behind the line before the change to the line behind it, which both are in the present text.
        begin = there.get(first - 1, -2) + 1 if first else 0
        end = there.get(last, -1) if last < len(before) else len(here)
        if begin < 0 or end < begin:
            conflicts.append(f"the change at line {new_first + 1} finds no place in the file")
        elif here[begin:end] == before[first:last]:
            here[begin:end] = wanted
        elif here[begin:end] != wanted:
            conflicts.append(f"line {begin + 1} has been changed in the file in another way")
    return ends.join(here), conflicts[::-1]


def _positions(before: list[str], here: list[str]) -> dict[int, int]:
    """Where lines of one text are in another."""
    matcher = difflib.SequenceMatcher(None, before, here, autojunk=False)
    return {a + k: b + k for a, b, size in matcher.get_matching_blocks() for k in range(size)}


def _read(name: str) -> str | None:
    try:
        with open(name, "rb") as file:
            encoding, _ = tokenize.detect_encoding(file.readline)
        with open(name, encoding=encoding, newline="") as file:
            return file.read()
    except (OSError, ValueError, SyntaxError):
        return None


def _diff(name: str, before: str, after: str) -> Iterator[str]:
    shown = _from_root(os.path.abspath(name))
    for line in difflib.unified_diff(_lines(before), _lines(after), f"a/{shown}", f"b/{shown}"):
        yield line if line.endswith("\n") else f"{line}\n{_NO_END}\n"


def _lines(text: str) -> list[str]:
    """The lines of a text with their ends; only line feeds end one, as for `git`."""
    *whole, rest = text.split("\n")
    return [line + "\n" for line in whole] + [rest] * bool(rest)


def _from_root(path: str) -> str:
    """A path from the root of its repository, or from the working directory if it is in none."""
    folder = os.path.dirname(path)
    while not os.path.exists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return os.path.relpath(path).replace(os.sep, "/")
        folder = above
    return os.path.relpath(path, folder).replace(os.sep, "/")
