"""What `daifu run` was asked to do, and the text that tells what it can be asked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from daifu_bc.errors import UsageError
from daifu_bc.install.options import OPTIONS, Option

HELP_FLAGS: Final = ("-h", "--help")
_SCOPE: Final = "--scope"
_NO: Final = "--no-"
#: Where the explanations begin.
_INDENT: Final = " " * 20
_NAMES: Final = {f"--{option.name}": option for option in OPTIONS}

_USAGE: Final = """\
usage: daifu run [options] script.py|program.pyc|folder|file.zip [arguments]
       daifu run [options] -m module [arguments]

Runs a program as `python` would, with its code and its project's code vaccinated: an exception that nobody
handles holds it. The exit code is the program's.

  daifu run train.py --epochs 10                            a person at the terminal answers
  daifu run --playbook repair.txt train.py                  a file does
  daifu run --hold-timeout none --notify ./tell train.py    whoever comes does, and is told before

Options stand before the program; what follows it belongs to the program.
"""

#: In what order they are told of; those that are not here come last.
_GROUPS: Final = (
    (
        "What is held:",
        ("hold-through", "leave-to", "hold-keyboard-interrupt", "pause-signal"),
    ),
    (
        "Who answers:",
        ("playbook", "retry-limit", "policy", "attach", "allow-root", "hold-timeout", "on-timeout"),
    ),
    ("With a debugger:", ("debugpy", "debugpy-allow-remote")),
    ("Before the end:", ("last-will", "grace")),
    ("Who is told, and what is written down:", ("notify", "webhook", "journal", "journal-values")),
)
_SCOPE_HELP: Final = "  --scope SCOPE     what is vaccinated: project (default), all, or names of packages separated by commas\n"

_END: Final = """\
  -h, --help        this text

Each option may also stand in the environment, as DAIFU_ and its name: DAIFU_HOLD_THROUGH=fit. All but --scope,
--playbook, --policy and --journal may also stand in pyproject.toml, under [tool.daifu]: hold-through = ["fit"], and
so on. Those without a value are 1 or 0 in the environment, true or false in pyproject.toml, and --no-NAME takes them
back. Rules may stand in pyproject.toml as well, a table [[tool.daifu.on]] for each.
DAIFU_DISABLE=1 in the environment turns everything off.
"""


@dataclass(slots=True)
class RunArguments:
    """What `daifu run` was asked to do.

    Attributes:
        target: the program, or the module's name.
        arguments: the program's.
        as_module: whether `target` is a module's name.
        scope: what is vaccinated.
        environment: what the options say, by the names of their variables.
        help: whether only the help is wanted.
    """

    target: str = ""
    arguments: list[str] = field(default_factory=list)
    as_module: bool = False
    scope: str | list[str] = "project"
    environment: dict[str, str] = field(default_factory=dict)
    help: bool = False


def help_text() -> str:
    """Return what `daifu run --help` prints."""
    named = {option.name: option for option in OPTIONS}
    parts = [_USAGE]
    for title, names in _GROUPS:
        first = _SCOPE_HELP if not parts[1:] else ""
        parts.append(
            f"{title}\n{first}" + "".join(_explained(named.pop(name)) for name in names if name in named)
        )
    parts.append("Further:\n" + "".join(map(_explained, named.values())) + _END)
    return "\n".join(parts)


def _explained(option: Option) -> str:
    name = f"  --{option.name} {option.value}".rstrip()
    head = f"{name:<{len(_INDENT)}}" if len(name) < len(_INDENT) else f"{name}\n{_INDENT}"
    return head + option.help.replace("\n", f"\n{_INDENT}") + "\n"


def parse(words: Sequence[str]) -> RunArguments:
    """Return what `daifu run` is asked to do; the options end at the program.

    Raises:
        UsageError: an option is unknown or lacks its value, or there is no program.
    """
    parsed = RunArguments()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in HELP_FLAGS:
            parsed.help = True
            return parsed
        if _is_module(word):
            parsed.as_module = True
            # As with python, the name may stand in the same word.
            rest = [word[2:], *rest] if len(word) > len("-m") else rest
            break
        if word == "--":
            break
        if not word.startswith("-"):
            rest.insert(0, word)
            break
        _take(parsed, word, rest)
    if not rest:
        missing = "a module's name after -m" if parsed.as_module else "a program"
        raise UsageError(f"`daifu run` needs {missing}; `daifu run --help` tells more")
    parsed.target, parsed.arguments = rest[0], rest[1:]
    return parsed


def without(words: Sequence[str], name: str) -> list[str]:
    """Return what `daifu run` was asked to do without one of its options.

    Args:
        words: as for `parse`, which takes them.
        name: the option's.
    """
    kept: list[str] = []
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] not in ("--", *HELP_FLAGS) and not _is_module(rest[0]):
        before = list(rest)
        _take(RunArguments(), rest.pop(0), rest)
        if before[0].partition("=")[0] != f"--{name}":
            kept += before[: len(before) - len(rest)]
    return kept + rest


def _is_module(word: str) -> bool:
    return word.startswith("-m") and not word.startswith("--")


def _take(parsed: RunArguments, word: str, rest: list[str]) -> None:
    """Take an option, with its value from the words that follow if it does not stand in the same one."""
    name, equals, value = word.partition("=")
    taken_back = _NAMES.get("--" + name.removeprefix(_NO)) if name.startswith(_NO) else None
    option = taken_back or _NAMES.get(name)
    is_switch = option is not None and option.kind == "switch"
    if (option is None and name != _SCOPE) or (is_switch and equals) or (taken_back and not is_switch):
        raise UsageError(f"`daifu run` has no option {name}; `daifu run --help` tells what there is")
    if option is not None and is_switch:
        parsed.environment[option.variable] = "0" if taken_back else "1"
        return
    if not equals:
        if not rest:
            raise UsageError(f"{name} needs a value")
        value = rest.pop(0)
    if not value:
        raise UsageError(f"{name} needs a value")
    if option is None:
        names = [part.strip() for part in value.split(",") if part.strip()]
        parsed.scope = names[0] if names in (["project"], ["all"], ["function"]) else names
    elif option.kind == "file" or (option.kind == "words" and os.path.isfile(value)):
        parsed.environment[option.variable] = os.path.abspath(value)
    else:
        parsed.environment[option.variable] = option.check(value)
