"""An edit of the program's text becomes new bodies in the running process."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import linecache
import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from daifu_bc.analysis import editions, sources
from daifu_bc.analysis.align import align, text_of
from daifu_bc.analysis.flow import Flow
from daifu_bc.analysis.statements import find_function, parse
from daifu_bc.errors import NoPoint, Refusal
from daifu_bc.recovery.bodies import flow_of
from daifu_bc.recovery.capture import Capture
from daifu_bc.recovery.frames import FrameView
from daifu_bc.recovery.restarts import statements_of
from daifu_bc.recovery.swap import check as check_swap
from daifu_bc.recovery.swap import functions_with, live_functions, swap
from daifu_bc.rewrite.barrier import pristine, vaccinate_code

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_edits = itertools.count(1)


@dataclass(frozen=True)
class Operation:
    """What was asked for; see `Hold.surgery`."""

    captured: Capture
    frames: Sequence[FrameView]
    from_disk: bool = False
    file: str | None = None
    name: str | None = None
    source: str | None = None


@dataclass
class Result:
    """What a surgery did, or would do.

    Attributes:
        text: what to print.
        flow: the new body of the crashed function, if that changed.
        place: where it goes on.
    """

    text: str
    flow: Flow | None = None
    place: int = -1


@dataclass
class _Edit:
    """One module's new text against the one that runs."""

    scope: dict[str, Any]
    filename: str  # of the running code
    new_name: str  # that the new code gets
    old_source: str
    new_source: str
    lines: list[str] = field(default_factory=list)


def operate(operation: Operation, *, check: bool) -> Result:
    """Carries an operation out, or only says what it would change.

    Raises:
        Refusal: it cannot be done; nothing has been changed.
    """
    edits = list(_edits_of(operation))
    if not edits:
        return Result("nothing has changed")
    plans = [_plan(edit, operation.captured) for edit in edits]
    swaps = [pair for plan in plans for pair in plan.swaps]
    flow, place, resume = None, -1, ""
    for plan in plans:
        if plan.crashed is not None:
            flow, place, resume = _go_on(operation.captured, plan)
    names = [f"{qualname} ({len(functions)} function{'s' * (len(functions) != 1)})" for qualname, functions, _ in swaps]
    notes = [note for plan in plans for note in plan.notes]
    if not swaps and flow is None and not any(plan.added for plan in plans):
        return Result("\n".join(["nothing has changed in a function", *notes]))
    if not check:
        for _, functions, code in swaps:
            swap(functions, code)
        for plan in plans:
            for node in plan.added:
                _execute(node, plan.edit)
            if plan.edit.new_name == plan.edit.filename:
                _current[plan.edit.filename] = plan.edit.new_source
    verb = "would replace" if check else "replaced"
    lines = [f"{verb} {', '.join(names)}"] if names else []
    lines += [f"{'would add' if check else 'added'} {_name_of(node)}" for plan in plans for node in plan.added]
    if resume:
        lines.append(resume)
    return Result("\n".join([*lines, *notes]), flow, place)


# -- what is edited ------------------------------------------------------------------------------------------------


def _edits_of(operation: Operation) -> Iterator[_Edit]:
    held = next(view for view in operation.frames if view.held)
    if operation.name is not None:
        yield _definition_edit(operation, held)
    elif operation.file is not None:
        yield _module_edit(held, os.path.abspath(operation.file))
    else:
        yield from _disk_edits(operation, held)


def _module_edit(held: FrameView, path: str) -> _Edit:
    old = _running_source(held.code)
    if old is None:
        raise Refusal(
            f"the source of {held.filename} is not known, so that nothing can be compared with {path}",
            remedy="Use `surgery NAME <<END ... END` with the new definition.",
        )
    return _Edit(held.frame.f_globals, held.filename, path, old, _read(path))


def _disk_edits(operation: Operation, held: FrameView) -> Iterator[_Edit]:
    seen: set[str] = set()
    for view in [held, *operation.frames]:
        filename = view.filename
        if filename in seen or filename.startswith("<") or not (view.held or view.vaccinated):
            continue
        seen.add(filename)
        old = sources.lines(filename)
        if old is None or not os.path.exists(filename):
            if view.held:
                raise Refusal(
                    f"there is no source of {filename} to compare with",
                    remedy="Use `surgery NAME <<END ... END` with the new definition.",
                )
            continue
        current, new = _current.get(filename, "\n".join(old)), _read(filename)
        if current.rstrip("\n") != new.rstrip("\n"):
            yield _Edit(view.frame.f_globals, filename, filename, current, new)


#: The text that a file's functions run now, if a surgery has changed it.
_current: dict[str, str] = {}


def _running_source(code: CodeType) -> str | None:
    lines = editions.lines(code)
    return None if lines is None else "\n".join(lines)


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        raise Refusal(f"{path} cannot be read", why=str(error)) from None
    try:
        return importlib.util.decode_source(source)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise Refusal(f"{path} cannot be decoded", why=str(error)) from None


