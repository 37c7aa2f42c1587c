"""What a surgery edits: one module's new text against the text that runs."""

from __future__ import annotations

import ast
import functools
import gc
import itertools
import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from daifu_bc.analysis import editions, sources
from daifu_bc.analysis.flow import Flow
from daifu_bc.analysis.statements import parse
from daifu_bc.analysis.trees import compiled, tree_of
from daifu_bc.errors import Refusal
from daifu_bc.recovery import cells, files
from daifu_bc.recovery.capture import Capture
from daifu_bc.recovery.frames import FrameView
from daifu_bc.recovery.history import Step, TextChange
from daifu_bc.recovery.lookups import names_in_module
from daifu_bc.recovery.origins import flags_for, invent, origin, takes_place_of
from daifu_bc.recovery.replacing import in_context, with_statement
from daifu_bc.recovery.swap import functions_with
from daifu_bc.rewrite.barrier import pristine

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
#: The text that a file's functions run now, if a surgery has changed it.
_current: dict[str, str] = {}


@dataclass(frozen=True)
class Operation:
    """What was asked for; see `Hold.surgery`.

    Attributes:
        captured: the frame that is held and selected; None if the program itself asks for it.
        frames: those around; the one marked as held is the one that asks.
        flow: the body in which the selected frame goes on, or that of the function that a line is of.
        place: where it goes on; -1 if nothing is held.
        functions: the one function that is meant, if it is given and not named.
        module: the module that is meant, if it is not that of the frame.
    """

    captured: Capture | None
    frames: Sequence[FrameView]
    flow: Flow | None
    place: int
    from_disk: bool = False
    file: str | None = None
    name: str | None = None
    source: str | None = None
    line: int | None = None
    functions: tuple[FunctionType, ...] = ()
    module: ModuleType | None = None

    @property
    def frame(self) -> FrameType | None:
        """The frame that goes on by the decision about its hold, if one is held."""
        return None if self.captured is None else self.captured.frame

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        if self.line is not None:
            return f"surgery --at {self.line}"
        if self.name is not None:
            return f"surgery {self.name}"
        return f"surgery {self.file}" if self.file is not None else "surgery"


@dataclass(frozen=True)
class Edit:
    """One module's new text against the one that runs.

    Attributes:
        scope: the module's globals.
        filename: the file of the running code.
        new_name: the file name that the new code gets.
        old_source: the text that runs; empty if it is not known.
        new_source: the new text.
        alone: whether the new text is one definition and not the whole module.
        named: the function that was named; it may be one that no variable of the module leads to.
    """

    scope: dict[str, Any]
    filename: str
    new_name: str
    old_source: str
    new_source: str
    alone: bool = False
    named: FunctionType | None = None

    def applied(self, step: Step) -> None:
        """Remembers that this text runs now."""
        step.texts.append(TextChange(origin(self.filename), self.old_source, self.new_source))
        if self.new_name == self.filename:
            step.set_item(_current, self.filename, self.new_source)


def edits_of(operation: Operation) -> Iterator[Edit]:
    """The texts that an operation edits.

    Raises:
        Refusal: a text cannot be had or read.
    """
    held = next(view for view in operation.frames if view.held)
    # The selected frame's module and names are meant.
    asking = next((view for view in operation.frames if view.frame is operation.frame), held)
    if operation.line is not None:
        yield _statement_edit(operation, operation.line, asking)
    elif operation.name is not None:
        yield _definition_edit(operation, asking)
    elif operation.file is not None:
        yield _module_edit(operation, asking, os.path.abspath(operation.file))
    else:
        yield from _disk_edits(operation, asking)


def _module_edit(operation: Operation, held: FrameView, path: str) -> Edit:
    if operation.module is None:
        scope, filename, old = held.frame.f_globals, held.filename, running_source(held.code)
    else:
        scope, filename = vars(operation.module), files.of_module(operation.module)
        old = _known_text(filename)
    takes_place_of(path, filename)
    return Edit(scope, filename, path, old or "", files.read(path))


