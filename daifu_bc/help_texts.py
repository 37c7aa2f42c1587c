"""What the commands' help texts say, taken apart: completion and the manual page are made from these and nothing else."""

from __future__ import annotations

import itertools
import re
from typing import Final, NamedTuple

_FLAG: Final = re.compile(r"^  (?:-\w, )?(--[a-z][a-z-]*)(?: ([^\s]+))?(?:  +(\S.*))?$")
#: How lines begin that go on with what an option does.
_BELOW: Final = " " * 12
_IN_USAGE: Final = re.compile(r"\[(--[a-z][a-z-]*)\]")


class Flag(NamedTuple):
    """An option of a command.

    Attributes:
        name: with its dashes.
        value: what its value is called; empty if it has none.
        text: what it does, in one line.
    """

    name: str
    value: str
    text: str


class HelpText(NamedTuple):
    """What a command says of itself.

    Attributes:
        command: its name.
        usage: how it is called; one line for each way.
        summary: what it does, in a sentence.
        flags: its options.
        text: all of it.
    """

    command: str
    usage: tuple[str, ...]
    summary: str
    flags: tuple[Flag, ...]
    text: str

    def takes(self, what: str) -> bool:
        """Tell whether an argument of this kind stands in the usage: `PID`, `FILE`.

        Args:
            what: how it is called there.
        """
        return any(re.search(rf"\b{what}\b", line) for line in self.usage)

    @property
    def clause(self) -> str:
        """What it does, in a few words."""
        return first_clause(self.summary)


def read(command: str, text_of_help: str) -> HelpText:
    """Take a help text apart.

    Args:
        command: the command's name.
        text_of_help: what it prints.
    """
    head, _, rest = text_of_help.partition("\n\n")
    usage = tuple(line.removeprefix("usage:").strip() for line in head.split("\n"))
    sentence = " ".join(rest.partition("\n\n")[0].split())
    summary = re.split(r"(?<=[^.])[.:](?:\s|$)", sentence, maxsplit=1)[0]
    flags = {name: Flag(name, "", "") for line in usage for name in _IN_USAGE.findall(line)}
    lines = rest.split("\n")
    for number, line in enumerate(lines):
        match = _FLAG.match(line)
        if match:
            below = itertools.takewhile(lambda one: one.startswith(_BELOW), lines[number + 1 :])
            text = " ".join([match[3] or "", *(one.strip() for one in below)])
            flags[match[1]] = Flag(match[1], match[2] or "", text.strip())
    return HelpText(command, usage, summary, tuple(flags.values()), text_of_help)


def first_clause(text: str) -> str:
    """Return the beginning of a sentence that is enough for a list.

    Args:
        text: the sentence, or several.
    """
    return re.split(r"[,;:(.]\s|\s\(", text, maxsplit=1)[0].rstrip(".:;,")