def _definition_edit(operation: Operation, held: FrameView) -> _Edit:
    """The module's text with one definition replaced."""
    assert operation.name is not None
    text = textwrap.dedent(operation.source or "").strip("\n") + "\n"
    _parse(text, "<surgery>")
    scope, filename, qualname, function = _find(operation.name, held, operation.frames)
    old = _running_source(pristine(function.__code__)) if function is not None else _running_source(held.code)
    if old is None:
        # No source at all: the definition alone stands for the module.
        return _Edit(scope, filename, _invent(filename, text), "", text)
    tree = _parse(old, filename)
    node = _node_at(tree, qualname)
    if node is None:
        raise Refusal(f"the text of {filename} has no definition of {qualname}")
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    lines = old.split("\n")
    indented = textwrap.indent(text, " " * node.col_offset).rstrip("\n").split("\n")
    # Decorators that the new text does not repeat stay.
    given = _parse(text, "<surgery>").body
    if node.decorator_list and len(given) == 1 and not getattr(given[0], "decorator_list", True):
        first = node.lineno
    new = "\n".join([*lines[: first - 1], *indented, *lines[node.end_lineno or first :]])
    return _Edit(scope, filename, _invent(filename, new), old, new)


def _invent(filename: str, text: str) -> str:
    """A name for text that is in no file, known to linecache so that tracebacks show it."""
    name = f"<surgery {next(_edits)} of {os.path.basename(filename)}>"
    linecache.cache[name] = (len(text), None, [line + "\n" for line in text.split("\n")], name)
    return name


def _find(
    name: str, held: FrameView, frames: Sequence[FrameView]
) -> tuple[dict[str, Any], str, str, FunctionType | None]:
    """Globals, file, qualified name and function of what a name means at the held frame."""
    for view in [held, *reversed(frames)]:
        if name in (view.code.co_qualname, view.code.co_name) and view.code.co_name != "<module>":
            return view.frame.f_globals, view.filename, view.code.co_qualname, None
    for scope in [held.frame.f_globals, *(view.frame.f_globals for view in reversed(frames))]:
        found = _look_up(scope, name)
        if found is not None:
            return found.__globals__, pristine(found.__code__).co_filename, found.__code__.co_qualname, found
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:cut]))
        found = _look_up(vars(module), ".".join(parts[cut:])) if module is not None else None
        if found is not None:
            return found.__globals__, pristine(found.__code__).co_filename, found.__code__.co_qualname, found
    raise Refusal(
        f"{name} is no function that can be found from here", remedy="Write `f`, `Class.method` or `module.f`."
    )


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


def _node_at(tree: ast.Module, qualname: str) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | None:
    """The last definition of a qualified name."""
    found = None
    for path, node in _definitions(tree):
        if path == qualname:
            found = node
    return found


def _definitions(
    tree: ast.AST, prefix: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _DEFINITIONS):
            path = prefix + node.name
            yield path, node
            yield from _definitions(node, path + ("." if isinstance(node, ast.ClassDef) else ".<locals>."))
        elif not isinstance(node, ast.Lambda):
            yield from _definitions(node, prefix)


def _parse(source: str, filename: str) -> ast.Module:
    try:
        return ast.parse(source, filename)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f"{filename}:{line}" if line else filename
        raise Refusal(
            "the new text is not valid Python", place=where, why=str(getattr(error, "msg", error)),
            remedy="Nothing has been changed; mend the text and say `surgery` again.",
        ) from None  # fmt: skip


# -- what changes --------------------------------------------------------------------------------------------------


