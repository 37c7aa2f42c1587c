"""Vaccinating code objects on behalf of the install layer: switched off, refused or failing, the code stays as it is."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from threading import get_ident
from types import CodeType, ModuleType

from daifu_bc import pyversion
from daifu_bc.install.notice import report_failure, say_once
from daifu_bc.recovery.private import borrowed_rights

# The vaccinated code of pristine code by identity: equal code objects are not the same, and code objects that
# are one and the same have to stay so. Neither is kept alive: the vaccinated code keeps the pristine one already.
_Twin = tuple["weakref.ref[CodeType]", "weakref.ref[CodeType]"]
_twins: dict[int, _Twin] = {}

# The threads that are importing what vaccinates.
_importing: set[int] = set()

#: Functions that a compiler has made of a function of the program: Dynamo's, of what follows a break in a graph. It keeps
#: what it knows of them by their code, and the statements in them have no beginning of their own.
_GENERATED = "torch_dynamo_resume_in_"

#: At the start; a program that changes its rights later does so of its own accord.
_BORROWED = borrowed_rights()

#: Called once, before anything is vaccinated in this process; the layers above put theirs in.
starters: list[Callable[[], None]] = []
#: Called once, when the first code of the program's is: a child process may never have any.
beginners: list[Callable[[], None]] = []


def available() -> bool:
    """Tell whether code is to be vaccinated in this process; on a Python that is not supported, say so once."""
    if os.environ.get("DAIFU_DISABLE", "0") not in ("", "0"):
        return False
    if not pyversion.SUPPORTED:
        say_once(
            "unsupported",
            f"this Python ({sys.implementation.name} {sys.version.split()[0]}) is not supported, so the program "
            "runs without daifu_bc. Use CPython 3.11 to 3.15, or set DAIFU_DISABLE=1 to silence this message.",
        )
        return False
    if _BORROWED:
        say_once(
            "rights",
            "this process has another user's rights (set-uid or set-gid), so the program runs without daifu_bc: whoever"
            " answers a hold runs code.",
        )
        return False
    _call(starters)
    return True


def begin() -> None:
    """Code of the program's is about to be vaccinated."""
    _call(beginners)


def _call(functions: list[Callable[[], None]]) -> None:
    while functions:
        function = functions.pop()
        try:
            function()
        except Exception as error:  # noqa: BLE001 - a failure of ours must not become the program's
            report_failure(f"start {function.__module__}", error)


def _rewriting_layer() -> ModuleType | None:
    """Return what vaccinates; None while it is being imported: what it needs itself is loaded plainly."""
    thread = get_ident()
    if thread in _importing:
        return None
    _importing.add(thread)
    try:
        # Imported with the first code that comes from no cache: it brings the whole rewriting layer along.
        from daifu_bc.rewrite import barrier
    finally:
        _importing.discard(thread)
    return barrier


def vaccinated(code: CodeType, place: str = "") -> CodeType:
    """Return the vaccinated form of a code object, the same one each time; on failure report it and return `code`.

    Args:
        code: a code object, vaccinated or not; one that a compiler has generated stays as it is.
        place: what the code is, for the report; by default its name and place.
    """
    if code.co_name.startswith(_GENERATED):
        return code
    known = _twins.get(id(code))
    if known is not None and known[0]() is code:
        twin = known[1]()
        if twin is not None:
            return twin
    try:
        barrier = _rewriting_layer()
        if barrier is None:
            return code
        if barrier.is_vaccinated(code):
            return code
        result: CodeType = barrier.vaccinate_code(code)
    except Exception as error:  # noqa: BLE001 - a failure of ours must not become the program's
        where = place or f"{code.co_qualname} at {code.co_filename}:{code.co_firstlineno}"
        report_failure(f"vaccinate {where}", error)
        return code
    if result is code:
        return code
    key = id(code)

    def forget(_: object, twins: dict[int, _Twin] = _twins) -> None:
        # A default, as the module may be gone when the last code objects go at the interpreter's end.
        twins.pop(key, None)

    # Two threads may do this at the same time; then one function has code of its own, which is as good.
    _twins[key] = (weakref.ref(code, forget), weakref.ref(result))
    return result