def _disk_edits(operation: Operation, held: FrameView) -> Iterator[Edit]:
    in_cell = cells.is_cell(origin(held.filename))
    if operation.module is None:
        for cell in cells.edited(needed=operation.captured is not None and in_cell):
            takes_place_of(cell.new_name, cell.filename)
            yield Edit(cell.scope, cell.filename, cell.new_name, cell.old, cell.new)
    if operation.captured is not None and not os.path.exists(held.filename) and not in_cell:
        raise Refusal(
            f"there is no source of {held.filename} to compare with",
            remedy="Use `surgery NAME <<END ... END` with the new definition.",
        )
    if operation.module is not None:
        meant = {files.of_module(operation.module): vars(operation.module)}
    else:
        views = [held, *(view for view in operation.frames if view.vaccinated)]
        around = {view.filename: view.frame.f_globals for view in views if os.path.exists(view.filename)}
        around = {name: scope for name, scope in around.items() if not cells.is_cell(origin(name))}
        meant = around | {name: scope for name, scope in files.vaccinated(_current) if name not in around}
    for filename, scope in meant.items():
        # Most files of a program have not been touched.
        if filename not in _current and sources.is_kept(filename, files.content(filename)):
            continue
        current, new = _known_text(filename), files.read(filename)
        if current is None or current.rstrip("\n") != new.rstrip("\n"):
            yield Edit(scope, filename, filename, current or "", new)


def _known_text(filename: str) -> str | None:
    """The text that a file's functions run now, if it is known."""
    known = _current.get(filename)
    if known is not None:
        return known
    lines = sources.lines(filename)
    return None if lines is None else "\n".join(lines)


def running_source(code: CodeType) -> str | None:
    """The text that code was made from, if it is known."""
    lines = editions.lines(code)
    return None if lines is None else "\n".join(lines)


def _definition_edit(operation: Operation, held: FrameView) -> Edit:
    """The module's text with one definition replaced."""
    assert operation.name is not None
    text = textwrap.dedent(operation.source or "").strip("\n") + "\n"
    tree = parse_text(text, "<surgery>")
    scope, filename, qualname, function = _found(operation, operation.name, held)
    wanted = qualname.rpartition(".")[2]
    if not any(isinstance(node, DEFINITIONS) and node.name == wanted for node in tree.body):
        raise Refusal(
            f"the new text does not define {wanted}",
            remedy=f"It has to be `def {wanted}(...): ...`, with what else it needs.",
        )
    old = running_source(pristine(function.__code__)) if function is not None else running_source(held.code)
    if old is None:
        # No source at all: the definition alone stands for the module, on the lines of the old one.
        code = function.__code__ if function is not None else held.code
        alone = in_context(text, qualname, code.co_firstlineno)
        return Edit(scope, filename, invent(filename, alone), "", alone, alone=True, named=function)
    tree = parse_text(old, filename)
    node = _node_at(tree, qualname)
    if node is None:
        raise Refusal(f"the text of {filename} has no definition of {qualname}")
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    lines = old.split("\n")
    indented = textwrap.indent(text, " " * node.col_offset).rstrip("\n").split("\n")
    # Decorators that the new text does not repeat stay.
    given = parse_text(text, "<surgery>").body
    if node.decorator_list and len(given) == 1 and not getattr(given[0], "decorator_list", True):
        first = node.lineno
    new = "\n".join([*lines[: first - 1], *indented, *lines[node.end_lineno or first :]])
    return Edit(scope, filename, invent(filename, new), old, new, named=function)


def _found(
    operation: Operation, name: str, held: FrameView
) -> tuple[dict[str, Any], str, str, FunctionType | None]:
    if not operation.functions:
        return _find(name, held, operation.frames)
    function = operation.functions[0]
    code = pristine(function.__code__)
    return function.__globals__, code.co_filename, code.co_qualname, function


def _statement_edit(operation: Operation, line: int, held: FrameView) -> Edit:
    """The module's text with one statement replaced."""
    assert operation.flow is not None
    captured, body = operation.captured, operation.flow.code
    old = running_source(body)
    tree = parse(body)
    if old is None or tree is None:
        raise Refusal(f"there is no source of {body.co_filename} that the running code was made from")
    new = with_statement(old, tree, body, line, operation.source or "")
    parse_text(new, "<surgery>")
    running = body if captured is None else captured.code
    before, filename = running_source(running), running.co_filename
    scope = held.frame.f_globals if captured is None else captured.frame.f_globals
    named = next(iter(operation.functions), None)
    if named is not None:
        scope = named.__globals__
    return Edit(scope, filename, invent(filename, new), before or old, new, named=named)


