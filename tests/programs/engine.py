"""The one place where the test programs meet the engine."""

from __future__ import annotations

import ast
import contextlib
import importlib
import re
import textwrap
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

PACKAGE = "daifu_bc"


def is_there() -> bool:
    """Tell whether the engine can be imported."""
    try:
        importlib.import_module(f"{PACKAGE}.rewrite.barrier")
        importlib.import_module(f"{PACKAGE}.recovery.policy")
        importlib.import_module(f"{PACKAGE}.recovery.intercept")
    except ImportError:
        return False
    return True


def vaccinated(code: CodeType) -> CodeType:
    """Vaccinate a module's code with all that it contains."""
    barrier = importlib.import_module(f"{PACKAGE}.rewrite.barrier")
    sources = importlib.import_module(f"{PACKAGE}.analysis.sources")
    # The importer does this for a module; here it is the harness that compiles.
    with contextlib.suppress(OSError), open(code.co_filename, "rb") as file:
        sources.remember(code.co_filename, file.read())
    result = barrier.vaccinate_code(code)
    assert isinstance(result, CodeType)
    return result


@contextlib.contextmanager
def responding(responder: Callable[[Any], None]) -> Iterator[None]:
    """Let the responder answer the holds of this process."""
    policy: Any = importlib.import_module(f"{PACKAGE}.recovery.policy")
    carriers: Any = importlib.import_module(f"{PACKAGE}.recovery.carriers")
    # What runs the programs catches what leaves them, as the interpreter does at the very end.
    carriers.set_carrier("tests.programs.run", carriers.EVERY, carriers.OUTERMOST)
    policy.set_playbook(responder)
    try:
        yield
    finally:
        policy.set_playbook(None)
        carriers.set_carrier("tests.programs.run", carriers.EVERY, None)


class Pauses:
    """Has the running thread paused by another one at chosen moments.

    Args:
        moments: their numbers.
    """

    def __init__(self, moments: list[int]) -> None:
        self._moments = frozenset(moments)
        self.asked: list[Any] = []

    def moment(self, number: int) -> None:
        """One at a time is asked for: the thread may not yet have come to a statement since the one before."""
        if number in self._moments and not (self.asked and not self.asked[-1].held.is_set()):
            here, package = threading.current_thread(), importlib.import_module(PACKAGE)
            other = threading.Thread(target=lambda: self.asked.append(package.pause(here)))
            other.start()
            other.join()

    def cancel(self) -> None:
        """The program has ended."""
        for pause in self.asked:
            pause.cancel()


@dataclass(frozen=True)
class Edit:
    """What the word ``surgery`` installs.

    Attributes:
        path: a file with the edited text.
        text: that text.
        whole_file: take all that changed in the file; else the selected frame's function alone, from its text.
    """

    path: str
    text: str
    whole_file: bool = True


def answer(hold: Any, word: str, edit: Edit) -> None:
    """Say one word to a hold."""
    verb, _, rest = word.partition(" ")
    if verb == "pass":
        hold.retry()
    elif verb == "skip":
        hold.skip(rest)
    elif verb == "frame":
        hold.select(rest)
    elif verb == "raise":
        hold.let_go(rest or None)
    elif verb == "return":
        hold.give(rest or None)
    elif verb == "goto":
        hold.goto(int(rest))
    elif verb == "action":
        result = hold.act(rest)
        if result.error is not None:
            raise RuntimeError(f"action raised {result.error!r}")
    elif verb == "surgery":
        if edit.whole_file:
            hold.surgery(file=edit.path)
        else:
            name = re.sub(r"(\.<locals>)?\.<\w+>$", "", hold.selected.name)  # a lambda's function
            hold.surgery(name=name, source=_definition(edit.text, name))
    elif verb == "refused":
        try:
            answer(hold, rest, edit)
        except Exception as refusal:
            if getattr(refusal, "slug", None) is None:
                raise
        else:
            raise AssertionError(f"{rest} was not refused")
    else:
        raise ValueError(f"no such word: {word}")


def _definition(text: str, qualified_name: str) -> str:
    """The text of one definition; its name is that of a code object."""
    tree: ast.AST = ast.parse(text)
    for name in qualified_name.split("."):
        if name == "<locals>":
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == name:
                tree = node
                break
        else:
            raise ValueError(f"there is no {qualified_name} in the edited text")
    segment = ast.get_source_segment(text, tree, padded=True)
    assert segment is not None
    return textwrap.dedent(segment) + "\n"
