"""Writes programs, and edits of them, choice by choice."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from tests.walking.tree import Function, Node, Program, everything

Value = TypeVar("Value")
NAMES = ("a", "b", "c", "d")
MAX_DEPTH = 3


class Writer:
    """Writes one program.

    Args:
        choose: gives a number from 0 to another one; 0 is the simplest choice.
        clean_up: whether there may be clauses that clean up and raise again.
    """

    def __init__(self, choose: Callable[[int], int], *, clean_up: bool = False) -> None:
        self.choose = choose
        self._clean_up = clean_up
        self._identifier = 0

    def one_of(self, choices: list[Value]) -> Value:
        """Choose one of these; the first is the simplest."""
        return choices[self.choose(len(choices) - 1)]

    def chance(self, percent: int) -> bool:
        """Choose whether; no is simpler."""
        return self.choose(99) >= 100 - percent

    def fresh(self) -> int:
        """A number that no other call of this gives."""
        self._identifier += 1
        return self._identifier

    def program(self, most: int = 2) -> Program:
        """A whole program: a function calls those before it."""
        functions: dict[str, Function] = {}
        for number in range(1 + self.choose(most)):
            name = f"f{number}"
            functions[name] = Function(name, ("a", "b"), self._body(list(functions)))
        say = Node(self.fresh(), "simple", f"return say({self.fresh()}, f{len(functions) - 1}(1, 2))")
        functions["main"] = Function("main", (), [say])
        return Program(functions)

    def _body(self, callees: list[str]) -> list[Node]:
        first = Node(self.fresh(), "simple", "c = d = 2")
        body = [first, *self.block(callees, 0, most=4)]
        return [*body, Node(self.fresh(), "simple", f"return say({self.fresh()}, a + b + c + d)")]

    def block(
        self, callees: list[str], depth: int, *, most: int = 3, loop: bool = False, handled: bool = False
    ) -> list[Node]:
        """Some statements."""
        nodes: list[Node] = []
        for _ in range(1 + self.choose(most - 1)):
            if depth < MAX_DEPTH and self.chance(45):
                nodes.append(self.compound(callees, depth, loop=loop, handled=handled))
            else:
                nodes.append(self.simple(callees, handled=handled))
        if loop and self.chance(20):
            word = self.one_of(["continue", "break"])
            inner = [Node(self.fresh(), "simple", word)]
            nodes.append(
                Node(self.fresh(), "if", f"say({self.fresh()}, {self.name()}) % 3 == 1", "", {"body": inner})
            )
        return nodes

    def name(self) -> str:
        """Choose a variable."""
        return self.one_of(list(NAMES))

    def value(self, callees: list[str]) -> str:
        """An expression that may fail; it is the only one of its text."""
        number = self.fresh()
        forms = [
            f"crash({self.name()}, key={number})",
            f"crash({self.name()} + {self.choose(4)}, key={number})",
            f"say({number}, {self.name()}, {self.name()})",
            f"({self.name()} * {1 + self.choose(3)} + {number}) % 10",
        ]
        forms += [f"{callee}({self.name()}, {number % 4}) % 10" for callee in callees] * 2
        return self.one_of(forms)

    def simple(self, callees: list[str], *, handled: bool = False) -> Node:
        """A simple statement."""
        forms = [
            f"{self.name()} = {self.value(callees)}",
            f"say({self.fresh()}, a, b, c, d)",
            f"say({self.fresh()}, {self.value(callees)})",
        ]
        if handled:
            forms.append(f"{self.name()} % 3 == 1 and expected({self.fresh()})")
        return Node(self.fresh(), "simple", self.one_of(forms))

    def header(self, kind: str, callees: list[str]) -> str:
        """What stands in the header of a compound statement."""
        if kind == "if":
            return f"{self.value(callees)} % 3 != {self.choose(2)}"
        if kind == "while":
            return f"again({self.fresh()}, {1 + self.choose(2)})"
        if kind == "for":
            return self.one_of(["range(2)", f"[{self.value(callees)}, {self.fresh()}]", "(1, 2, 3)"])
        return f"Sound({self.fresh()}, 'none', {self.value(callees)})"

    def compound(self, callees: list[str], depth: int, *, loop: bool = False, handled: bool = False) -> Node:
        """A statement with blocks."""
        kind = self.one_of(["if", "for", "with", "try", "while"])

        def block(**changed: bool) -> list[Node]:
            return self.block(callees, depth + 1, **({"loop": loop, "handled": handled} | changed))

        if kind == "try":
            return self._try(block, handled=handled)
        target = self.name() if kind == "for" else ""
        node = Node(self.fresh(), kind, self.header(kind, callees), target)
        node.blocks["body"] = block(loop=loop or kind in ("for", "while"))
        if kind != "with" and self.chance(30):
            node.blocks["orelse"] = block()
        return node

    def _try(self, block: Callable[..., list[Node]], *, handled: bool) -> Node:
        node = Node(self.fresh(), "try")
        form = self.choose(3 if self._clean_up else 2)
        if form == 1:
            node.text = "(KeyError, Expected)"
        elif form == 3:
            node.text = "BaseException"
        node.blocks["body"] = block(handled=form == 1 or handled)
        if form == 1:
            node.blocks["handler"] = block(loop=False)
        elif form == 3:
            again = Node(self.fresh(), "simple", "raise")
            node.blocks["handler"] = [Node(self.fresh(), "simple", f"say({self.fresh()}, a)"), again]
        if form == 1 and self.chance(30):
            node.blocks["orelse"] = block(loop=False)
        if form in (0, 2) or self.chance(30):
            node.blocks["finalbody"] = block(loop=False, handled=False)
        return node


class Editor:
    """Edits a function of a program in its place.

    Args:
        writer: makes what is new.
        function: what is edited.
        near: blocks that an edit prefers.
    """

    def __init__(self, writer: Writer, function: Function, near: list[list[Node]]) -> None:
        self._writer = writer
        self._function = function
        self._near = near
        self.renamed: dict[str, str] = {}
        self.did: list[str] = []

    def edit(self) -> None:
        """Make one edit."""
        forms = [self.insert, self.change, self.delete, self.wrap, self.unwrap, self.move]
        form = self._writer.one_of(forms)
        self.did.append(form.__name__)
        form()

    def _block(self) -> list[Node]:
        """Choose a block; the statements that begin and end the function are left alone."""
        every = self._every(self._function.body)
        near = [block for block in self._near if any(block is other for other in every)]
        return self._writer.one_of(near if near and self._writer.chance(70) else every)

    def _every(self, body: list[Node]) -> list[list[Node]]:
        return [body, *(b for node in body for block in node.blocks.values() for b in self._every(block))]

    def _span(self, block: list[Node]) -> tuple[int, int]:
        return (1, len(block) - 1) if block is self._function.body else (0, len(block))

    def _some(self, block: list[Node]) -> int | None:
        first, last = self._span(block)
        return first + self._writer.choose(last - first - 1) if last > first else None

    def insert(self) -> None:
        """A new simple statement."""
        block = self._block()
        first, last = self._span(block)
        block.insert(first + self._writer.choose(last - first), self._writer.simple([]))

    def change(self) -> None:
        """Another text for a statement or a header."""
        block = self._block()
        index = self._some(block)
        if index is None or block[index].text in ("break", "continue", "raise"):
            return
        node = block[index]
        before = node.text
        if node.kind == "simple":
            node.text = self._writer.simple([]).text
        elif node.kind != "try":
            node.text = self._writer.header(node.kind, [])
        node.version += node.text != before

    def delete(self) -> None:
        """Without a statement, or with ``pass`` in its place where it was the only one."""
        block = self._block()
        index = self._some(block)
        if index is not None:
            if len(block) == 1:
                block[index] = Node(self._writer.fresh(), "simple", "pass")
            else:
                del block[index]

    def wrap(self) -> None:
        """A block around some statements."""
        block = self._block()
        index = self._some(block)
        if index is None:
            return
        _, last = self._span(block)
        end = index + 1 + self._writer.choose(last - index - 1)
        writer = self._writer
        kind = writer.one_of(["with", "try", "if", "for", "while"])
        node = Node(writer.fresh(), kind)
        node.blocks["body"] = block[index:end]
        if kind == "try":
            node.blocks["finalbody"] = [writer.simple([])]
        else:
            node.text = writer.header(kind, [])
            node.target = writer.name() if kind == "for" else ""
        block[index:end] = [node]

    def unwrap(self) -> None:
        """What stands in a block, without the block."""
        found = [
            (block, node)
            for block in self._every(self._function.body)
            for node in block
            if "body" in node.blocks
        ]
        near = [(block, node) for block, node in found if any(block is other for other in self._near)]
        if found:
            block, node = self._writer.one_of(near if near and self._writer.chance(70) else found)
            index = block.index(node)
            block[index : index + 1] = node.blocks["body"]

    def move(self) -> None:
        """A statement to another place, in its block or in another one."""
        block = self._block()
        index = self._some(block)
        if index is None or len(block) == 1:
            return
        node = block.pop(index)
        inside = list(self._every([node]))[1:]
        others = [
            other for other in self._every(self._function.body) if not any(other is one for one in inside)
        ]
        target = block if self._writer.chance(50) else self._writer.one_of(others)
        first, last = self._span(target)
        target.insert(first + self._writer.choose(last - first), node)

    def rename(self) -> None:
        """Another name for a local variable."""
        old = self._writer.one_of(["c", "d", "a"])
        new = old + "_renamed"
        self.did.append("rename")
        self.renamed[old] = new
        function = self._function
        function.parameters = tuple(new if name == old else name for name in function.parameters)
        for node in everything(function.body):
            text, target = _with_name(node.text, old, new), new if node.target == old else node.target
            if (text, target) != (node.text, node.target):
                node.text, node.target = text, target
                node.version += 1


def _with_name(text: str, old: str, new: str) -> str:
    return re.sub(rf"(?<![\w.']){old}(?![\w(])", new, text)