def _find(
    name: str, held: FrameView, frames: Sequence[FrameView]
) -> tuple[dict[str, Any], str, str, FunctionType | None]:
    """Globals, file, qualified name and function of what a name means at the held frame."""
    wanted = _without_locals(name)
    for view in [held, *(view for view in reversed(frames) if view.vaccinated)]:
        known = (_without_locals(view.code.co_qualname), view.code.co_name)
        if wanted in known and view.code.co_name != "<module>":
            code = view.frame.f_code
            found = None if view.held else next(iter(functions_with([code])[id(code)]), None)
            return view.frame.f_globals, view.filename, view.code.co_qualname, found
    scopes = [held.frame.f_globals, *(view.frame.f_globals for view in reversed(frames))]
    places = [(scope, name) for scope in scopes]
    parts = wanted.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        names = names_in_module(sys.modules.get(".".join(parts[:cut])))
        if names:
            places.append((names, ".".join(parts[cut:])))
    found = next(filter(None, itertools.starmap(_look_up, places)), None) or _nested(places)
    if found is not None:
        return found.__globals__, pristine(found.__code__).co_filename, found.__code__.co_qualname, found
    raise Refusal(
        f"{name} is no function that can be found from here",
        remedy="Write `f`, `Class.method`, `outer.f` for a function inside another, or `module.f`.",
    )


def find_function(name: str, frames: Sequence[FrameView]) -> list[FunctionType]:
    """The function that a name means at the held frame; nothing if it is the one that this frame itself runs.

    Raises:
        Refusal: there is none.
    """
    held = next(view for view in frames if view.held)
    found = _find(name, held, frames)[3]
    return [] if found is None else [found]


def _without_locals(qualname: str) -> str:
    """`outer.f` for `outer.<locals>.f`: a person may write both."""
    return qualname.replace(".<locals>.", ".")


def _nested(places: list[tuple[dict[str, Any], str]]) -> FunctionType | None:
    """A function inside another that is alive somewhere, and that no variable of a module leads to."""
    wanted = {name.rpartition(".")[2] for _, name in places}
    alive = [
        thing
        for thing in gc.get_objects()
        if type(thing) is FunctionType
        and "<locals>" in thing.__qualname__
        and thing.__code__.co_name in wanted
    ]
    for scope, name in places:
        for function in alive:
            known = _without_locals(function.__code__.co_qualname)
            if function.__globals__ is scope and known == _without_locals(name):
                return function
    return None


def _look_up(scope: dict[str, Any], name: str) -> FunctionType | None:
    first, *rest = name.split(".")
    thing: Any = scope.get(first)
    for part in rest:
        thing = vars(thing).get(part) if isinstance(thing, type) or hasattr(thing, "__dict__") else None
    if isinstance(thing, staticmethod | classmethod):
        thing = thing.__func__
    if isinstance(thing, property):
        thing = thing.fget
    while isinstance(thing, FunctionType) and "__wrapped__" in thing.__dict__:
        thing = thing.__dict__["__wrapped__"]
    return thing if isinstance(thing, FunctionType) else None


def _node_at(tree: ast.Module, qualname: str) -> Definition | None:
    """The last definition of a qualified name."""
    found = None
    for path, node in definitions(tree):
        if path == qualname:
            found = node
    return found


@functools.lru_cache(maxsize=2)
def definitions(tree: ast.Module) -> tuple[tuple[str, Definition], ...]:
    """The definitions in a tree with their qualified names, in the order of the text."""
    return tuple(_definitions_in(tree.body, ""))


def first_lines(tree: ast.Module) -> dict[str, list[int]]:
    """For each qualified name the first lines of its definitions, decorators included."""
    lines: dict[str, list[int]] = {}
    for path, node in definitions(tree):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        lines.setdefault(path, []).append(first)
    return lines


def _definitions_in(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Definition]]:
    for node in body:
        if isinstance(node, DEFINITIONS):
            path = prefix + node.name
            yield path, node
            inner = path + ("." if isinstance(node, ast.ClassDef) else ".<locals>.")
            yield from _definitions_in(node.body, inner)
            continue
        # Only statements hold definitions.
        for field in ("body", "orelse", "finalbody"):
            yield from _definitions_in(getattr(node, field, []), prefix)
        for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
            yield from _definitions_in(part.body, prefix)


def parse_text(source: str, filename: str) -> ast.Module:
    """The syntax tree of new text.

    Raises:
        Refusal: it is no valid Python.
    """
    try:
        return tree_of(source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f"{filename}:{line}" if line else filename
        raise Refusal(
            "the new text is not valid Python", place=where, why=str(getattr(error, "msg", error)),
            remedy="Nothing has been changed; mend the text and say `surgery` again.",
        ) from None  # fmt: skip


def compile_text(tree: ast.Module | str, edit: Edit) -> CodeType:
    """The code of new text.

    Raises:
        Refusal: it cannot be compiled.
    """
    try:
        flags = flags_for(edit.filename)
        if isinstance(tree, str):
            return compiled(tree, edit.new_name, flags).module
        code: CodeType = compile(tree, edit.new_name, "exec", flags, dont_inherit=True)
        return code
    except (SyntaxError, ValueError) as error:
        raise Refusal("the new text cannot be compiled", place=edit.new_name, why=str(error)) from None
