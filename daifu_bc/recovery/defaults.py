"""Default values of parameters that an edit has changed: they belong to the function and not to its code."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from daifu_bc.analysis.trees import said
from daifu_bc.errors import Refusal
from daifu_bc.recovery.history import Step

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Defaults:
    """The new default values of a function.

    Attributes:
        positional: those of the last positional parameters.
        keyword: those of keyword-only parameters, by name.
    """

    positional: tuple[Any, ...]
    keyword: dict[str, Any]

    def put(self, functions: Iterable[FunctionType], step: Step) -> None:
        """Gives them to functions; the step remembers the old ones."""
        for function in functions:
            step.give_defaults(function, self.positional or None, dict(self.keyword) or None)

    def values(self, old: CodeType, new: CodeType) -> dict[str, object]:
        """The values of the parameters that the new code has and the old one had not."""
        names = new.co_varnames[: new.co_argcount]
        known = (
            dict(zip(names[len(names) - len(self.positional) :], self.positional, strict=True)) | self.keyword
        )
        return {name: value for name, value in known.items() if name not in old.co_varnames}


def changed_defaults(old: Function | None, new: Function | None, scope: dict[str, Any]) -> Defaults | None:
    """The default values of an edited definition, evaluated in the module's globals; None if they are as they were.

    Raises:
        Refusal: they cannot be evaluated there.
    """
    if new is None or (old is not None and _said(old) == _said(new)):
        return None
    if old is None and not _said(new)[0] and not any(_said(new)[1]):
        return None
    arguments = new.args
    try:
        positional = tuple(_evaluate(node, scope) for node in arguments.defaults)
        keyword = {
            argument.arg: _evaluate(node, scope)
            for argument, node in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if node is not None
        }
    except Exception as error:  # noqa: BLE001 - the program's own expressions may raise what they like
        raise Refusal(
            f"the default values of {new.name} cannot be evaluated among the module's globals",
            why=f"{type(error).__name__}: {error}",
            remedy="Leave the defaults as they were, or write values that need no other names.",
        ) from None
    return Defaults(positional, keyword)


def _said(node: Function) -> tuple[list[object], list[object], list[str]]:
    arguments = node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return (
        [said(one) for one in arguments.defaults],
        [said(one) for one in arguments.kw_defaults],
        names,
    )


def _evaluate(node: ast.expr, scope: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "<default value>", "eval", dont_inherit=True), scope)
