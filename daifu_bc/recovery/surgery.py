"""An edit of the program's text becomes new bodies in the running process."""

from __future__ import annotations

import ast
import inspect
import os
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import CellType, CodeType, FrameType, FunctionType

from daifu_bc.analysis import editions
from daifu_bc.analysis.counterparts import text_of
from daifu_bc.analysis.flow import Flow
from daifu_bc.analysis.statements import parse
from daifu_bc.analysis.trees import said
from daifu_bc.errors import Refusal
from daifu_bc.recovery import cells, history, moving
from daifu_bc.recovery.additions import Addition, additions
from daifu_bc.recovery.bodies import flow_of
from daifu_bc.recovery.capture import Capture
from daifu_bc.recovery.closures import cells_for_frame, closure_for
from daifu_bc.recovery.defaults import Defaults, changed_defaults
from daifu_bc.recovery.edits import (
    Edit,
    Operation,
    compile_text,
    edits_of,
    first_lines,
    parse_text,
)
from daifu_bc.recovery.frames import FrameView
from daifu_bc.recovery.grafting import graft_into
from daifu_bc.recovery.history import Step
from daifu_bc.recovery.keys import Key, by_key, key_of, lines_of
from daifu_bc.recovery.likeness import counterpart, ranked, saying
from daifu_bc.recovery.origins import are_of_one_text, origin
from daifu_bc.recovery.remarks import around_body, left_out, outside_changed, unset
from daifu_bc.recovery.swap import functions_with, live_functions, swap
from daifu_bc.recovery.transfer import Transfer, transfer
from daifu_bc.recovery.variables import renamed_around
from daifu_bc.rewrite.barrier import pristine, vaccinate_code

#: By the id of a function.
_Closures = dict[int, tuple[CellType, ...]]


@dataclass
class Result:
    """What a surgery did, or would do.

    Attributes:
        text: what to print.
        going: where the crashed function goes on in its new body, if that changed.
        values: values of its parameters that the running body has not.
        step: what was changed; None if nothing was.
    """

    text: str
    going: Transfer | None = None
    values: dict[str, object] = field(default_factory=dict)
    step: Step | None = None


@dataclass
class _Plan:
    edit: Edit
    swaps: list[tuple[str, list[FunctionType], CodeType, _Closures]] = field(default_factory=list)
    defaults: list[tuple[list[FunctionType], Defaults]] = field(default_factory=list)
    bodies: list[tuple[CodeType, CodeType]] = field(default_factory=list)
    given: list[tuple[CodeType, dict[str, object]]] = field(default_factory=list)
    values: dict[str, object] = field(default_factory=dict)
    going: Transfer | None = None
    added: list[Addition] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def operate(operation: Operation, *, check: bool) -> Result:
    """Carries an operation out, or only says what it would change.

    Raises:
        Refusal: it cannot be done; nothing has been changed.
    """
    if operation.line is not None and operation.flow is not None and parse(operation.flow.code) is None:
        return _graft(operation, operation.flow, operation.line, check=check)
    try:
        edits = list(edits_of(operation))
        plans = [_plan(edit, operation.captured, operation.frames) for edit in edits]
        _say_where(plans, operation.frames)
    except RecursionError:
        raise Refusal(
            "the text cannot be taken: something in its file is nested more deeply than can be compared",
            remedy="Shorten what is nested, as an `elif` chain or a sum of a thousand parts.",
        ) from None
    if not edits:
        return Result("nothing has changed")
    swaps = [change for plan in plans for change in plan.swaps]
    added = [(addition, plan.edit) for plan in plans for addition in plan.added]
    going = next((plan for plan in plans if plan.going is not None), None)
    notes = [note for plan in plans for note in plan.notes]
    if not swaps and going is None and not added:
        if operation.name is not None and edits[0].alone:
            raise Refusal(
                f"{operation.name} was not replaced: no function that can be reached runs it, or its code is the same"
            )
        return Result("\n".join(["nothing has changed in a function", *notes]))
    step = Step(operation.title)
    if not check:
        before = [(function.__code__, code) for _, functions, code, _ in swaps for function in functions]
        for _, functions, code, closures in swaps:
            swap(functions, code, step, closures)
        for plan in plans:
            for functions, given in plan.defaults:
                given.put(functions, step)
        for addition, edit in added:
            addition.put(edit, step)
        for plan in plans:
            plan.edit.applied(step)
            step.codes += plan.bodies
        step.values = {id(code): given for plan in plans for code, given in plan.given}
        history.add(step)
        notes += _follow(before, plans, step.values, operation.frame)
    verb = "would replace" if check else "replaced"
    names = [
        f"{name} ({len(functions)} function{'s' * (len(functions) != 1)})" for name, functions, *_ in swaps
    ]
    lines = [f"{verb} {', '.join(names)}"] if names else []
    lines += [f"{'would add' if check else 'added'} {addition.name}" for addition, _ in added]
    if going is None:
        return Result("\n".join([*lines, *notes]), step=step)
    return Result("\n".join([*lines, *notes]), going.going, going.values, step)


