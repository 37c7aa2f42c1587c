"""Vaccinating modules as they are imported.

The interpreter's own loaders for Python files and zip files give out their code vaccinated where it is in scope;
whoever found the module, and whoever made the loader, it stays the plain loader that it was. Loaders of others
(subclasses, pytest's rewritten tests, frozen modules) are left alone. The interpreter's cache goes on holding plain
code; the vaccinated code has a cache of its own beside it. What is in a zip file is vaccinated anew each time.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader, SourcelessFileLoader
from importlib.util import cache_from_source
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, TypeVar, cast
from zipimport import zipimporter

from daifu_bc.analysis import sources
from daifu_bc.install import cache
from daifu_bc.install.notice import report_failure
from daifu_bc.install.scope import Scope
from daifu_bc.install.vaccine import begin, vaccinated

_Function = TypeVar("_Function", bound=Callable[..., Any])

# A frame whose code says it comes from this file is left out of tracebacks by the interpreter, together with
# those of importlib, when an import fails.
_IMPORT_MACHINERY = cast("FunctionType", SourceFileLoader.get_code).__code__.co_filename


def _without_trace(function: _Function) -> _Function:
    """Let the interpreter drop the function's frames from tracebacks as it drops those of importlib."""
    plain = cast("FunctionType", function)
    plain.__code__ = plain.__code__.replace(co_filename=_IMPORT_MACHINERY)
    return function


_loader: Final[Any] = SourceFileLoader
_bytecode_loader: Final[Any] = SourcelessFileLoader
_zip_loader: Final[Any] = zipimporter
# That of the one is inherited; that of the other is its own.
_plain_get_code: Callable[[SourceFileLoader, str], CodeType | None] = SourceFileLoader.get_code
_plain_get_bytecode: Callable[[SourcelessFileLoader, str], CodeType | None] = SourcelessFileLoader.get_code
_plain_get_zipped: Callable[[zipimporter, str], CodeType] = zipimporter.get_code


@_without_trace
def _get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
    """Stands in for `SourceFileLoader.get_code`: gives out code that is in scope vaccinated, from our cache if it is there.

    Args:
        loader: the module's.
        fullname: the module's dotted name.

    Raises:
        ImportError: the loader is for another module.
        SyntaxError: the file is no Python.
    """
    if type(loader) is not SourceFileLoader or not covers(loader.name, loader.path):
        return _plain_get_code(loader, fullname)
    path = loader.get_filename(fullname)
    cached, state, entry = _kept(path, path)
    if entry is not None and (not _is_hashed(path) or sources.unpack(entry.packed_source) == _content(path)):
        sources.remember_packed(path, entry.packed_source)
        return entry.code
    plain = _plain_get_code(loader, fullname)
    if plain is None:
        return None
    return _keep(plain, path, cached, state, _content(path))


@_without_trace
def _get_bytecode(loader: SourcelessFileLoader, fullname: str) -> CodeType | None:
    """Stands in for `SourcelessFileLoader.get_code` in the same way.

    Args:
        loader: the module's.
        fullname: the module's dotted name.

    Raises:
        ImportError: the loader is for another module, or the file is no bytecode of this interpreter.
    """
    plain = _plain_get_bytecode(loader, fullname)
    if plain is None or type(loader) is not SourcelessFileLoader or not covers(loader.name, loader.path):
        return plain
    path = loader.get_filename(fullname)
    # The code says the name of the source, wherever that was; only the file's own name tells it from others.
    cached, state, entry = _kept(path, plain.co_filename)
    if entry is not None and not entry.packed_source:
        return entry.code
    return _keep(plain, path, cached, state, b"")


@_without_trace
def _get_zipped(loader: zipimporter, fullname: str) -> CodeType:
    """Stands in for `zipimporter.get_code` in the same way.

    Args:
        loader: the zip file's.
        fullname: the module's dotted name.

    Raises:
        ImportError: the module is not there.
        SyntaxError: the file is no Python.
    """
    plain = _plain_get_zipped(loader, fullname)
    if type(loader) is not zipimporter:
        return plain
    path = loader.get_filename(fullname)
    if not covers(fullname, path):
        return plain
    begin()
    if path == plain.co_filename:
        sources.remember(path, loader.get_data(path))
    return vaccinated(plain, path)


def _kept(path: str, filename: str) -> tuple[str | None, cache.State | None, cache.Entry | None]:
    """Return where a file's vaccinated code is kept, the state of the file, and what is kept for that state.

    Args:
        path: the file.
        filename: what its code says that it is from.
    """
    begin()
    cached, state = cache.path_of(path), cache.state_of(path)
    entry = None if cached is None or state is None else cache.load(cached, state, filename)
    return cached, state, entry


def _is_hashed(path: str) -> bool:
    """Tell whether the interpreter's bytecode file of a source goes by what is in the source (PEP 552), not by its time."""
    try:
        descriptor = os.open(cache_from_source(path), os.O_RDONLY)
    except (OSError, NotImplementedError):
        return False
    try:
        return os.read(descriptor, 8)[4:5] in (b"\x01", b"\x03")
    finally:
        os.close(descriptor)


def _content(path: str) -> bytes:
    """Return what is in a file; nothing if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _keep(
    plain: CodeType, path: str, cached: str | None, state: cache.State | None, source: bytes
) -> CodeType:
    """Vaccinate a module's code, remember its source and put both into the cache."""
    if source:
        sources.remember(path, source)
    code = vaccinated(plain, path)
    # What changed while it was read must not be kept under the older state; what failed is tried again.
    settled = state is not None and cache.settled(state) and cache.state_of(path) == state
    if code is not plain and state is not None and cached is not None and settled:
        mode = os.stat(path).st_mode | 0o200
        cache.store(cached, state, cache.Entry(code, sources.pack(source)), mode)
    return code


