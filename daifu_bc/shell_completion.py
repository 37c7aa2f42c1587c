"""Completion of the command line in bash, zsh and fish, made of what the help texts say."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from daifu_bc.errors import UsageError
from daifu_bc.frontends import roster
from daifu_bc.help_texts import Flag, HelpText, first_clause

#: What the scripts ask for when the number of a run is to be completed.
PIDS: Final = "pids"
#: The words of which a value is one: `raise`, `local|remote`.
_CHOICES: Final = re.compile(r"[a-z]+(?:\|[a-z]+)*")


def script(shell: str, helps: Sequence[HelpText]) -> str:
    """Return the script that a shell reads.

    Args:
        shell: its name.
        helps: the help texts of all commands.

    Raises:
        UsageError: it is another shell.
    """
    make = SHELLS.get(shell)
    if make is None:
        raise UsageError(f"there is no completion for {shell!r}", remedy=f"There is: {', '.join(SHELLS)}.")
    return make(helps)


def pids() -> list[str]:
    """Return the numbers of the user's runs."""
    found, _ = roster.runs()  # `daifu ps` tells of what stands in the way
    return [str(run.pid) for run in found]


def _values(flag: Flag) -> str:
    """What the value of an option is: `file`, words to choose from, or nothing of which anything is known."""
    if "FILE" in flag.value.split("|"):
        return "file"
    if flag.value == "SCOPE":
        return "project all"
    return flag.value.replace("|", " ") if _CHOICES.fullmatch(flag.value) else ""


def _arguments(known: HelpText, helps: Sequence[HelpText]) -> str:
    """The same of the arguments of a command."""
    if known.command == "help":
        return " ".join(["man", *(one.command for one in helps)])
    if known.command == "completion":
        return " ".join(SHELLS)
    return "pid" if known.takes("PID") else "file" if known.takes("FILE") else ""


# -- bash --------------------------------------------------------------------------------------------------------------


def _bash(helps: Sequence[HelpText]) -> str:
    names = " ".join([*(one.command for one in helps), "--help", "--version"])
    about: list[str] = []
    values: list[str] = []
    for one in helps:
        takes = " ".join(flag.name for flag in one.flags if flag.value)
        about += [
            f"    {one.command})",
            f"        flags='{' '.join(flag.name for flag in one.flags)}'",
            f"        takes=' {takes} '",
            f"        arguments='{'program' if one.command == 'run' else _arguments(one, helps)}'",
            "        ;;",
        ]
        values += [
            f"    '{one.command} {flag.name}') arguments='{_values(flag)}' ;;"
            for flag in one.flags
            if flag.value
        ]
    return (
        _BASH.replace("COMMANDS", names)
        .replace("ABOUT", "\n".join(about))
        .replace("VALUES", "\n".join(values))
    )


_BASH: Final = """\
# bash completion for daifu: eval "$(daifu completion bash)"

_daifu()
{
    local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
    local flags='' takes='' arguments='' pending='' word place given=0
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W 'COMMANDS' -- "$current"))
        return
    fi
    case $command in
ABOUT
    esac
    for ((place = 2; place < COMP_CWORD && given == 0; place++)); do
        word=${COMP_WORDS[place]}
        if [[ $takes == *" $word "* || $word == -m ]]; then
            # --playbook=FILE comes as three words.
            [[ ${COMP_WORDS[place+1]} == '=' ]] && ((place++))
            ((++place >= COMP_CWORD)) && pending=$word
            [[ $word == -m && -z $pending ]] && given=1
        elif [[ $word != -* ]]; then
            given=1
        fi
    done
    [[ $current == '=' ]] && current=''
    if [[ -n $pending ]]; then
        arguments=''
        case "$command $pending" in
VALUES
        esac
    elif ((given)); then
        # What stands behind the program is the program's; behind the number of a run there are words.
        [[ $arguments == program ]] || return
    elif [[ $current == -* ]]; then
        arguments=$flags
    fi
    case $arguments in
    file | program) compopt -o default 2>/dev/null ;;
    pid) COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" completion pids 2>/dev/null)" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$arguments" -- "$current")) ;;
    esac
}
complete -F _daifu daifu
"""


