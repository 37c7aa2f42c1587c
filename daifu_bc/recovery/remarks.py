"""What there is to say about an edit: what of it is not taken, or not by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from daifu_bc.analysis.counterparts import text_of
from daifu_bc.analysis.trees import said
from daifu_bc.recovery.capture import Capture
from daifu_bc.recovery.edits import DEFINITIONS, definitions
from daifu_bc.recovery.restarts import statements_of
from daifu_bc.recovery.transfer import Transfer
from daifu_bc.recovery.variables import without_value

Function = ast.FunctionDef | ast.AsyncFunctionDef


def unset(captured: Capture, going: Transfer, values: dict[str, object]) -> list[str]:
    """Which variables have to be given a value before the new body goes on.

    Args:
        captured: the frame.
        going: where it goes on.
        values: new parameters, with their values.
    """
    names = without_value(captured, going.flow, going.place, [*values, *going.renamed.values()])
    if not names:
        return []
    return [
        f"no value yet for {', '.join(names)}, which the running code has not: say `action {names[0]} = ...`"
    ]


def around_body(name: str, old: Function | None, new: Function | None) -> list[str]:
    """What has changed around the body of a definition, and belongs to the function and not to its code."""
    if old is None or new is None:
        return []
    notes = []
    if list(map(said, old.decorator_list)) != list(map(said, new.decorator_list)):
        notes.append(f"the decorators of {name} have changed: they are not applied again; do it by an action")
    if _annotations(old) != _annotations(new):
        notes.append(
            f"the annotations of {name} have changed: those that it has stay; change them by an action"
        )
    return notes


def _annotations(node: Function) -> dict[str, object]:
    arguments = [one for one in ast.walk(node.args) if isinstance(one, ast.arg)]
    return {one.arg: said(one.annotation) for one in arguments if one.annotation} | {
        "return": said(node.returns)
    }


def left_out(old: ast.Module, new: ast.Module, *, running: int, going: Transfer | None = None) -> list[str]:
    """What has changed and is not taken: statements outside of functions, functions that are gone.

    Args:
        old: the text that runs.
        new: the new text.
        running: the line at which the module's own body is being run, and goes on in the new text; 0 if it is not.
        going: where the selected frame goes on, if the new text has a place for it.
    """
    notes = []
    present = dict(definitions(new))
    gone = [path for path in dict(definitions(old)) if path not in present]
    if gone:
        notes.append(f"gone from the text, but left as it was: {', '.join(gone)}")
    known = {text_of(node) for node in _outside(old)}
    told = () if going is None else going.passed
    here = _line_in(new, old, running) or _line_of(going)
    lines = [
        str(node.lineno)
        for node in _outside(new)
        if text_of(node) not in known
        and node.lineno not in told
        and (not running or (node.end_lineno or node.lineno) < here)
    ]
    if lines:
        notes.append(
            f"line {', '.join(lines)} has changed outside of functions: not taken; say it as an action"
        )
    return notes


def _line_in(new: ast.Module, old: ast.Module, line: int) -> int:
    """Where the statement of a module that contains a line is in the new text; 0 if it is not there."""
    around = [node for node in old.body if node.lineno <= line <= (node.end_lineno or node.lineno)]
    texts = [text_of(node) for node in around]
    return next((node.lineno for node in new.body if text_of(node) in texts), 0)


def _line_of(going: Transfer | None) -> int:
    """The line at which a module's own body goes on; 0 if it is another body."""
    if going is None or going.flow.code.co_name != "<module>":
        return 0
    statement = statements_of(going.flow).of[going.place]
    return 0 if statement is None or statement.node is None else statement.node.lineno


def outside_changed(old: ast.Module, new: ast.Module) -> bool:
    """Whether anything but definitions and imports has changed in a module's own body."""
    return [text_of(node) for node in _outside(old)] != [text_of(node) for node in _outside(new)]


def _outside(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements of a module and its classes that are neither definitions nor imports."""
    work = list(tree.body)
    while work:
        node = work.pop(0)
        if isinstance(node, ast.ClassDef):
            work += node.body
        elif not isinstance(node, (ast.Import, ast.ImportFrom, *DEFINITIONS)):
            yield node
