"""What an edited text has new: imports, functions, classes, and methods of classes that are there already."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from daifu_bc.recovery.closures import cells_of, functions_in
from daifu_bc.recovery.edits import DEFINITIONS, Edit, compile_text
from daifu_bc.recovery.history import Step
from daifu_bc.rewrite.barrier import vaccinate_code


@dataclass(frozen=True)
class Addition:
    """Something new.

    Attributes:
        node: its statement.
        owner: the qualified name of the class that it is a method of; empty for what belongs to the module.
    """

    node: ast.stmt
    owner: str = ""

    @property
    def name(self) -> str:
        """What it is called."""
        if not isinstance(self.node, DEFINITIONS):
            return ast.unparse(self.node)
        return f"{self.owner}.{self.node.name}" if self.owner else self.node.name

    def put(self, edit: Edit, step: Step) -> None:
        """Runs its statement, where it belongs; the step remembers what was there."""
        if not self.owner:
            step.will_change(edit.scope, tuple(_names_bound(self.node)))
            exec(_code(self.node, edit), edit.scope)
            return
        owner: Any = edit.scope
        for part in self.owner.split("."):
            owner = owner[part] if owner is edit.scope else vars(owner)[part]
        assert isinstance(self.node, DEFINITIONS)
        # In a class of the same name, for its qualified name, private names and `super()`.
        around: ast.stmt = self.node
        for part in reversed(self.owner.split(".")):
            around = ast.copy_location(_class(part, around), self.node)
        space: dict[str, Any] = {}
        exec(_code(around, edit), edit.scope, space)
        made: Any = space[self.owner.split(".")[0]]
        for part in self.owner.split(".")[1:]:
            made = vars(made)[part]
        thing = vars(made)[self.node.name]
        for function in functions_in(thing):
            if "__class__" in function.__code__.co_freevars:
                cells_of(function)["__class__"].cell_contents = owner
        step.set_attribute(owner, self.node.name, thing)


def _class(name: str, body: ast.stmt) -> ast.ClassDef:
    made = ast.parse(f"class {name}: pass").body[0]
    assert isinstance(made, ast.ClassDef)
    made.body = [body]
    return made


def _code(node: ast.stmt, edit: Edit) -> Any:
    return vaccinate_code(compile_text(ast.fix_missing_locations(ast.Module([node], [])), edit))


def additions(old: ast.Module, new: ast.Module, scope: dict[str, Any]) -> list[Addition]:
    """The new imports, functions, classes and methods; other new statements are not run by themselves.

    Args:
        old: the text that runs.
        new: the new text.
        scope: the module's globals.
    """
    known = {_name_of(node) for node in old.body}
    kinds = (ast.Import, ast.ImportFrom, *DEFINITIONS)
    found = [Addition(node) for node in new.body if isinstance(node, kinds) and _name_of(node) not in known]
    return found + list(_methods(old.body, new.body, "", scope))


def _methods(old: list[ast.stmt], new: list[ast.stmt], prefix: str, scope: Any) -> Iterator[Addition]:
    """The new methods of the classes that both texts have, and that are there."""
    before = {node.name: node for node in old if isinstance(node, ast.ClassDef)}
    for node in new:
        if not isinstance(node, ast.ClassDef) or node.name not in before:
            continue
        owner, path = scope.get(node.name), prefix + node.name
        if not isinstance(owner, type):
            continue
        body = before[node.name].body
        known = {_name_of(one) for one in body}
        for one in node.body:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and _name_of(one) not in known:
                yield Addition(one, path)
        yield from _methods(body, node.body, path + ".", vars(owner))


def _names_bound(node: ast.stmt) -> Iterator[str]:
    """The names that a definition or an import gives a value to."""
    if isinstance(node, DEFINITIONS):
        yield node.name
    for alias in getattr(node, "names", []):
        yield (alias.asname or alias.name).partition(".")[0]


def _name_of(node: ast.stmt) -> str:
    return str(node.name) if isinstance(node, DEFINITIONS) else ast.unparse(node)
