"""Running a program with its module code and its project vaccinated, as ``python`` itself would have run it.

The program gets a fresh `__main__` module, its own `sys.argv` and `sys.path[0]`; modules, folders and zip files go
through `runpy` as they do for ``python``. An uncaught exception is reported here, without our frames, through
`sys.excepthook`; `SystemExit` is left to the interpreter, and so is the end by a signal after Ctrl-C.
"""

from __future__ import annotations

import builtins
import importlib.util
import marshal
import os
import pkgutil
import runpy
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from types import CodeType, ModuleType
from typing import Any

from daifu_bc.analysis import filters
from daifu_bc.install import importer, settings
from daifu_bc.install.notice import report_failure
from daifu_bc.install.scope import Scope, ScopeArgument
from daifu_bc.install.uncaught import end_by_interrupt, report
from daifu_bc.install.vaccine import available, begin

# What the interpreter gives `__main__` at start-up on this version is seen from the `__main__` that it made.
_MAIN_NAMES = (
    "__name__",
    "__doc__",
    "__package__",
    "__loader__",
    "__spec__",
    "__annotations__",
    "__builtins__",
)

_launchers: list[ModuleType] = []

#: The variables by which child processes learn that they are to vaccinate, and what.
SWITCH = "DAIFU"
SCOPE = "DAIFU_SCOPE"

_CANNOT_OPEN = 2
_BYTECODE_HEADER = 16


def run(target: str, arguments: Sequence[str], *, as_module: bool, scope: ScopeArgument = "project") -> int:
    """Run a program to its end and return its exit code.

    Args:
        target: the script, bytecode file, folder or zip file; with `as_module` a module's dotted name.
        arguments: the program's own arguments.
        as_module: run `target` as ``python -m`` does.
        scope: what is vaccinated, see `daifu_bc.install.vaccinate.vaccinate`.

    Returns:
        0, or 1 after an uncaught exception (which was reported), or 2 if there is no such file.

    Raises:
        SystemExit: the program left so; the interpreter knows what to do.
        KeyboardInterrupt: it ended the program and was reported; the interpreter ends the process by the signal.
        UsageError: the scope is not known.
    """
    if as_module:
        sys.argv = ["-m", *arguments]
        if not sys.flags.safe_path:
            sys.path[0] = os.getcwd()
    else:
        sys.argv = [target, *arguments]
    if available():
        begin()
        file = _module_file(target) if as_module else target
        settings.read_project(file)
        chosen = Scope.of(scope, file)
        if as_module and chosen.kind in ("function", "packages"):
            # A program is always meant, and a module has a name to be meant by.
            chosen = Scope("packages", packages=(*chosen.packages, target))
        _prepare(chosen)
    if as_module:
        return _supervise(_run_module, target, True)
    return run_file(target, replace_path=not sys.flags.safe_path)


def run_file(target: str, *, replace_path: bool) -> int:
    """Run a script, bytecode file, folder or zip file; `sys.argv` is set and the importer installed already.

    Args:
        target: the file.
        replace_path: the first entry of `sys.path` is no business of the program's and gives way to the program's.

    Returns:
        See `run`.

    Raises:
        SystemExit: see `run`.
        KeyboardInterrupt: see `run`.
    """
    filename = target if os.path.isabs(target) else os.path.join(os.getcwd(), target)
    first = slice(0, 1 if replace_path else 0)
    if pkgutil.get_importer(filename) is not None:
        sys.path[first] = [filename]
        return _supervise(_run_module, "__main__", False)
    sys.path[first] = [] if sys.flags.safe_path else [os.path.dirname(os.path.realpath(filename))]
    try:
        with open(filename, "rb") as file:
            content = file.read()
    except OSError as error:
        reason = f"can't open file {filename!r}: [Errno {error.errno}] {error.strerror}"
        sys.stderr.write(f"{sys.orig_argv[0]}: {reason}\n")
        return _CANNOT_OPEN
    return _supervise(_run_content, filename, content)


def _prepare(scope: Scope) -> None:
    """Install the importer, for this process and for its children."""
    try:
        importer.install(scope)
        os.environ[SWITCH] = "1"
        os.environ[SCOPE] = scope.encode()
    except Exception as error:  # noqa: BLE001 - a failure of ours must not become the program's
        report_failure("prepare the import of the program's modules", error)


def _module_file(name: str) -> str:
    """Return a file of the package that a module to be run lies in, without importing anything."""
    try:
        spec = importlib.util.find_spec(name.partition(".")[0])
    except (ImportError, ValueError, AttributeError):
        return ""
    if spec is None:
        return ""
    return spec.origin or next(iter(spec.submodule_search_locations or ()), "")


def _supervise(program: Callable[..., object], *arguments: object) -> int:
    """Call what runs the program, in a fresh `__main__`, and report what it did not handle."""
    if filters.wants_keyboard_interrupt():
        from daifu_bc.install import ctrl_c  # it brings the engine along

        ctrl_c.take_over()
    launcher = sys.modules["__main__"]
    sys.modules["__main__"] = _fresh_main(vars(launcher))
    # The launcher's module must outlive the program: its functions are still running.
    _launchers.append(launcher)
    try:
        program(*arguments)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - as the interpreter itself does
        uncaught = error
    else:
        return 0
    report(uncaught)
    if isinstance(uncaught, KeyboardInterrupt):
        end_by_interrupt(uncaught)
    return 1


def _fresh_main(template: dict[str, Any]) -> ModuleType:
    """Return a new `__main__` module with the names that the interpreter gave the present one."""
    module = ModuleType("__main__")
    values = {"__name__": "__main__", "__builtins__": builtins, "__annotations__": {}}
    namespace = vars(module)
    namespace.clear()
    namespace.update((name, values.get(name)) for name in _MAIN_NAMES if name in template)
    return module


def _run_module(name: str, alter_arguments: bool) -> None:
    """Run a module, or the `__main__` of a folder or zip file, as the interpreter does; the importer sees to it."""
    if alter_arguments:
        sys.audit("cpython.run_module", name)
    runpy._run_module_as_main(name, alter_arguments)  # type: ignore[attr-defined]


def _run_content(filename: str, content: bytes) -> None:
    """Run what is in a script or a bytecode file."""
    sys.audit("cpython.run_file", filename)
    namespace = vars(sys.modules["__main__"])
    is_bytecode = filename.endswith(".pyc") or content[:2] == importlib.util.MAGIC_NUMBER[:2]
    loader = SourcelessFileLoader if is_bytecode else SourceFileLoader
    namespace["__loader__"] = loader("__main__", filename)
    namespace["__file__"] = filename
    if "__cached__" in vars(_launchers[-1]):
        namespace["__cached__"] = None
    if is_bytecode:
        code = _bytecode(content)
    else:
        code = compile(content, filename, "exec", dont_inherit=True)
    if importer.covers("__main__", filename):
        code = importer.program_code(code, b"" if is_bytecode else content)
    # The content may be large, and the program may run for weeks.
    del content
    exec(code, namespace)


def _bytecode(content: bytes) -> CodeType:
    """Return the code in a bytecode file; messages are the interpreter's."""
    if content[:4] != importlib.util.MAGIC_NUMBER:
        raise RuntimeError("Bad magic number in .pyc file")
    code = marshal.loads(content[_BYTECODE_HEADER:])
    if not isinstance(code, CodeType):
        raise RuntimeError("Bad code object in .pyc file")
    return code
