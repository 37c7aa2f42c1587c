"""The command `daifu`: run a program so that its crashes are held, read the journal, see a demonstration."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import io
import os
import sys
from collections.abc import Sequence
from typing import cast

from daifu_bc import frontends, run_options
from daifu_bc.errors import DaifuError, UsageError
from daifu_bc.frontends import exit_codes, log
from daifu_bc.frontends.values import printable
from daifu_bc.help_texts import HelpText, read
from daifu_bc.install import launch, settings
from daifu_bc.recovery import journal, last_will, notification, policy
from daifu_bc.run_options import HELP_FLAGS, RunArguments

HELP = """\
usage: daifu run [options] script.py [arguments]
       daifu run [options] -m module [arguments]
       daifu ps | attach [PID] | do PID 'WORDS' ... | pause PID | debug PID
       daifu log [FILE]
       daifu demo
       daifu completion bash|zsh|fish
       daifu --help | help COMMAND | help man | --version

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
With neither, a crash waits for somebody, half an hour if nobody comes; then the exception goes on:
  daifu run --no-attach train.py        it goes on at once, as without daifu
  daifu ps                              which runs you have, and where they are held
  daifu attach PID                      the prompt of one of them, from another terminal
  daifu debug PID                       the same in VS Code
  daifu pause PID                       stop one that has not crashed, at its next statement
What was held and done is in a journal:
  daifu log                             read it

`daifu run --help` tells the options of run, `daifu help man` prints a manual page.
"""

HELP_HELP = """\
usage: daifu help [COMMAND|man]

Prints what `daifu --help` or `daifu COMMAND --help` prints. With `man` it is a manual page of all that:
  daifu help man | man -l -
  daifu help man > ~/.local/share/man/man1/daifu.1
"""

LOG_HELP = """\
usage: daifu log [FILE]

Prints the journal readably: every hold, and what was done about it. Without FILE it is the journal that
DAIFU_JOURNAL names, or the user's own.
  daifu log | tail -20                  what happened last
  daifu log journal.jsonl               of a run with --journal journal.jsonl
"""

#: Commands that are functions of modules in `daifu_bc.frontends`.
_FOR_RUNS = {
    "ps": ("client", "show_runs"),
    "attach": ("client", "attach"),
    "debug": ("client", "debug"),
    "do": ("client", "do"),
    "pause": ("pausing", "pause"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = words.pop(0) if words else "--help"
    try:
        if command == "run" and not (parsed := run_options.parse(words)).help:
            return run(words, parsed)
        return _shown(command, words)
    except DaifuError as error:
        return _failed(str(error), exit_codes.USAGE)


def _shown(command: str, words: list[str]) -> int:
    """Run a command that shows something, and return its exit code; whatever becomes of what it shows."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # it may be any text
    try:
        code = _run_command(command, words)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader (`daifu log | head`) has enough
        _write_nothing_more()
        return exit_codes.BROKEN_PIPE
    except OSError as error:
        _write_nothing_more()
        return _failed(str(error), exit_codes.FAILED)
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED


def _failed(text: str, code: int) -> int:
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # it is closed, or full
            print(f"daifu: {printable(text)}", file=sys.stderr, flush=True)
    return code


def _write_nothing_more() -> None:
    """Have the interpreter not complain at its end of what it cannot write."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run_command(command: str, words: list[str]) -> int:
    if command in HELP_FLAGS or command == "help":
        return show_help(words)
    if command == "--version":
        print(f"daifu_bc {version()}")
        return 0
    if command == "run":
        print(run_options.help_text(), end="")
        return 0
    if command == "log":
        return show_log(words)
    if command == "completion":
        return show_completion(words)
    if command in _FOR_RUNS:
        # The prompt is not imported for the other commands.
        module, name = _FOR_RUNS[command]
        return cast(int, getattr(importlib.import_module(f"daifu_bc.frontends.{module}"), name)(words))
    if command == "demo":
        # It needs the libraries of an extra, which the other commands do without.
        return cast(int, importlib.import_module("daifu_bc.demo").main(words))
    hint = f" To run a program, write `daifu run {command}`." if os.path.exists(command) else ""
    raise UsageError(f"there is no command {command!r}.{hint} `daifu --help` tells what there is")


def help_texts() -> list[HelpText]:
    """Return what each command says of itself."""
    found = []
    for command in ("run", *_FOR_RUNS, "log", "demo", "completion", "help"):
        with contextlib.redirect_stdout(io.StringIO()) as text:
            _run_command(command, ["--help"])
        found.append(read(command, text.getvalue()))
    return found


def show_help(words: Sequence[str]) -> int:
    """Print a help text, or the manual page: `daifu help`."""
    if words[:1] == ["--help"]:
        print(HELP_HELP, end="")
        return 0
    if len(words) > 1:
        raise UsageError("`daifu help` takes one COMMAND, or nothing")
    if words == ["man"]:
        print(importlib.import_module("daifu_bc.manual").page(HELP, help_texts(), version()), end="")
        return 0
    known = {one.command: one.text for one in help_texts()} if words else {}
    if words and words[0] not in known:
        raise UsageError(f"there is no command {words[0]!r}; `daifu --help` tells what there is")
    print(known[words[0]] if words else HELP, end="")
    return 0


def show_completion(words: Sequence[str]) -> int:
    """Print what a shell needs to complete the command line: `daifu completion`."""
    completion = importlib.import_module("daifu_bc.shell_completion")
    if any(word in HELP_FLAGS for word in words):
        print(completion.HELP, end="")
    elif words == [completion.PIDS]:
        print(*completion.pids(), sep="\n")
    elif len(words) == 1:
        print(completion.script(words[0], help_texts()), end="")
    else:
        raise UsageError("`daifu completion` takes the name of a shell; `daifu completion --help` tells more")
    return 0


def version() -> str:
    """Return the version of the installed package."""
    try:
        return importlib.metadata.version("daifu_bc")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def run(words: Sequence[str], parsed: RunArguments) -> int:
    """Run a program: `daifu run`.

    Args:
        words: what it was asked to do.
        parsed: the same, understood.
    """
    # In the environment, so that child processes do the same.
    os.environ.update(parsed.environment)
    if notification.ADDRESS in parsed.environment:
        _hide_webhook(list(words))
    settings.check()
    frontends.register()
    policy.prepare()
    last_will.prepare()
    return launch.run(parsed.target, parsed.arguments, as_module=parsed.as_module, scope=parsed.scope)


def _hide_webhook(words: list[str]) -> None:
    """Begin anew without the webhook: everybody can see the words that a process was started with, but not its variables.

    Raises:
        UsageError: it cannot be done.
    """
    before = sys.orig_argv[1 : len(sys.orig_argv) - len(words)]
    if sys.orig_argv[len(before) + 1 :] == words and sys.executable:
        try:
            os.execv(sys.executable, [sys.executable, *before, *run_options.without(words, "webhook")])
        except OSError:
            pass
    raise UsageError("others could see the webhook", remedy=f"Set {notification.ADDRESS} instead.")


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
