"""The decorator: the same object comes back, and the code of its functions is vaccinated."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import TypeVar, overload

from daifu_bc.analysis import sources
from daifu_bc.install import importer, settings
from daifu_bc.install.notice import report_failure, say_once
from daifu_bc.install.scope import Scope, ScopeArgument, is_library
from daifu_bc.install.vaccine import available, begin, vaccinated
from daifu_bc.install.walk import functions, loaded_functions

_Target = TypeVar("_Target")


@overload
def vaccinate(target: _Target, /) -> _Target: ...


@overload
def vaccinate(*, scope: ScopeArgument = "project") -> Callable[[_Target], _Target]: ...


def vaccinate(
    target: _Target | None = None, /, *, scope: ScopeArgument = "project"
) -> _Target | Callable[[_Target], _Target]:
    """Vaccinate a function or all functions of a class, and by default the project around it.

    Functions of every kind, methods, static and class methods, properties, classes and what wraps these are
    taken. The same object is given back with its functions' code replaced: nothing else about it changes. If
    vaccinating fails, the object is untouched and a message says so on standard error.

    Args:
        target: what is decorated; left out where arguments are given: ``@vaccinate(scope="function")``.
        scope: what else is vaccinated: nothing (``"function"``), the functions of the modules under the
            project's root (``"project"``), of named packages (``["mypackage"]``) or of everything (``"all"``).
            Modules that are loaded follow when the decorated function is first called, others on import.

    Raises:
        UsageError: the scope is none of these.
    """
    if target is not None:
        _vaccinate(target, scope)
        return target

    def decorate(target: _Target) -> _Target:
        _vaccinate(target, scope)
        return target

    return decorate


def _vaccinate(target: object, argument: ScopeArgument) -> None:
    if not available():
        return
    begin()
    found = decorated_functions(target)
    if not found:
        say_once(
            f"nothing in {type(target).__qualname__}",
            f"found no Python function in the decorated object of type {type(target).__qualname__}, so nothing "
            "there is vaccinated. Put @daifu_bc.vaccinate directly above the `def` or `class`, below other decorators.",
        )
        return
    settings.read_project(found[0].__code__.co_filename)
    scope = Scope.of(argument, found[0].__code__.co_filename)
    try:
        if scope.kind != "function":
            importer.install(scope)
        spread = _Spread(scope, found)
    except Exception as error:  # noqa: BLE001 - a failure of ours must not become the program's
        report_failure(f"prepare {scope!r}", error)
        return
    vaccinate_functions(found)
    if scope.kind != "function":
        spread.arm()


def decorated_functions(target: object) -> list[FunctionType]:
    """Return the functions that a decorated object consists of.

    A wrapper that a library put around the user's function is not the user's code, so it is left out; if a
    library's function itself was decorated, that is what was meant.

    Args:
        target: what was decorated.
    """
    found = list(functions(iter([target])))
    own = [function for function in found if not is_library(os.path.abspath(function.__code__.co_filename))]
    return own or found


def vaccinate_functions(found: Iterable[FunctionType]) -> int:
    """Vaccinate functions where they are, and return how many were changed.

    Args:
        found: the functions; those that are vaccinated already stay as they are.
    """
    changed = 0
    for function in found:
        plain = function.__code__
        code = vaccinated(plain)
        if code is not plain:
            sources.remember_file(plain.co_filename, plain)
            function.__code__ = code
            changed += 1
    return changed


def put_back(found: Iterable[FunctionType]) -> None:
    """Give functions their plain code again.

    Args:
        found: the functions; what is no vaccinated one stays as it is.
    """
    from daifu_bc.recovery import bodies

    for function in found:
        code = function.__code__
        if bodies.continuation_of(code) is None and bodies.has_barriers(code):
            function.__code__ = bodies.body_of(code)


def vaccinate_loaded(scope: Scope) -> int:
    """Vaccinate all functions that exist now and are covered by a scope, and return how many were changed.

    Args:
        scope: the code that is meant.
    """
    try:
        return vaccinate_functions(loaded_functions(scope))
    except Exception as error:  # noqa: BLE001 - a failure of ours must not become the program's
        report_failure(f"vaccinate the loaded modules of {scope!r}", error)
        return 0


#: Makes code that calls back, once, before its body: (vaccinated code, what to call) -> code, or None.
FirstCall = Callable[[CodeType, Callable[..., None]], CodeType]


def _with_first_call(code: CodeType, callback: Callable[..., None]) -> CodeType:
    # Imported with the first function that is watched, as the rewriting layer with the first that is vaccinated.
    from daifu_bc.recovery import bodies

    return bodies.with_first_call(code, callback)


#: How the first call of a decorated function is noticed. Without it the loaded modules follow at decoration.
first_call: FirstCall | None = _with_first_call


class _Spread:
    """Vaccinates the loaded modules of a scope when one of the decorated functions is first called.

    It keeps neither the functions nor the code that waits: it is itself kept until the first call, which may
    never come.

    Args:
        scope: the code that is meant.
        found: the decorated functions.
    """

    def __init__(self, scope: Scope, found: list[FunctionType]) -> None:
        self.scope = scope
        self.found = [weakref.ref(function) for function in found]
        self.armed: list[tuple[weakref.ref[FunctionType], weakref.ref[CodeType], CodeType]] = []
        self.gone = False

    def arm(self) -> None:
        """Wait for the first call."""
        if first_call is None:
            self.go()
            return
        for reference in self.found:
            function = reference()
            if function is None:
                continue
            code = function.__code__
            try:
                waiting = first_call(code, self.go)
            except Exception as error:  # noqa: BLE001 - a failure of ours must not become the program's
                report_failure(f"watch for the first call of {code.co_qualname}", error)
                self.go()
                return
            # Told of before it can be called: another thread may have the function already.
            self.armed.append((reference, weakref.ref(waiting), code))
            function.__code__ = waiting

    def go(self, compiled: CodeType | None = None) -> None:
        """Take the watch off the decorated functions and vaccinate what is loaded; do so once.

        Args:
            compiled: this one stays as it is, since a compiler keeps what it makes of it under its identity.
        """
        armed, self.armed = self.armed, []
        for reference, waiting, code in armed:
            function, watched = reference(), waiting()
            # A surgery or another tool may have replaced the code meanwhile.
            if function is not None and function.__code__ is watched and watched is not compiled:
                function.__code__ = code
        if not self.gone:
            self.gone = True
            vaccinate_loaded(self.scope)
