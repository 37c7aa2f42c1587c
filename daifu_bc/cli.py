"""The command `daifu`: run a program so that its crashes are held, read the journal, see a demonstration."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from daifu_bc import frontends
from daifu_bc.analysis import filters
from daifu_bc.errors import DaifuError, UsageError
from daifu_bc.frontends import log
from daifu_bc.install import launch, settings
from daifu_bc.recovery import attaching, journal, policy, repetition

USAGE_CODE = 2
#: What the shell reports for a program that a closed pipe has ended.
BROKEN_PIPE_CODE = 141

HELP = """\
usage: daifu run [options] script.py [arguments]
       daifu run [options] -m module [arguments]
       daifu ps | attach [PID] | do PID 'WORDS' ...
       daifu log [FILE]
       daifu demo
       daifu --help | --version

daifu_bc holds a crashed run at the statement that failed. Nothing is lost: no `finally` has run, no file
is closed, every loop stands where it stood. You look around, repair what is wrong, and let it go on.

Try it in a minute:
  daifu demo                            a training run that crashes, and what to type then

Use it:
  daifu run train.py --epochs 10        instead of `python train.py --epochs 10`
  daifu run -m package.train            instead of `python -m package.train`

At the prompt of a held run:
  x                                     shows a variable, any other code runs there too: x = x[:16]
  pass                                  run the crashed statement again
  surgery                               you have mended the source file: take the new code
  skip, goto LINE, return EXPR          go on elsewhere
  raise                                 let the exception go on
  help                                  everything else

Without a terminal (a batch job) a playbook answers, a file of the same words, one block for each hold:
  daifu run --playbook repair.txt train.py
With neither, the exception goes on at once, as without daifu: a batch job never hangs. Or it waits for a while:
  daifu run --attach train.py           a crash waits for somebody, half an hour if nobody comes
  daifu ps                              which of your runs are held, and where
  daifu attach PID                      the prompt of one of them, from another terminal

`daifu run --help` tells the options of run.
"""

RUN_HELP = """\
usage: daifu run [options] script.py|program.pyc|folder|file.zip [arguments]
       daifu run [options] -m module [arguments]

Runs a program as `python` would, with its code and its project's code vaccinated: an exception that nobody
handles holds it. The exit code is the program's.

options (before the program; what follows it belongs to the program):
  --playbook FILE   answer holds from FILE, one block of words for each, blocks separated by a line `---`
                    (also: DAIFU_PLAYBOOK=FILE)
  --journal FILE    write what is held and done there (also: DAIFU_JOURNAL=FILE); default:
                    $XDG_STATE_HOME/daifu_bc/journal.jsonl, under ~/.local/state if that is not set
  --scope SCOPE     what is vaccinated: project (default), all, or names of packages separated by commas
  --hold-through NAMES
                    functions whose `except Exception` and the like do not count: what they would catch is held.
                    NAMES are separated by commas: fit, Trainer.fit, package.module:Trainer.fit, file.py:fit;
                    `*` stands for anything (also: DAIFU_HOLD_THROUGH=NAMES)
  --leave-to NAMES  functions that deal with what is raised in them and in what they call: never held
                    (also: DAIFU_LEAVE_TO=NAMES)
  --hold-keyboard-interrupt
                    hold Ctrl-C, too (also: DAIFU_HOLD_KEYBOARD_INTERRUPT=1)
  --pause-signal NAME
                    the signal that stops the running program at its next statement, as long as it has no use for it
                    itself: SIGUSR1 if left out; none for no signal (also: DAIFU_PAUSE_SIGNAL=NAME)
  --retry-limit N   after how many retries that change nothing a playbook's block `repeat` gives up: 3 if left out,
                    none for no limit (also: DAIFU_RETRY_LIMIT=N)
  --attach          where neither a playbook nor a terminal answers, wait for `daifu attach` (also: DAIFU_ATTACH=1)
  --hold-timeout SECONDS
                    for how long, from the last word that was typed: 1800 if left out, none for no limit
                    (also: DAIFU_HOLD_TIMEOUT=SECONDS)
  --on-timeout raise
                    what then becomes of the hold: the exception goes on (also: DAIFU_ON_TIMEOUT=raise)
  -h, --help        this text

All from --hold-through on may also stand in pyproject.toml, under [tool.daifu]: hold-through = ["fit"], and so on.
DAIFU_DISABLE=1 in the environment turns everything off.
"""

LOG_HELP = """\
usage: daifu log [FILE]

