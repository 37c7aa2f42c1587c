"""`daifu completion` in real shells, and the manual page: both say what the help texts say."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from daifu_bc import cli, shell_completion
from daifu_bc.frontends.commands import TABLE
from daifu_bc.install.options import OPTIONS
from daifu_bc.recovery import meeting, processes
from tests.running import ROOT

FLAGS = {*(f"--{option.name}" for option in OPTIONS), "--scope", "--help"}
COMMANDS = {"run", *cli._FOR_RUNS, "log", "demo", "completion", "help"}
#: Those that are not there on every machine.
SHELLS = [shell for shell in ("bash", "zsh", "fish") if shutil.which(shell)]
BASH = """
source ./completion.bash
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
compopt() { echo "compopt $*"; }
_daifu
printf '%s\\n' "${COMPREPLY[@]}"
"""


BASH_SCRIPT = shell_completion.script("bash", cli.help_texts())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the command, and some files in it."""
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "daifu"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m daifu_bc "$@"\n')
    command.chmod(0o755)
    (tmp_path / "completion.bash").write_text(BASH_SCRIPT)
    (tmp_path / "night.daifu").touch()
    (tmp_path / "train.py").touch()
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    kept = {"PYTHONPATH": str(ROOT), "HOME": str(folder), "PATH": path, "TERM": "dumb"}
    return kept | {name: os.environ[name] for name in ("XDG_RUNTIME_DIR",) if name in os.environ}


def in_bash(folder: Path, *words: str) -> list[str]:
    """What bash would offer for the last of some words."""
    command = ["bash", "--norc", "--noprofile", "-c", BASH, "bash", *words]
    done = subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


FILES = ["compopt -o default", ""]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["l"], ["log"]),
        (["run", "--hold-t"], ["--hold-through", "--hold-timeout"]),
        (["run", "--playbook", ""], FILES),
        (["run", "--playbook", "=", "ni"], FILES),
        (["run", "--playbook", "="], FILES),
        (["run", "--scope", ""], ["project", "all"]),
        (["run", "--scope", "=", "a"], ["all"]),
        (["run", "--retry-limit", ""], [""]),
        (["run", "--scope", "all", "--gra"], ["--grace"]),
        (["run", "--scope", "=", "all", "--gra"], ["--grace"]),
        (["run", "t"], FILES),
        (["run", "train.py", "--pla"], FILES),
        (["run", "-m", ""], [""]),
        (["run", "-m", "train", "--pla"], FILES),
        (["log", ""], FILES),
        (["log", "journal", ""], [""]),
        (["do", "--t"], ["--take"]),
        (["do", "4711", ""], [""]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["help", "ma"], ["man"]),
        (["walk", ""], [""]),
    ],
)
def test_bash_offers(folder: Path, words: list[str], offered: list[str]) -> None:
    assert in_bash(folder, "daifu", *words) == offered


def test_bash_offers_all_that_there_is(folder: Path) -> None:
    assert set(in_bash(folder, "daifu", "")) == {*COMMANDS, "--help", "--version"}
    assert set(in_bash(folder, "daifu", "run", "-")) == FLAGS


