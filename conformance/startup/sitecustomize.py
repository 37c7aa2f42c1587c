# ruff: noqa: INP001 - Python looks for a file of this name, not for a package

"""What each process of a compared run does at start-up, in front of everything that is compared.

With DAIFU=1 modules are vaccinated as they are imported, and what was imported before is vaccinated in place.
With DAIFU=0 the same modules are loaded and nothing is vaccinated: both runs start with the same `sys.modules`.
Nobody answers a hold, not even at a terminal that a test makes, so that each exception goes its way. With
CONFORMANCE_HOLD=1 each is held before, and then let go.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import SourceFileLoader
from types import CodeType

import daifu_bc  # noqa: F401 - what a vaccinated process has loaded, a plain one has as well
from daifu_bc.install import child
from daifu_bc.install.notice import report_failure
from daifu_bc.install.scope import Scope
from daifu_bc.install.walk import loaded_functions
from daifu_bc.recovery import policy
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.rewrite import barrier


def _identity(code: CodeType) -> tuple[object, ...]:
    plain = barrier.pristine(code)
    return (plain.co_qualname, plain.co_firstlineno, plain.co_linetable, plain.co_code)


def _collect(code: CodeType, twins: dict[object, CodeType]) -> None:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if barrier.is_vaccinated(constant):
                twins[_identity(constant)] = constant
            _collect(constant, twins)


def _vaccinate_loaded(scope: Scope) -> None:
    """Vaccinate the functions of the loaded modules, with code from the cache: each process does this."""
    twins: dict[object, CodeType] = {}
    for name, module in list(sys.modules.items()):
        loader = getattr(getattr(module, "__spec__", None), "loader", None)
        if type(loader) is SourceFileLoader and scope.covers(name, loader.path):
            code = loader.get_code(loader.name)
            if code is not None:
                _collect(code, twins)
    for function in loaded_functions(scope):
        twin = twins.get(_identity(function.__code__))
        if twin is not None:
            function.__code__ = twin


def _let_go(hold: HoldLike) -> None:
    hold.let_go()


policy._factories.clear()
if os.environ.get("CONFORMANCE_HOLD") == "1":
    policy.set_playbook(_let_go)
if os.environ.get("DAIFU") == "1":
    child.start()
    try:
        _vaccinate_loaded(Scope.of("all", ""))
    except Exception as error:
        report_failure("vaccinate what is loaded", error)
