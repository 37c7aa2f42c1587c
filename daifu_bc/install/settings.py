"""What the user has said about holding: in the environment, in the project's pyproject.toml, or from the program."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, Final

from daifu_bc.analysis import filters
from daifu_bc.errors import UsageError
from daifu_bc.install.notice import say_once
from daifu_bc.install.scope import project_root
from daifu_bc.recovery import attaching, policy, repetition
from daifu_bc.recovery import pause_signal as pausing

_LISTS: Final = {"hold-through": filters.HOLD_THROUGH, "leave-to": filters.LEAVE_TO}
_SWITCHES: Final = {
    "hold-keyboard-interrupt": filters.KEYBOARD_INTERRUPT,
    "attach": attaching.VARIABLE,
}
#: Each with its variable and with what checks it.
_TEXTS: Final = {
    "pause-signal": (pausing.VARIABLE, pausing.checked),
    "retry-limit": (repetition.VARIABLE, repetition.checked),
    "hold-timeout": (attaching.TIMEOUT, attaching.checked_timeout),
    "on-timeout": (attaching.ON_TIMEOUT, attaching.checked_answer),
}


def read_project(filename: str) -> None:
    """Take what stands under `[tool.daifu]` in a project's pyproject.toml, where the environment says nothing.

    Args:
        filename: a file of the project.

    Raises:
        UsageError: something there is not known, or not of the right kind.
    """
    path = os.path.join(project_root(filename), "pyproject.toml")
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        return
    if b"tool.daifu" not in content:
        return
    import tomllib  # most projects say nothing

    try:
        table = tomllib.loads(content.decode()).get("tool", {}).get("daifu", {})
    except (ValueError, AttributeError) as error:
        say_once(path, f"{path} cannot be read, so nothing there counts: {error}")
        return
    for key, value in table.items() if isinstance(table, dict) else ():
        variable, text = _read(path, key, value)
        os.environ.setdefault(variable, text)
    policy.ask_anew()
    pausing.update()


def _read(path: str, key: str, value: Any) -> tuple[str, str]:
    if key in _LISTS:
        if isinstance(value, list) and all(isinstance(name, str) for name in value):
            return _LISTS[key], filters.as_text(value)
        raise UsageError(f"{key} in {path} is no list of names", remedy=f'Write {key} = ["fit"], say.')
    if key in _SWITCHES:
        if isinstance(value, bool):
            return _SWITCHES[key], str(int(value))
        raise UsageError(f"{key} in {path} is neither true nor false")
    if key in _TEXTS:
        variable, checked = _TEXTS[key]
        return variable, checked(str(value))
    known = ", ".join([*_LISTS, *_SWITCHES, *_TEXTS])
    raise UsageError(f"[tool.daifu] in {path} has {key}, which is not known", remedy=f"Known are {known}.")


def configure(
    *,
    hold_through: Iterable[str] | None = None,
    leave_to: Iterable[str] | None = None,
    hold_keyboard_interrupt: bool | None = None,
    pause_signal: str | None = None,
) -> None:
    """Say what is held, from now on and in child processes; what is left out stays as it is.

    A name is that of a function (`fit`, `Trainer.fit`), alone or behind its module or the end of its file's path
    and a colon (`package.module:Trainer.fit`, `folder/file.py:fit`); `*` stands for anything.

    Args:
        hold_through: functions whose broad clauses (`except Exception` and the like) do not count: what they would
            catch is held. For what their own bodies raise it counts only if it was said before they were vaccinated.
        leave_to: functions that deal with what is raised in them, and in what they call: that is never held.
        hold_keyboard_interrupt: whether a KeyboardInterrupt is held.
        pause_signal: the name of the signal that pauses the run, or `none`.

    Raises:
        UsageError: a name cannot be one.
    """
    if hold_through is not None:
        os.environ[filters.HOLD_THROUGH] = filters.as_text(hold_through)
    if leave_to is not None:
        os.environ[filters.LEAVE_TO] = filters.as_text(leave_to)
    if hold_keyboard_interrupt is not None:
        os.environ[filters.KEYBOARD_INTERRUPT] = str(int(hold_keyboard_interrupt))
    if pause_signal is not None:
        os.environ[pausing.VARIABLE] = pausing.checked(pause_signal)
        pausing.update()
    # Before the first hold there is nobody who remembers answers.
    carriers = sys.modules.get("daifu_bc.recovery.carriers")
    if carriers is not None:
        carriers.filters_changed()


def check() -> None:
    """See that what stands in the environment can be read; it would be left out otherwise.

    Raises:
        UsageError: something there is not known.
    """
    for variable in _LISTS.values():
        filters.names_in(os.environ.get(variable, ""))
    pausing.named()
    repetition.checked(os.environ.get(repetition.VARIABLE) or "none")
    attaching.checked_timeout(os.environ.get(attaching.TIMEOUT) or "none")
    attaching.checked_answer(os.environ.get(attaching.ON_TIMEOUT) or "raise")