def _say_where(plans: list[_Plan], frames: Sequence[FrameView]) -> None:
    """Lets notes on other files than that of the frame that asks say so."""
    here = next(origin(view.filename) for view in frames if view.held)
    for plan in plans:
        filename = origin(plan.edit.filename)
        if filename != here:
            plan.notes = [f"{os.path.basename(filename)}: {note}" for note in plan.notes]


def _follow(
    before: list[tuple[CodeType, CodeType]],
    plans: list[_Plan],
    values: dict[int, dict[str, object]],
    but: FrameType | None,
) -> list[str]:
    """Lets frames elsewhere go on in the new bodies; a sentence on how many there are."""
    pairs = {id(old): (old, new) for old, new in [*before, *(pair for plan in plans for pair in plan.bodies)]}
    bodies = [moving.Replaced(old, pristine(new), values.get(id(new), {})) for old, new in pairs.values()]
    return moving.follow_sentence(bodies, but)


def _graft(operation: Operation, flow: Flow, line: int, *, check: bool) -> Result:
    """Replaces one statement without source."""
    text = textwrap.dedent(operation.source or "")
    step = None if check else Step(operation.title)
    said, going = graft_into(flow, operation.place, line, text, step)
    if step is not None:
        history.add(step)
    return Result(said, going, {}, step)


def _vaccinated(code: CodeType, edit: Edit) -> CodeType:
    """Vaccinated code of the new text, known to be of that text; what it defines is vaccinated too."""
    built = vaccinate_code(code, analyse=flow_of)
    work = [built]
    while work:
        known = pristine(work.pop())
        editions.register(known, edit.new_source)
        work += [constant for constant in known.co_consts if isinstance(constant, CodeType)]
    return built