# -- zsh ---------------------------------------------------------------------------------------------------------------


def _zsh(helps: Sequence[HelpText]) -> str:
    lines = [
        "#compdef daifu",
        '# zsh completion for daifu: eval "$(daifu completion zsh)", behind compinit',
        "",
        "_daifu() {",
        "    local -a commands numbers",
        "    commands=(",
    ]
    lines += [f"        {_quoted(f'{one.command}:{one.clause}')}" for one in helps]
    lines += [
        "    )",
        "    if (( CURRENT == 2 )); then",
        "        _describe command commands",
        "        return",
        "    fi",
        "    local command=$words[2] program=$words[1]",
        "    shift words",
        "    (( CURRENT-- ))",
        "    case $command in",
    ]
    for one in helps:
        lines.append(f"    {one.command})")
        specs = [
            f"{flag.name}{'=' if flag.value else ''}[{_plain(flag.text)}]{_zsh_value(flag)}"
            for flag in one.flags
        ]
        if one.command == "run":
            specs += ["-m[run a module]:module: ", "*:::program:_files"]
            lines.append("        _arguments -A '-*' \\")
        else:
            arguments = _arguments(one, helps)
            if arguments == "pid":
                lines.append('        numbers=(${(f)"$($program completion pids 2>/dev/null)"})')
                specs.append("1:process:(($numbers))")
            elif arguments == "file":
                specs.append("1:file:_files")
            elif arguments:
                specs.append(f"1:what:({arguments})")
            lines.append("        _arguments \\")
        quoted = [f'"{spec}"' if "$numbers" in spec else _quoted(spec) for spec in specs or ["*: : "]]
        lines += [f"            {spec} \\" for spec in quoted[:-1]]
        lines += [f"            {quoted[-1]}", "        ;;"]
    return "\n".join([*lines, "    esac", "}", "compdef _daifu daifu", ""])


def _zsh_value(flag: Flag) -> str:
    values = _values(flag)
    if not flag.value:
        return ""
    what = flag.value.replace("|", " or ")
    return f":{what}:" + ("_files" if values == "file" else f"({values})" if values else " ")


def _plain(text: str) -> str:
    """A short text without what means something in a specification."""
    return re.sub(r"[\[\]:\\`]", "", first_clause(text))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# -- fish --------------------------------------------------------------------------------------------------------------


def _fish(helps: Sequence[HelpText]) -> str:
    lines = [
        "# fish completion for daifu: daifu completion fish | source",
        "",
        "complete -c daifu -f",
        "complete -c daifu -n __fish_use_subcommand -l help -d 'what there is'",
        "complete -c daifu -n __fish_use_subcommand -l version -d 'the version'",
    ]
    first = "complete -c daifu -n __fish_use_subcommand"
    lines += [f"{first} -a {one.command} -d {_fish_quoted(one.clause)}" for one in helps]
    for one in helps:
        begin = f"complete -c daifu -n '__fish_seen_subcommand_from {one.command}'"
        for flag in one.flags:
            values = _values(flag)
            given = " -r -F" if values == "file" else f" -x -a '{values}'" if flag.value else ""
            lines.append(
                f"{begin} -l {flag.name.removeprefix('--')}{given} -d {_fish_quoted(first_clause(flag.text))}"
            )
        arguments = _arguments(one, helps)
        if one.command == "run":
            lines += [f"{begin} -s m -x -d 'run a module'", f"{begin} -F"]
        elif arguments == "pid":
            lines.append(f"{begin} -a '(daifu completion pids 2>/dev/null)'")
        elif arguments == "file":
            lines.append(f"{begin} -F")
        elif arguments:
            lines.append(f"{begin} -a '{arguments}'")
    return "\n".join([*lines, ""])


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SHELLS: Final[dict[str, Callable[[Sequence[HelpText]], str]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}

HELP: Final = """\
usage: daifu completion bash|zsh|fish

Prints what a shell needs to complete commands, options, files and the numbers of runs. Put it into the file that the
shell reads at its start:
  ~/.bashrc                      eval "$(daifu completion bash)"
  ~/.zshrc                       eval "$(daifu completion zsh)", behind compinit
  ~/.config/fish/config.fish     daifu completion fish | source
"""