@pytest.fixture
def held_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The number of a process that has left a file as runs do."""
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    own = os.getpid()
    facts = {
        "pid": own,
        "identity": processes.identity(own),
        "namespace": processes.namespace(),
        "state": "running",
        "command": ["python"],
    }
    (Path(meeting.place()) / f"{own}.json").write_text(json.dumps(facts))
    return str(own)


def test_numbers_of_runs_are_offered(folder: Path, held_run: str) -> None:
    # The user may have other runs, too.
    offered = in_bash(folder, "daifu", "attach", "")
    assert held_run in offered
    assert all(number.isdecimal() for number in offered)
    assert held_run in in_bash(folder, "daifu", "do", "--take", held_run[:1])
    assert in_bash(folder, "daifu", "attach", "x") == [""]


STARTS = {
    "bash": ["--norc", "--noprofile", "-i"],
    "zsh": ["-f", "-i"],
}
LOADS = {
    "bash": 'bind "set bell-style none"; bind "set enable-bracketed-paste off"; PS1="ready> "; eval "$(daifu completion bash)"',
    "zsh": 'PS1="ready> "; autoload -Uz compinit && compinit -u -D && eval "$(daifu completion zsh)"; unsetopt beep zle_bracketed_paste',
}


#: What a shell puts behind an option that takes a value.
BEFORE_VALUE = {"bash": " ", "zsh": "="}


@pytest.mark.terminal
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell in LOADS])
def test_the_tab_key_completes(folder: Path, held_run: str, shell: str) -> None:
    child = pexpect.spawn(
        shell,
        STARTS[shell],
        cwd=str(folder),
        env=environment(folder),
        encoding="utf-8",
        timeout=20,
        dimensions=(40, 200),
    )
    child.delaybeforesend = None
    try:
        child.sendline(LOADS[shell] + "; echo load''ed")
        child.expect("loaded")
        child.expect("ready> ")
        for typed, completed in (
            ("daifu r\tx", "daifu run x"),
            ("daifu run --playb\tx", f"daifu run --playbook{BEFORE_VALUE[shell]}x"),
            ("daifu run --playbook ni\tx", "daifu run --playbook night.daifu x"),
            ("daifu run --playbook=ni\tx", "daifu run --playbook=night.daifu x"),
            ("daifu run --scope al\ttr\tx", "daifu run --scope all train.py x"),
            (f"daifu attach {held_run}\tx", f"daifu attach {held_run} x"),
            ("daifu completion ba\tx", "daifu completion bash x"),
        ):
            # What the line has become is printed, and not what stands on the screen.
            child.send(f"{typed}\x01echo '<\x05>'\r")
            child.expect(r"\r\n<(.*?)>\s*\r\n")
            assert child.match[1] == completed
            child.expect("ready> ")
    finally:
        child.close(force=True)


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell == "fish"])
def test_fish_offers(folder: Path, held_run: str, shell: str) -> None:
    def offered(line: str) -> set[str]:
        code = f"daifu completion fish | source; complete -C '{line}'"
        done = subprocess.run(
            [shell, "--no-config", "-c", code],
            cwd=folder,
            env=environment(folder),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert done.stderr == ""
        return {one.partition("\t")[0] for one in done.stdout.split("\n") if one}

    assert offered("daifu ") == COMMANDS
    assert offered("daifu run --") == FLAGS
    assert offered("daifu run --playbook ni") == {"night.daifu"}
    assert offered("daifu run --scope ") == {"project", "all"}
    assert "train.py" in offered("daifu run tr")
    assert held_run in offered("daifu attach ")
    assert offered("daifu completion ") == {"bash", "zsh", "fish"}


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "csh"]) == 2
    assert capsys.readouterr().err == "daifu: there is no completion for 'csh'. There is: bash, zsh, fish.\n"
    assert cli.main(["completion"]) == 2


def test_every_script_is_one_for_its_shell(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert cli.main(["completion", shell]) == 0
        text = capsys.readouterr().out
        assert all(re.search(rf"\b{command}\b", text) for command in COMMANDS)
        assert all(flag.removeprefix("--") in text for flag in FLAGS)
        if shutil.which(shell):
            checked = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True, timeout=60)
            assert (checked.returncode, checked.stderr) == (0, "")


def test_help_tells_of_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    overview = cli.HELP.partition("\n\n")[0]
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b", overview), command
        assert cli.main([command, "--help"]) == 0
        text = capsys.readouterr().out
        assert text.startswith(f"usage: daifu {command}")
        assert cli.main(["help", command]) == 0
        assert capsys.readouterr().out == text
    assert cli.main(["help", "walk"]) == 2


def test_the_manual_page_says_what_the_help_texts_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["help", "man"]) == 0
    source = capsys.readouterr().out
    shown = plain(source)
    texts = [
        cli.HELP.partition("\n\n")[2],
        *(one.text for one in cli.help_texts()),
        *(word.help() for word in TABLE),
    ]
    for text in texts:
        assert text.strip("\n") in shown
    for option in OPTIONS:
        assert option.variable in shown
    if shutil.which("groff"):
        command = ["groff", "-man", "-Tutf8", "-ww"]
        done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


def plain(source: str) -> str:
    """A manual page's source without what is meant for `man`: there is little of it."""
    lines = [line for line in source.split("\n") if not line.startswith(".")]
    text = "\n".join(line.removeprefix(r"\&") for line in lines)
    for escaped, character in ((r"\-", "-"), (r"\(aq", "'"), (r"\(ga", "`"), (r"\e", "\\")):
        text = text.replace(escaped, character)
    return text