def _plan(edit: Edit, captured: Capture | None, frames: Sequence[FrameView]) -> _Plan:
    tree = parse_text(edit.new_source, edit.new_name)
    module = compile_text(edit.new_source, edit)
    editions.register(module, edit.new_source)
    old_tree = parse_text(edit.old_source, edit.filename)
    plan = _Plan(edit)
    stack = [view.frame for view in frames]
    new = {key: code for code, key in ranked(module)}
    live = _live(edit, captured, frames, old_tree)
    changed = [key for key in _changed(edit, old_tree, tree, live, new) if key in new]
    holders = functions_with([code for key in changed for code in live.get(key, [])])
    crashed = None if captured is None else _crashed(captured, live, old_tree)
    nodes = by_key(old_tree), by_key(tree)
    for key in changed:
        built = _vaccinated(new[key], edit)
        code = pristine(built)
        functions = [function for old in live.get(key, []) for function in holders[id(old)]]
        goes_on = captured is not None and key == crashed and _same_file(captured, edit)
        # A function that is yet to be defined gets its defaults then, from the names that are known there.
        needed = goes_on or bool(functions)
        names = renamed_around(key[0], nodes, live, new)
        try:
            given = changed_defaults(nodes[0].get(key), nodes[1].get(key), edit.scope) if needed else None
            closures = {id(function): closure_for(function, code, stack, names) for function in functions}
        except Refusal:
            if key == crashed or not _made_by_one_of(key[0], frames):
                raise
            functions, given, closures = [], None, {}
        if captured is not None and goes_on:
            cells = cells_for_frame(captured, code, functions, stack)
            plan.going = transfer(captured, code, tree, cells)
            plan.notes += plan.going.notes
            plan.values = given.values(captured.code, code) if given is not None else {}
            plan.notes += unset(captured, plan.going, plan.values)
        if functions and given is not None:
            plan.defaults.append((functions, given))
        if functions:
            plan.swaps.append((key[0], functions, built, closures))
            plan.notes += around_body(key[0], nodes[0].get(key), nodes[1].get(key))
            if given is not None:
                plan.given.append((built, given.values(pristine(functions[0].__code__), code)))
        elif key != crashed and "<locals>" in key[0]:
            plan.notes.append(f"{key[0]} is new as soon as its outer function runs again")
    if captured is not None and plan.going is None and _same_file(captured, edit):
        _transfer_unnamed(plan, captured, frames, old_tree, tree, module)
    if edit.old_source:
        plan.added = additions(old_tree, tree, edit.scope)
        body = _running_body(edit, captured, frames)
        # A function that is yet to be defined will have the code that is in the body which defines it.
        awaited = any(key not in live and "<locals>" not in key[0] for key in changed)
        if (
            body is not None
            and (captured is None or body is not captured.frame)
            and not edit.alone
            and (awaited or outside_changed(old_tree, tree))
        ):
            plan.bodies.append((body.f_code, _vaccinated(module, edit)))
        plan.notes += left_out(old_tree, tree, running=_line_of(body, frames), going=plan.going)
    return plan


def _crashed(captured: Capture, live: dict[Key, list[CodeType]], old_tree: ast.Module) -> Key:
    """Which function of the text a frame runs."""
    running = captured.frame.f_code
    found = next((key for key, codes in live.items() if any(code is running for code in codes)), None)
    return key_of(captured.code, old_tree) if found is None else found


def _made_by_one_of(name: str, frames: Sequence[FrameView]) -> bool:
    """Whether one of the frames runs the function in which this one is defined."""
    around, locals_, _ = name.rpartition(".<locals>.")
    return bool(locals_) and any(view.code.co_qualname == around for view in frames)


def _line_of(frame: FrameType | None, frames: Sequence[FrameView]) -> int:
    return next((view.line for view in frames if view.frame is frame), 0)


def _running_body(edit: Edit, captured: Capture | None, frames: Sequence[FrameView]) -> FrameType | None:
    """The frame that runs the body of the module itself, if there is one on the thread's stack."""
    for view in frames:
        if view.code.co_name == "<module>" and view.filename == edit.filename and view.vaccinated:
            return view.frame
    if captured is None or captured.code.co_name != "<module>" or not _same_file(captured, edit):
        return None
    return captured.frame


def _same_file(captured: Capture, edit: Edit) -> bool:
    one_module = captured.frame.f_globals is edit.scope
    return are_of_one_text(captured.code.co_filename, edit.filename, one_module=one_module)