class WatchingFinder:
    """Asks the finders behind it in `sys.meta_path`, and lets somebody know when an awaited module is there."""

    @_without_trace
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the other finders' answer for an awaited module, and leave any other module to them.

        Args:
            fullname: the module's dotted name.
            path: the package's search path, for a module in a package.
            target: the module that is being reloaded.
        """
        if fullname not in _awaited:
            return None
        finders = sys.meta_path
        for finder in finders[finders.index(self) + 1 :]:
            find_spec = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find_spec is None else find_spec(fullname, path, target)
            if spec is not None:
                return _tell_when_loaded(spec)
        return None

    @_without_trace
    def invalidate_caches(self) -> None:
        """Do nothing: the finders behind are told themselves."""


_finder: Final = WatchingFinder()
#: A module is vaccinated if one of these covers it.
_scopes: Final[list[Scope]] = []
_read_code: Callable[..., Any] | None = None
#: Modules that somebody waits for, and the function that is to be called with each: `package.module:function`.
_awaited: Final[dict[str, str]] = {}


def install(scope: Scope) -> None:
    """Vaccinate from now on what is loaded and covered by a scope, beside what was asked for before.

    Args:
        scope: the code that is meant.
    """
    if scope not in _scopes:
        _scopes.append(scope)
    if _loader.get_code is _plain_get_code:
        _loader.get_code = _get_code
    if _bytecode_loader.get_code is _plain_get_bytecode:
        _bytecode_loader.get_code = _get_bytecode
    if _zip_loader.get_code is _plain_get_zipped:
        _zip_loader.get_code = _get_zipped
    if _read_code is None:
        _hook_runpy()


def when_imported(name: str, function: str) -> None:
    """Call a function with a module right after it is imported, before anybody else has it; at once if it is there.

    Args:
        name: the module's dotted name.
        function: what is called, as `package.module:function`; imported no sooner than it is needed.
    """
    module = sys.modules.get(name)
    if module is not None:
        _call(function, module)
        return
    _awaited[name] = function
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def _tell_when_loaded(spec: ModuleSpec) -> ModuleSpec:
    """Let a module's loader say when it is done to who waits for it."""
    loader: Any = spec.loader
    execute = getattr(loader, "exec_module", None)
    if execute is None:
        return spec

    @_without_trace
    def exec_module(module: ModuleType) -> None:
        execute(module)
        function = _awaited.pop(spec.name, None)
        if function is not None:
            _call(function, module)

    try:
        loader.exec_module = exec_module
    except AttributeError as error:
        report_failure(f"wait for the import of {spec.name}", error)
    return spec


def _call(function: str, module: ModuleType) -> None:
    home, _, name = function.partition(":")
    try:
        getattr(importlib.import_module(home), name)(module)
    except Exception as error:  # noqa: BLE001 - a failure of ours must not become the program's
        report_failure(f"prepare for {module.__name__}", error)


def leave(scope: Scope) -> None:
    """Import plainly again what only this scope covers.

    Args:
        scope: one that was installed.
    """
    if scope in _scopes:
        _scopes.remove(scope)
    if not _scopes:
        uninstall()


def uninstall() -> None:
    """Import everything plainly again; what is loaded stays as it is."""
    global _read_code
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    _awaited.clear()
    _scopes.clear()
    if _loader.get_code is _get_code:
        del _loader.get_code
    if _bytecode_loader.get_code is _get_bytecode:
        _bytecode_loader.get_code = _plain_get_bytecode
    if _zip_loader.get_code is _get_zipped:
        _zip_loader.get_code = _plain_get_zipped
    if _read_code is not None:
        vars(runpy)["_get_code_from_file"] = _read_code
        _read_code = None


def covers(module: str, filename: object) -> bool:
    """Tell whether a module that is imported now would be vaccinated.

    Args:
        module: the module's dotted name.
        filename: the file that it comes from.
    """
    # A loader that a program has made may have been given anything.
    return isinstance(filename, str) and any(scope.covers(module, filename) for scope in _scopes)


def _hook_runpy() -> None:
    """Vaccinate the files that `runpy.run_path` reads: the main module of a process started by multiprocessing.

    It asks no finder for a plain file, so there is no other place where its code could be had.
    """
    global _read_code
    read = vars(runpy).get("_get_code_from_file")
    if read is None:
        return
    _read_code = read

    # Up to 3.11 it takes the run's name as well, and returns the code with the file's name.
    def read_vaccinated(*arguments: Any, **keywords: Any) -> Any:
        answer = read(*arguments, **keywords)
        code = answer[0] if isinstance(answer, tuple) else answer
        if not isinstance(code, CodeType) or not covers("__main__", code.co_filename):
            return answer
        from_source = code.co_filename in arguments
        code = program_code(code, _content(code.co_filename) if from_source else b"")
        return (code, *answer[1:]) if isinstance(answer, tuple) else code

    vars(runpy)["_get_code_from_file"] = read_vaccinated


def program_code(plain: CodeType, source: bytes) -> CodeType:
    """Return the vaccinated code of a program, from our cache if it is there.

    Args:
        plain: the code as it was just compiled from its file, or read from a bytecode file.
        source: what it was compiled from; empty for bytecode, which is not cached.
    """
    path = plain.co_filename
    begin()
    if not source:
        return vaccinated(plain, path)
    cached, state, entry = _kept(path, path)
    if entry is not None and sources.unpack(entry.packed_source) == source:
        sources.remember(path, source)
        return entry.code
    return _keep(plain, path, cached, state, source)
