"""From text to words: lines, comments, here-documents. Shared by the prompt, playbooks and `hold.do`."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from daifu_bc.errors import UsageError

#: `action <<END` and `surgery NAME <<END`. A shift in an expression is not taken for one: it stands behind other words.
HERE_DOCUMENT = re.compile(
    r"^\s*(?P<head>action|surgery(?:\s+\S+)*)\s*(?<=\s)<<\s*(?P<quote>['\"]?)(?P<end>[A-Za-z_]\w*)(?P=quote)\s*$"
)
SEPARATOR = re.compile(r"^---+\s*$")


@dataclass(frozen=True, slots=True)
class Command:
    """One word with what belongs to it.

    Attributes:
        line: the number of its first line in the text it came from, from 1.
        text: the line itself, without the here-document.
        body: the here-document's lines, common indentation removed; None if there is none.
    """

    line: int
    text: str
    body: str | None = None

    def __str__(self) -> str:
        """Return the command as it could have been typed."""
        if self.body is None:
            return self.text
        return f"{self.text}\n{self.body}{here_document_end(self.text)}"


class ScriptError(UsageError):
    """Text that is no sequence of words. Mend the text at the line that is named."""

    slug = "script"

    def __init__(self, what: str, line: int) -> None:
        self.line = line
        super().__init__(what)


def here_document_end(line: str) -> str | None:
    """Return the line that ends the here-document that `line` opens; None if it opens none."""
    match = HERE_DOCUMENT.match(line)
    return match["end"] if match else None


def without_here_document(line: str) -> str:
    """Return a command's line without the mark that opens its here-document."""
    match = HERE_DOCUMENT.match(line)
    return match["head"] if match else line


def parse_blocks(text: str) -> list[list[Command]]:
    """Return the commands of each block of a text; blocks are separated by a line `---`.

    Raises:
        ScriptError: a here-document has no end.
    """
    blocks: list[list[Command]] = [[]]
    # Not splitlines(): a form feed or a line separator may stand in the code of a here-document.
    lines = text.replace("\r\n", "\n").split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if SEPARATOR.match(line):
            blocks.append([])
            continue
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        end = here_document_end(line)
        if end is None:
            blocks[-1].append(Command(number, stripped))
            continue
        start = number
        while number < len(lines) and lines[number].strip() != end:
            number += 1
        if number == len(lines):
            raise ScriptError(f"the here-document has no closing line {end}", start)
        body = textwrap.dedent("".join(f"{part}\n" for part in lines[start:number]))
        blocks[-1].append(Command(start, stripped, body))
        number += 1
    return blocks


def parse(text: str) -> list[Command]:
    """Return the commands of a text that is one block.

    Raises:
        ScriptError: a here-document has no end, or there is a line `---`.
    """
    blocks = parse_blocks(text)
    if len(blocks) > 1:
        raise ScriptError("a line --- separates the blocks of a playbook; here is only one hold", 1)
    return blocks[0]