def _transfer_unnamed(
    plan: _Plan,
    captured: Capture,
    frames: Sequence[FrameView],
    old: ast.Module,
    new: ast.Module,
    module: CodeType,
) -> None:
    """The module's own body, a lambda or a generator expression: no function's name leads to their new code."""
    code = captured.code
    if code.co_name == "<module>":
        if cells.is_cell(origin(code.co_filename)) and parse(code) is None:
            plan.notes.append("the last line of the cell, whose value is shown, stays as it was")
        elif not plan.edit.alone and [text_of(node) for node in old.body] != [
            text_of(node) for node in new.body
        ]:
            plan.going = transfer(captured, pristine(_vaccinated(module, plan.edit)), new)
            plan.notes += plan.going.notes
        return
    if not code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<"):
        _transfer_class(plan, captured, old, new, module)
        return
    if not code.co_name.startswith("<"):
        return
    # Where there is no old text, the frames around it run the code that it is in.
    around = [compile_text(old, plan.edit)] if plan.edit.old_source else [view.code for view in frames]
    other = counterpart(code, around, module)
    if other is not None and saying(other) != saying(code):
        built = _vaccinated(other, plan.edit)
        plan.going = transfer(captured, pristine(built), new)
        plan.notes += plan.going.notes
        every = live_functions(captured.frame.f_globals, lambda _: True)
        functions = [function for function in every if pristine(function.__code__) is code]
        if functions:
            stack = [view.frame for view in frames]
            closures = {
                id(function): closure_for(function, pristine(built), stack, {}) for function in functions
            }
            plan.swaps.append((code.co_name, functions, built, closures))


def _transfer_class(
    plan: _Plan, captured: Capture, old: ast.Module, new: ast.Module, module: CodeType
) -> None:
    """The body of a class statement that is being run."""
    codes = {key: code for code, key in ranked(module)}
    code = codes.get(key_of(captured.code, old))
    if code is not None and saying(captured.code) != saying(code):
        plan.going = transfer(captured, pristine(_vaccinated(code, plan.edit)), new)
        plan.notes += plan.going.notes


def _live(
    edit: Edit, captured: Capture | None, frames: Sequence[FrameView], old: ast.Module
) -> dict[Key, list[CodeType]]:
    """The code objects that the module's functions run, by what they are in the text that runs."""
    by_name: dict[str, list[CodeType]] = {}
    files = {origin(edit.filename)}
    active = [view.frame for view in frames if view.vaccinated]
    if captured is not None:
        active.insert(0, captured.frame)
        if captured.frame.f_globals is edit.scope and _same_file(captured, edit):
            files.add(origin(captured.code.co_filename))
    functions = live_functions(edit.scope, lambda filename: origin(filename) in files)
    codes = [function.__code__ for function in functions]
    if edit.named is not None:
        codes.append(edit.named.__code__)
    # Also a function that nothing leads to but the frame that runs it.
    codes += [
        frame.f_code for frame in active if frame.f_globals is edit.scope and frame.f_code.co_name[0] != "<"
    ]
    for code in codes:
        known = by_name.setdefault(code.co_qualname, [])
        if not any(code is other for other in known):
            known.append(code)
    lines = first_lines(old)
    live: dict[Key, list[CodeType]] = {}
    for name, found in by_name.items():
        places = lines.get(name, [])
        # By line where the lines still agree, else in the order of the text.
        firsts = sorted({code.co_firstlineno for code in found})
        for code in found:
            rank = 0
            if len(places) > 1:
                first = code.co_firstlineno
                rank = places.index(first) if first in places else min(firsts.index(first), len(places) - 1)
            live.setdefault((name, rank), []).append(code)
    return live


def _changed(
    edit: Edit, old: ast.Module, new: ast.Module, live: dict[Key, list[CodeType]], codes: dict[Key, CodeType]
) -> list[Key]:
    """The functions whose text differs; without the old text those whose code does."""
    if not edit.old_source:
        return [
            key
            for key, code in codes.items()
            if any(saying(pristine(other)) != saying(code) for other in live.get(key, []))
        ]
    before, after = by_key(old), by_key(new)
    lines = edit.old_source.split("\n"), edit.new_source.split("\n")
    return [
        key
        for key, node in after.items()
        if key in before
        and lines_of(before[key], lines[0]) != lines_of(node, lines[1])
        and said(before[key]) != said(node)
    ]
