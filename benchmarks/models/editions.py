"""The functions that a training step runs, each with its plain code and vaccinated in two scopes, to be swapped at once.

The same model, optimiser and batches serve all editions, so that nothing differs but the code. Functions of PyTorch
and of the standard library are among them: the scope `all` means these too.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType

from daifu_bc.install.scope import Scope
from daifu_bc.install.vaccinate import vaccinate_functions

#: `again` is plain code once more, in other code objects.
NAMES = ("plain", "project", "all", "again")


def called(work: Callable[[], object]) -> set[CodeType]:
    """The code of all functions written in Python that run in a call."""
    found: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            found.add(frame.f_code)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


class Editions:
    """The code of the functions that a piece of work runs, in four editions.

    Args:
        work: what is run once to see which functions these are.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        identities = {id(code) for code in called(work)}  # equal code of two functions is still two
        self.functions = [
            function
            for function in gc.get_objects()
            if type(function) is FunctionType and id(function.__code__) in identities
        ]
        plain = [function.__code__ for function in self.functions]
        self.codes = {"plain": plain, "again": [code.replace() for code in plain]}
        for name in ("project", "all"):
            scope = Scope.of("project" if name == "project" else "all", __file__)
            self.use("plain")
            vaccinate_functions(
                function
                for function in self.functions
                if scope.covers(function.__module__, function.__code__.co_filename)
            )
            self.codes[name] = [function.__code__ for function in self.functions]
        self.use("plain")

    def use(self, name: str) -> None:
        """Let the functions run this edition from their next call on."""
        for function, code in zip(self.functions, self.codes[name], strict=True):
            function.__code__ = code

    def vaccinated(self, name: str) -> int:
        """How many functions are vaccinated in this edition."""
        pairs = zip(self.codes["plain"], self.codes[name], strict=True)
        return sum(plain != code for plain, code in pairs)
