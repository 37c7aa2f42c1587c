"""What the user has said about holding: in the environment, in the project's pyproject.toml, or from the program."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Final

from daifu_bc.analysis import filters
from daifu_bc.errors import UsageError
from daifu_bc.install.notice import say_once
from daifu_bc.install.options import OPTIONS
from daifu_bc.install.scope import project_root
from daifu_bc.recovery import debuggers, last_will, policy, private, rules
from daifu_bc.recovery import pause_signal as pausing

_BY_KEY: Final = {option.name: option for option in OPTIONS if option.in_project}
#: A list of tables, and no option: `--policy` names a file of them.
_RULES: Final = "on"


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
            content, status = file.read(), os.fstat(file.fileno())
    except OSError:
        return
    if b"tool.daifu" not in content:
        return
    # It may name a command, and it may lie in a folder above that anybody can write to.
    if not private.trusted(status, *_owners(filename)):
        say_once(
            path, f"{path} is another user's, or all may write to it, so nothing of [tool.daifu] there counts"
        )
        return
    import tomllib  # most projects say nothing

    try:
        table = tomllib.loads(content.decode()).get("tool", {}).get("daifu", {})
    except (ValueError, AttributeError) as error:
        say_once(path, f"{path} cannot be read, so nothing there counts: {error}")
        return
    for key, value in table.items() if isinstance(table, dict) else ():
        if key == _RULES:  # they are read there when they are needed, by child processes too
            os.environ.setdefault(rules.VARIABLE, path)
            continue
        option = _BY_KEY.get(key)
        if option is None:
            known = ", ".join([*_BY_KEY, _RULES])
            raise UsageError(
                f"[tool.daifu] in {path} has {key}, which is not known", remedy=f"Known are {known}."
            )
        os.environ.setdefault(option.variable, option.read(value, path))
    policy.prepare_rules()
    pausing.update()
    last_will.prepare()
    last_will.install()
    # What runs is told of where the engine has been loaded.
    run_file = sys.modules.get("daifu_bc.recovery.run_file")
    if run_file is not None:
        run_file.run_file.update()


def _owners(filename: str) -> list[int]:
    """Return whose program it is: whoever runs it trusts that user."""
    try:
        return [os.stat(filename).st_uid]
    except OSError:
        return []


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
    for option in OPTIONS:
        value = os.environ.get(option.variable)
        if value:
            option.check(value)
    debuggers.address()
    policy.ask_anew()
    pausing.update()
