"""Holds a crashed Python program at the crashed statement, lets it be repaired, and lets it go on from there."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

if "pydevd" in sys.modules:
    # A debugger watches already: it is to leave us alone, from the first of our own exceptions on.
    import_module("daifu_bc.integrations.pydevd.hooks").install()

from daifu_bc import frontends
from daifu_bc.errors import DaifuError, Refusal
from daifu_bc.install import notice, vaccine
from daifu_bc.recovery import debuggers, notification, pause_signal, policy
from daifu_bc.recovery.last_will import install as stand_before_sigterm
from daifu_bc.recovery.last_will import last_will

if TYPE_CHECKING:
    from daifu_bc.frontends.rule_maker import on
    from daifu_bc.install.settings import configure
    from daifu_bc.install.vaccinate import vaccinate
    from daifu_bc.recovery.pause import pause
    from daifu_bc.recovery.surgeries import patch, surgery, undo

__version__ = "0.1.0"
__all__ = [
    "DaifuError",
    "Refusal",
    "__version__",
    "configure",
    "last_will",
    "on",
    "patch",
    "pause",
    "surgery",
    "undo",
    "vaccinate",
]

# The rest is imported when it is first asked for: children and workers import us at their start, and most of them
# never hold anything. The names with an underscore are what the cold code of vaccinated functions calls.
_HOMES = {
    "vaccinate": ("daifu_bc.install.vaccinate", "vaccinate"),
    "configure": ("daifu_bc.install.settings", "configure"),
    "on": ("daifu_bc.frontends.rule_maker", "on"),
    "pause": ("daifu_bc.recovery.pause", "pause"),
    "patch": ("daifu_bc.recovery.surgeries", "patch"),
    "surgery": ("daifu_bc.recovery.surgeries", "surgery"),
    "undo": ("daifu_bc.recovery.surgeries", "undo"),
    "load_ipython_extension": ("daifu_bc.frontends.notebook_extension", "load_ipython_extension"),
    "unload_ipython_extension": ("daifu_bc.frontends.notebook_extension", "unload_ipython_extension"),
    "_first_call": ("daifu_bc.rewrite.first_call", "first_call"),
}
_ENGINE = {
    "_take": ("daifu_bc.recovery.resume", "take"),
    "_follow": ("daifu_bc.recovery.resume", "follow"),
    "_trim": ("daifu_bc.recovery.resume", "trim"),
    "_delegate": ("daifu_bc.recovery.resume", "delegate"),
    "_intercept": ("daifu_bc.recovery.intercept", "intercept"),
}

# They take frames to their barriers, also where nobody would answer a hold; or somebody answers from then on.
_NEED_ENGINE = ("on", "surgery", "undo")

# How multiprocessing starts a process of its own.
_WORKER = "--multiprocessing-fork"

_INTERCEPT = sys.intern("_intercept")

# What the journal imports when it writes a line.
_NEEDED = ("datetime", "json")


def _nobody(_module: object, _exception: BaseException) -> None:
    """Stands for `_intercept` where nobody answers a hold: there the engine need not be loaded."""


if not TYPE_CHECKING:  # else each misspelt name would pass

    def __getattr__(name: str) -> object:
        try:
            return _find(name)
        except (RecursionError, MemoryError):
            # There is no room to ask who answers; the program's exception goes its way. At the limit not even `==` works.
            if name is _INTERCEPT:
                return _nobody
            raise


def _find(name: str) -> object:
    """Return what an attribute stands for that is asked for the first time.

    Raises:
        AttributeError: there is no such attribute.
    """
    if name == _INTERCEPT:
        if not policy.somebody_answers():
            return _nobody
        try:
            _load_engine()
        except Exception:  # noqa: BLE001 - it has been told; what comes out here would replace the program's
            return _nobody
    elif name in _ENGINE:
        _load_engine()
    elif name in _HOMES:
        if name in _NEED_ENGINE:
            _load_engine()
        _put(_HOMES, name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]


def _load_engine() -> None:
    """Import all that a hold needs.

    Raises:
        Exception: it cannot be done; the program's exception then goes on.
    """
    try:
        for name in _ENGINE:
            _put(_ENGINE, name)
        for name in _NEEDED:
            import_module(name)
        import_module("daifu_bc.recovery.run_file").run_file.listen()
        import_module("daifu_bc.integrations").engine_loaded()
    except (MemoryError, RecursionError):  # there is no room now; the next exception asks again
        raise
    except Exception as error:
        if not sys.is_finalizing():
            notice.report_failure("load what holds crashes", error)
        raise


def _put(homes: dict[str, tuple[str, str]], name: str) -> None:
    """Make a name an ordinary attribute, so that it is found without us from now on."""
    home, attribute = homes[name]
    globals()[name] = getattr(import_module(home), attribute)


def _start() -> None:
    """Prepare for the program's libraries."""
    import_module("daifu_bc.integrations").install()
    if debuggers.wanted() and os.environ.get("DAIFU") != "1":  # not in its child processes
        import_module("daifu_bc.frontends.debugging").begin()
    stand_before_sigterm()


def _begin() -> None:
    """Prepare for holding, where a hold will be answered.

    A crash may come from having no memory, no file descriptors or no stack left: then it is too late to import.
    """
    if not policy.somebody_answers():
        return
    notification.prepare()
    # A worker starts in no time, and crashes seldom; whoever may come to it waits for the engine then.
    if _WORKER not in sys.orig_argv or policy.somebody_was_asked_for():
        _load_engine()
        pause_signal.install()
        import_module("daifu_bc.recovery.run_file").run_file.install()


frontends.register()
vaccine.starters.append(_start)
vaccine.beginners.append(_begin)
