"""Which holds a rule is for."""

from __future__ import annotations

import builtins
import sys
from types import ModuleType

from daifu_bc.analysis import filters
from daifu_bc.recovery.interface import FrameLike, HoldLike
from daifu_bc.recovery.rules import Rule


def frame_for(rule: Rule, hold: HoldLike) -> FrameLike | None:
    """Return the frame that a rule is to do something about: the held one, or the innermost that it names.

    Args:
        rule: the rule.
        hold: the hold.

    Returns:
        None if the rule is for other holds.
    """
    if not any(is_a(type(hold.exception), kind) for kind in rule.raises):
        return None
    frame = _place(rule, hold)
    if frame is None or rule.message is None:
        return frame
    try:
        text = str(hold.exception)  # the program's class says what it says
    except Exception:  # noqa: BLE001 - then it says nothing
        return None
    return frame if rule.message(text) else None


def _place(rule: Rule, hold: HoldLike) -> FrameLike | None:
    found: FrameLike | None = None
    for frame in hold.frames:
        if not rule.where or (frame.vaccinated and _names(rule, frame)):
            found = frame
        if frame.held:
            break
    return found


def _names(rule: Rule, frame: FrameLike) -> bool:
    return any(filters.names_function(name, frame.code) for name in rule.where)


def is_a(kind: type[BaseException], wanted: str | type[BaseException]) -> bool:
    """Tell whether a class is the wanted one or derived from it; nothing is imported to find out.

    Args:
        kind: the class.
        wanted: a class, its name, or its name behind that of its module.
    """
    mro = type.mro(kind) if type(kind) is type else kind.__mro__
    if not isinstance(wanted, str):
        return wanted in mro
    for base in mro:
        if wanted in (base.__name__, base.__qualname__, f"{base.__module__}.{base.__qualname__}"):
            return True
    # One that goes by another name there: `IOError`, `socket.timeout`, `torch.cuda.OutOfMemoryError`.
    module, _, name = wanted.rpartition(".")
    home = sys.modules.get(module) if module else builtins
    meant = vars(home).get(name) if isinstance(home, ModuleType) else None
    return meant is not None and any(base is meant for base in mro)
