"""Reporting an exception that ended the program, as the interpreter does, without a trace of our frames."""

from __future__ import annotations

import contextlib
import sys
from types import TracebackType
from typing import NoReturn

from daifu_bc import pyversion
from daifu_bc.recovery.attributes import cause_of, context_of, members_of, set_traceback, traceback_of

_OWN_PACKAGE = __name__.partition(".")[0]


def _is_ours(entry: TracebackType) -> bool:
    name = entry.tb_frame.f_globals.get("__name__")
    return type(name) is str and (name == _OWN_PACKAGE or name.startswith(_OWN_PACKAGE + "."))


def without_us(traceback: TracebackType | None) -> TracebackType | None:
    """Take our frames out of a traceback, in place, and return what is then its first entry.

    Args:
        traceback: the traceback of an exception.
    """
    while traceback is not None and _is_ours(traceback):
        traceback = traceback.tb_next
    entry = traceback
    while entry is not None and entry.tb_next is not None:
        if _is_ours(entry.tb_next):
            entry.tb_next = entry.tb_next.tb_next
        else:
            entry = entry.tb_next
    return traceback


def clean(error: BaseException) -> None:
    """Take our frames out of the tracebacks of an exception and of all that led to it.

    Args:
        error: the exception.
    """
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        link = waiting.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        set_traceback(link, without_us(traceback_of(link)))
        waiting += [cause_of(link), context_of(link)]
        if issubclass(type(link), BaseExceptionGroup):
            waiting += members_of(link)


def _try_to_clean(error: BaseException) -> None:
    # A program that has put functions of its own in the place of `set` and the like must see its exception all the same.
    try:
        clean(error)
    except Exception:  # noqa: BLE001 - our frames are seen, then
        return


def report(error: BaseException) -> None:
    """Report an exception that nobody handled as the interpreter does before it ends.

    Args:
        error: the exception; it must not be the one being handled, or it would become the context of others.

    Raises:
        SystemExit: the program's `sys.excepthook` asks for it.
    """
    _try_to_clean(error)
    kind, traceback = type(error), traceback_of(error)
    sys.__dict__.update(last_type=kind, last_value=error, last_traceback=traceback)
    if pyversion.HAS_LAST_EXC:
        # Not before: the interpreter would not drop it when it ends, and so keep the program's objects from ending.
        sys.__dict__["last_exc"] = error
    hook = sys.__dict__.get("excepthook")
    sys.audit("sys.excepthook", hook, kind, error, traceback)
    if hook is None:
        _say("sys.excepthook is missing\n")
        sys.__excepthook__(kind, error, traceback)
        return
    try:
        hook(kind, error, traceback)
    except SystemExit:
        raise
    except BaseException as failure:  # noqa: BLE001 - whatever it is, it must not hide the program's own
        in_hook = failure
    else:
        return
    _try_to_clean(in_hook)
    _say("Error in sys.excepthook:\n")
    sys.__excepthook__(type(in_hook), in_hook, traceback_of(in_hook))
    _say("\nOriginal exception was:\n")
    sys.__excepthook__(kind, error, traceback)


def _say(text: str) -> None:
    # The interpreter says it where it can, and goes on where it cannot.
    with contextlib.suppress(Exception):
        sys.stderr.write(text)


def end_by_interrupt(error: KeyboardInterrupt) -> NoReturn:
    """Let Ctrl-C, once reported, end the process as the interpreter has it: after a clean exit, by the signal.

    Only the interpreter can do that, when the exception reaches it; it must not be reported a second time.

    Args:
        error: the interrupt.

    Raises:
        KeyboardInterrupt: always.
    """
    hook, traceback = sys.excepthook, traceback_of(error)

    def silent(*_: object) -> None:
        sys.excepthook = hook
        sys.last_traceback = traceback
        set_traceback(error, traceback)

    sys.excepthook = silent
    raise error
