"""A program as a tree of statements that keep their identity when the program is edited."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

#: What a statement keeps open while one of its blocks is run.
KEEPERS = {("for", "body"), ("with", "body"), ("try", "handler")}


@dataclass(eq=False)
class Node:
    """A statement.

    Attributes:
        ident: what it is known by, also when it has been changed.
        kind: ``simple``, ``if``, ``while``, ``for``, ``with`` or ``try``.
        text: the statement, or what stands in the header; of a ``try`` the type that its clause takes.
        target: the variable of a ``for``.
        blocks: ``body``, ``orelse``, ``handler`` and ``finalbody``, those that it has.
        version: counts the changes of its text.
    """

    ident: int
    kind: str
    text: str = ""
    target: str = ""
    blocks: dict[str, list[Node]] = field(default_factory=dict)
    version: int = 0

    def keeps(self, block: str) -> bool:
        """Whether there is something to be left when a block is."""
        final = self.kind == "try" and "finalbody" in self.blocks
        return (self.kind, block) in KEEPERS or final

    def said(self) -> object:
        """What it says; equal where the text is equal."""
        return (
            self.ident,
            self.version,
            [(name, [node.said() for node in self.blocks[name]]) for name in self.blocks],
        )

    def lines(self) -> Iterator[str]:
        """Its text."""
        headers = {
            "body": f"for {self.target} in {self.text}:"
            if self.kind == "for"
            else f"{self.kind} {self.text}:",
            "orelse": "else:",
            "handler": f"except {self.text}:",
            "finalbody": "finally:",
        }
        if self.kind == "simple":
            yield self.text
        if self.kind == "try":
            headers["body"] = "try:"
        for name in ("body", "handler", "orelse", "finalbody"):
            if name in self.blocks:
                yield headers[name]
                yield from ("    " + line for node in self.blocks[name] for line in node.lines())


@dataclass(eq=False)
class Function:
    """A function of two parameters."""

    name: str
    parameters: tuple[str, ...]
    body: list[Node]


@dataclass(eq=False)
class Program:
    """A module of functions, of which ``main`` is the last.

    Attributes:
        functions: in the order of the text.
        above: lines above everything.
    """

    functions: dict[str, Function]
    above: int = 0

    @property
    def source(self) -> str:
        """The text."""
        lines = ["# above everything"] * self.above
        for function in self.functions.values():
            lines += [f"def {function.name}({', '.join(function.parameters)}):"]
            lines += ["    " + line for node in function.body for line in node.lines()]
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        return f"<program>\n{self.source}"


def everything(body: list[Node]) -> Iterator[Node]:
    """All statements of a block, those in their blocks included."""
    for node in body:
        yield node
        for block in node.blocks.values():
            yield from everything(block)


def blocks_of(body: list[Node]) -> Iterator[list[Node]]:
    """A block and all blocks in it."""
    yield body
    for node in body:
        for block in node.blocks.values():
            yield from blocks_of(block)


#: A way to a statement: each step an index in a block, and the block of that statement that it goes on in.
Path = list[tuple[int, str]]


def path_to(body: list[Node], ident: int) -> Path | None:
    """The way to a statement; the last step's block is empty."""
    for index, node in enumerate(body):
        if node.ident == ident:
            return [(index, "")]
        for name, block in node.blocks.items():
            rest = path_to(block, ident)
            if rest is not None:
                return [(index, name), *rest]
    return None


def along(body: list[Node], path: Path) -> Iterator[Node]:
    """The statements on a way, the outermost first."""
    for index, name in path:
        node = body[index]
        yield node
        body = node.blocks[name] if name else []
