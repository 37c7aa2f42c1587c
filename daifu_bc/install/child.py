"""What a Python process does at start-up when DAIFU=1 is in its environment; the file daifu_bc.pth imports it.

Covered: modules in scope, as they are imported; ``python -m module``; the main module that multiprocessing gives
to processes started by spawn and forkserver; ``python script.py``. Not covered, because the interpreter compiles
such code out of anyone's reach: ``python -c``, a program on standard input, code run by `exec`; nor is anything
where start-up files are not read (``python -S``), nor the script itself with ``-i`` or ``-x`` (its imports are).

A script is got hold of like this: after start-up the interpreter asks `sys.path_hooks` whether the script's
path is a folder or zip file to take `__main__` from. For this one path, once, we answer that it is, and the
`__main__` that we give runs the script as `daifu_bc.install.launch` does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import FileFinder, ModuleSpec
from pkgutil import get_importer
from types import CodeType, ModuleType
from typing import Any, cast

from daifu_bc.install import importer, launch
from daifu_bc.install.notice import report_failure
from daifu_bc.install.scope import Scope
from daifu_bc.install.vaccine import available

# Code that the interpreter runs in our stead of the script; it only calls us back.
_CALL_BACK = f"import {__name__}, sys\nsys.exit({__name__}.run_program())\n"


class _ScriptLoader:
    """Gives the code of `__main__` that runs the script; of a loader's methods `runpy` calls no other."""

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the import protocol
        """Return code that only calls us back.

        Args:
            fullname: the module's name.
        """
        return compile(_CALL_BACK, __file__, "exec", dont_inherit=True)


class _ScriptFinder:
    """Stands in the interpreter's cache of path entries for the script."""

    def find_spec(self, fullname: str, _target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != "__main__":
            return None
        return ModuleSpec("__main__", cast("Any", _ScriptLoader()))


class ScriptHook:
    """A path hook that takes one script for a folder that holds `__main__`, once.

    Args:
        filename: the script's path as the interpreter will give it.
    """

    def __init__(self, filename: str) -> None:
        self.filename = filename

    def __call__(self, path: str) -> _ScriptFinder | FileFinder:
        """Answer what the interpreter asks a path hook.

        Another interpreter of this process is given the main one's first path, which was the script's when that
        started (`init_interp_main` in Python/pylifecycle.c); there it gives way to the folder at the first import.

        Raises:
            ImportError: another path is meant.
        """
        if path != self.filename:
            raise ImportError(path)
        sys.path_hooks.remove(self)
        if sys.path[:1] == [path]:
            sys.path[0] = os.path.dirname(os.path.realpath(path))
            finder = get_importer(sys.path[0])
            if not isinstance(finder, FileFinder):
                raise ImportError(path)
            return finder
        return _ScriptFinder()


def run_program() -> int:
    """Run the script that the interpreter was started for, and return its exit code."""
    filename = sys.path[0]
    sys.path_importer_cache.pop(filename, None)
    return launch.run_file(filename, replace_path=True)


def _script(arguments: Sequence[str]) -> str | None:
    """Return the path of the script that this interpreter was started for, or None if it is none we can take over.

    Args:
        arguments: the interpreter's whole command line.
    """
    program = sys.argv[0] if sys.argv else ""
    if program in ("", "-", "-c", "-m") or sys.flags.inspect or sys.flags.interactive:
        return None
    filename = os.path.join(os.getcwd(), program)
    if not os.path.isfile(filename):
        return None
    options = arguments[1 : len(arguments) - len(sys.argv)]
    clusters = [option for option in options if option[:1] == "-" and option[1:2] not in ("-", "W", "X")]
    return None if any("x" in cluster for cluster in clusters) else filename


def start() -> None:
    """Install the importer and see to it that the program's main module is vaccinated, if DAIFU asks for it."""
    if os.environ.get(launch.SWITCH) != "1" or not available():
        return
    try:
        filename = _script(sys.orig_argv)
        scope = Scope.decode(os.environ.get(launch.SCOPE, ""), filename or "")
        importer.install(scope)
        if filename is None or any(isinstance(hook, ScriptHook) for hook in sys.path_hooks):
            return
        if scope.covers("__main__", filename):
            sys.path_hooks.append(ScriptHook(filename))
    except Exception as error:  # noqa: BLE001 - a failure of ours must not become the program's
        report_failure("prepare this process", error)


start()