Prints the journal readably: every hold, and what was done about it. Without FILE it is the journal that
DAIFU_JOURNAL names, or the user's own.
"""

#: Commands that are functions of `daifu_bc.frontends.client`.
_FOR_HELD_RUNS = {"ps": "show_runs", "attach": "attach", "do": "do"}

HELP_FLAGS = ("-h", "--help")


@dataclass(slots=True)
class RunArguments:
    """What `daifu run` was asked to do."""

    target: str = ""
    arguments: list[str] = field(default_factory=list)
    as_module: bool = False
    scope: str | list[str] = "project"
    playbook: str | None = None
    journal: str | None = None
    hold_through: str | None = None
    leave_to: str | None = None
    keyboard_interrupt: bool | None = None
    pause_signal: str | None = None
    retry_limit: str | None = None
    attach: bool = False
    hold_timeout: str | None = None
    on_timeout: str | None = None
    help: bool = False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = words.pop(0) if words else "--help"
    try:
        return _run_command(command, words)
    except DaifuError as error:
        print(f"daifu: {error}", file=sys.stderr)
        return USAGE_CODE
    except BrokenPipeError:
        # The reader (`daifu log | head`) has enough; the interpreter is not to complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE_CODE


def _run_command(command: str, words: list[str]) -> int:
    if command in HELP_FLAGS or command == "help":
        print(HELP, end="")
        return 0
    if command == "--version":
        print(f"daifu_bc {version()}")
        return 0
    if command == "run":
        return run(words)
    if command == "log":
        return show_log(words)
    if command in _FOR_HELD_RUNS:
        # The prompt is not imported for the other commands.
        client = importlib.import_module("daifu_bc.frontends.client")
        return cast(int, getattr(client, _FOR_HELD_RUNS[command])(words))
    if command == "demo":
        # It needs the libraries of an extra, which the other commands do without.
        return cast(int, importlib.import_module("daifu_bc.demo").main(words))
    hint = f" To run a program, write `daifu run {command}`." if os.path.exists(command) else ""
    raise UsageError(f"there is no command {command!r}.{hint} `daifu --help` tells what there is")


def version() -> str:
    """Return the version of the installed package."""
    try:
        return importlib.metadata.version("daifu_bc")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def parse_run(words: Sequence[str]) -> RunArguments:
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
        if word == "-m" or (word.startswith("-m") and not word.startswith("--")):
            parsed.as_module = True
            # As with python, the name may stand in the same word.
            rest = [word[2:], *rest] if len(word) > len("-m") else rest
            break
        if word == "--":
            break
        if not word.startswith("-"):
            rest.insert(0, word)
            break
        _option(parsed, word, rest)
    if not rest:
        missing = "a module's name after -m" if parsed.as_module else "a program"
        raise UsageError(f"`daifu run` needs {missing}; `daifu run --help` tells more")
    parsed.target, parsed.arguments = rest[0], rest[1:]
    return parsed


#: Options with one value, and where it is kept.
_VALUES = {
    "--playbook": "playbook",
    "--journal": "journal",
    "--hold-through": "hold_through",
    "--leave-to": "leave_to",
    "--pause-signal": "pause_signal",
    "--retry-limit": "retry_limit",
    "--hold-timeout": "hold_timeout",
    "--on-timeout": "on_timeout",
}

#: Those of them whose values are checked.
_CHECKS = {
    "--retry-limit": repetition.checked,
    "--hold-timeout": attaching.checked_timeout,
    "--on-timeout": attaching.checked_answer,
}

#: Options without a value.
_SWITCHES = {
    "--hold-keyboard-interrupt": "keyboard_interrupt",
    "--attach": "attach",
}


def _option(parsed: RunArguments, word: str, rest: list[str]) -> None:
    name, equals, value = word.partition("=")
    if name in _SWITCHES and not equals:
        setattr(parsed, _SWITCHES[name], True)
        return
    if name != "--scope" and name not in _VALUES:
        raise UsageError(f"`daifu run` has no option {name}; `daifu run --help` tells what there is")
    if not equals:
        if not rest:
            raise UsageError(f"{name} needs a value")
        value = rest.pop(0)
    if not value:
        raise UsageError(f"{name} needs a value")
    if name in _CHECKS:
        value = _CHECKS[name](value)
    if name in _VALUES:
        setattr(parsed, _VALUES[name], value)
    else:
        names = [part.strip() for part in value.split(",") if part.strip()]
        parsed.scope = names[0] if names in (["project"], ["all"], ["function"]) else names


def run(words: Sequence[str]) -> int:
    """Run a program: `daifu run`."""
    parsed = parse_run(words)
    if parsed.help:
        print(RUN_HELP, end="")
        return 0
    # In the environment, so that child processes do the same; absolute, because the program may change its directory.
    if parsed.playbook is not None:
        os.environ[policy.PLAYBOOK_VARIABLE] = os.path.abspath(parsed.playbook)
    if parsed.journal is not None:
        os.environ[journal.VARIABLE] = os.path.abspath(parsed.journal)
    if parsed.retry_limit is not None:
        os.environ[repetition.VARIABLE] = parsed.retry_limit
    if parsed.attach:
        os.environ[attaching.VARIABLE] = "1"
    if parsed.hold_timeout is not None:
        os.environ[attaching.TIMEOUT] = parsed.hold_timeout
    if parsed.on_timeout is not None:
        os.environ[attaching.ON_TIMEOUT] = parsed.on_timeout
    settings.check()
    settings.configure(
        hold_through=filters.names_in(parsed.hold_through) if parsed.hold_through else None,
        leave_to=filters.names_in(parsed.leave_to) if parsed.leave_to else None,
        hold_keyboard_interrupt=parsed.keyboard_interrupt,
        pause_signal=parsed.pause_signal,
    )
    frontends.register()
    policy.prepare()
    return launch.run(parsed.target, parsed.arguments, as_module=parsed.as_module, scope=parsed.scope)


def show_log(words: Sequence[str]) -> int:
    """Print the journal: `daifu log`."""
    if any(word in HELP_FLAGS for word in words):
        print(LOG_HELP, end="")
        return 0
    if len(words) > 1 or any(word.startswith("-") for word in words):
        raise UsageError("`daifu log` takes one FILE, or nothing")
    for text in log.read(words[0] if words else journal.path()):
        print(text)
    return 0