@dataclass
class _Plan:
    edit: _Edit
    swaps: list[tuple[str, list[FunctionType], CodeType]] = field(default_factory=list)
    crashed: CodeType | None = None  # the new pristine code of the crashed function
    new_tree: ast.Module | None = None
    added: list[ast.stmt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _plan(edit: _Edit, captured: Capture) -> _Plan:
    new_tree = _parse(edit.new_source, edit.new_name)
    try:
        module = compile(new_tree, edit.new_name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise Refusal("the new text cannot be compiled", place=edit.new_name, why=str(error)) from None
    plan = _Plan(edit, new_tree=new_tree)
    old_tree = _parse(edit.old_source, edit.filename)
    new_codes = {(code.co_qualname, rank): code for code, rank in _ranked(module)}
    changed = _changed(old_tree, new_tree) if edit.old_source else {(path, 0) for path, _ in _definitions(new_tree)}
    functions = live_functions(edit.scope, captured.code.co_filename)
    functions += [function for function in live_functions(edit.scope, edit.filename) if function not in functions]
    live: dict[str, list[CodeType]] = {}
    for function in functions:
        code = function.__code__
        codes = live.setdefault(code.co_qualname, [])
        if not any(code is other for other in codes):
            codes.append(code)
    crashed_name = captured.code.co_qualname
    running = captured.frame.f_code
    if running.co_qualname == crashed_name and not any(running is code for code in live.get(crashed_name, [])):
        live.setdefault(crashed_name, []).append(running)
    everything = functions_with([code for codes in live.values() for code in codes])
    for qualname, rank in sorted(changed):
        new = new_codes.get((qualname, rank))
        if new is None:
            continue
        editions.register(new, edit.new_source)
        holders = [function for code in live.get(qualname, []) for function in everything[id(code)]]
        if qualname == crashed_name:
            plan.crashed = new
        if not holders:
            if "<locals>" in qualname and qualname != crashed_name:
                plan.notes.append(f"{qualname} exists only once its outer function runs again")
            continue
        check_swap(holders, new)
        plan.swaps.append((qualname, holders, vaccinate_code(new)))
    if crashed_name == "<module>" and _differs(old_tree, new_tree):
        plan.crashed = module
        editions.register(module, edit.new_source)
    plan.added = _additions(old_tree, new_tree) if edit.old_source else []
    return plan


def _ranked(module: CodeType) -> Iterator[tuple[CodeType, int]]:
    counts: dict[str, int] = {}

    def walk(code: CodeType) -> Iterator[CodeType]:
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield constant
                yield from walk(constant)

    for code in walk(module):
        if code.co_name.startswith("<"):
            continue
        rank = counts.get(code.co_qualname, 0)
        counts[code.co_qualname] = rank + 1
        yield code, rank


def _changed(old: ast.Module, new: ast.Module) -> set[tuple[str, int]]:
    """The definitions whose text differs, by qualified name and rank among those of that name."""

    def table(tree: ast.Module) -> dict[tuple[str, int], str]:
        counts: dict[str, int] = {}
        texts: dict[tuple[str, int], str] = {}
        for path, node in _definitions(tree):
            if isinstance(node, ast.ClassDef):
                continue
            rank = counts.get(path, 0)
            counts[path] = rank + 1
            texts[path, rank] = ast.dump(node)
        return texts

    before, after = table(old), table(new)
    return {key for key, text in after.items() if key in before and before[key] != text}


def _differs(old: ast.Module, new: ast.Module) -> bool:
    return [text_of(node) for node in old.body] != [text_of(node) for node in new.body]


def _additions(old: ast.Module, new: ast.Module) -> list[ast.stmt]:
    """New imports, functions and classes of the module; other new statements are not run by themselves."""
    known = {_name_of(node) for node in old.body}
    kinds = (ast.Import, ast.ImportFrom, *_DEFINITIONS)
    return [node for node in new.body if isinstance(node, kinds) and _name_of(node) not in known]


def _name_of(node: ast.stmt) -> str:
    return str(node.name) if isinstance(node, _DEFINITIONS) else ast.unparse(node)


def _execute(node: ast.stmt, edit: _Edit) -> None:
    code = compile(ast.Module([node], []), edit.new_name, "exec", dont_inherit=True)
    exec(vaccinate_code(code), edit.scope)


# -- where the crashed function goes on ----------------------------------------------------------------------------


def _go_on(captured: Capture, plan: _Plan) -> tuple[Flow, int, str]:
    assert plan.crashed is not None and plan.new_tree is not None
    old_tree = parse(captured.code)
    old_function = find_function(old_tree, captured.code) if old_tree is not None else None
    new_function = find_function(plan.new_tree, plan.crashed)
    statement = statements_of(captured.flow).of[captured.place]
    if old_function is None or new_function is None or statement is None or statement.node is None:
        raise NoPoint(
            "without the source of the running body it cannot be told where the new one goes on",
            remedy="Use `goto LINE` for a line of the old body, or an action.",
        )
    aligned = align(old_function.body, statement.node, new_function.body)
    flow = flow_of(plan.crashed)
    table = statements_of(flow)
    kinds = captured.kinds
    for place, owner in enumerate(table.of):
        if owner is None or owner.first != aligned.statement.lineno or not table.is_start(place):
            continue
        found = flow.kinds(place)
        if found == kinds[: len(found)] and flow.is_restart_point(place) and len(found) >= _block_depth(captured):
            _check_free(captured, plan.crashed)
            text = "the new body goes on at its first changed statement" if aligned.changed else ""
            if aligned.passed:
                lines = ", ".join(map(str, aligned.passed))
                plan.notes.append(f"line {lines} has changed too, but has already run: it is not run again by itself")
            return flow, place, text
    raise NoPoint(
        f"line {aligned.statement.lineno} of the new text is no place at which the run could go on",
        remedy="Keep the blocks around the crashed statement as they are.",
    )


def _block_depth(captured: Capture) -> int:
    """How many items the block of the crashed statement keeps."""
    table = statements_of(captured.flow)
    begin = table.begin_of(captured.place)
    stack = captured.flow.stacks[begin] if begin is not None else None
    return min(len(stack), len(captured.kinds)) if stack is not None else len(captured.kinds)


def _check_free(captured: Capture, code: CodeType) -> None:
    known = set(captured.code.co_freevars) | set(captured.code.co_cellvars)
    missing = [name for name in code.co_freevars if name not in known]
    if missing:
        raise Refusal(
            f"the new body uses {', '.join(missing)} of the function around it, which the running one does not",
            remedy="Pass the value in another way.",
        )
