"""The program's source files as they are on disk now."""

from __future__ import annotations

import importlib.util
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from daifu_bc.analysis import sources
from daifu_bc.errors import Refusal
from daifu_bc.recovery.lookups import names_in_module


def content(path: str) -> bytes:
    """What is in a file.

    Raises:
        Refusal: it cannot be read.
    """
    try:
        # A named pipe would be waited for, maybe for ever.
        with open(path, "rb", opener=_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Refusal(f"{path} cannot be read", why="it is no regular file")
            return file.read()
    except (OSError, ValueError) as error:
        raise Refusal(f"{path} cannot be read", why=str(error)) from None


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def read(path: str) -> str:
    """The text of a file.

    Raises:
        Refusal: it cannot be read or decoded.
    """
    try:
        return importlib.util.decode_source(content(path))
    except (SyntaxError, UnicodeDecodeError) as error:
        raise Refusal(f"{path} cannot be decoded", why=str(error)) from None


def of_module(module: ModuleType) -> str:
    """The source file of a module, as its functions name it.

    Raises:
        Refusal: it has none.
    """
    name = getattr(module, "__file__", None)
    if isinstance(name, str) and name.endswith(".py"):
        return name
    raise Refusal(f"the module {module.__name__} has no source file")


def vaccinated(others: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The files of vaccinated modules that are still there, with the modules' globals.

    Args:
        others: files that are meant as well.
    """
    wanted = {*sources.filenames(), *others}
    for module in list(sys.modules.values()):
        names = names_in_module(module)
        name = names.get("__file__")
        if type(name) is str and name in wanted and os.path.exists(name):
            wanted.discard(name)
            yield name, names
