"""The manual page `daifu(1)`, made of the help texts: what stands there stands here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from daifu_bc.frontends.commands import TABLE
from daifu_bc.help_texts import HelpText
from daifu_bc.install.options import OPTIONS


def page(overview: str, helps: Sequence[HelpText], version: str) -> str:
    """Return the page as `man` reads it.

    Args:
        overview: what `daifu --help` prints.
        helps: the help texts of all commands.
        version: of the package.
    """
    usage, _, rest = overview.partition("\n\n")
    parts = [
        f'.TH DAIFU 1 "" "daifu_bc {_escaped(version)}" "User commands"',
        ".SH NAME",
        r"daifu \- hold a crashed Python run at the failed statement, repair it, and let it go on",
        ".SH SYNOPSIS",
        _literal(line.removeprefix("usage:").strip() for line in usage.split("\n")),
        ".SH DESCRIPTION",
        _literal(rest.strip("\n").split("\n")),
        ".SH COMMANDS",
    ]
    for one in helps:
        parts += [f".SS daifu {one.command}", _literal(one.text.strip("\n").split("\n"))]
    parts += [
        ".SH WORDS",
        _literal(["At the prompt of a held run, in playbooks, rules and `daifu do`."]),
    ]
    for word in TABLE:
        parts += [f".SS {_escaped(word.name)}", _literal(word.help().split("\n"))]
    parts += [".SH ENVIRONMENT", ".TP", r"DAIFU_DISABLE=1", "turn everything off"]
    parts += [".TP", "DAIFU=1", "vaccinate Python processes at their start"]
    for option in OPTIONS:
        value = option.value or "1"
        text = f"as {option.name} of daifu run"
        parts += [".TP", _escaped(f"{option.variable}={value}"), _escaped(text)]
    return "\n".join([*parts, ""])


def _literal(lines: Iterable[str]) -> str:
    """Lines that are broken as they stand."""
    return "\n".join([".nf", *map(_escaped, lines), ".fi"])


def _escaped(line: str) -> str:
    text = line.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")
    return rf"\&{text}" if text.startswith(".") else text
