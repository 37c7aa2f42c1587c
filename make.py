#!/usr/bin/env python3
"""Set up an environment of its own and run a task in it; needs nothing but Python 3.11 or newer.

    python3 make.py demo [ARGUMENT ...]    the demonstration: a training run that crashes, is repaired and goes on
    python3 make.py test [ARGUMENT ...]    the tests (arguments go to pytest)
    python3 make.py core [ARGUMENT ...]    the tests that need no torch
    python3 make.py check                  linter, formatter and type checker

`--python PATH` or `--python 3.13` in front of the task chooses the interpreter. The environments are folders `.venv-*`
beside this file; they are made once, and again when pyproject.toml or the interpreter has changed.
"""

from __future__ import annotations

import argparse
import glob
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
PROBE = "import ensurepip, venv, sys; print('.'.join(map(str, sys.version_info[:2])), sys.executable)"

#: task -> (extras that it needs, name of its environment). The demonstration and the full tests share one.
TASKS = {
    "demo": ("demo,terminal,test", "full"),
    "test": ("demo,terminal,test", "full"),
    "core": ("terminal,test", "core"),
    "check": ("dev,terminal,test", "check"),
}


def probe(interpreter: str) -> tuple[str, str] | None:
    """Return the version and the path of an interpreter that can make environments, None if it cannot."""
    try:
        found = subprocess.run(
            [interpreter, "-I", "-c", PROBE], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version, _, path = found.stdout.strip().partition(" ")
    return (version, path) if version in VERSIONS else None


def candidates(version: str | None) -> Iterator[str]:
    """Yield interpreters to try: for a version those of that name, else 3.11 first (torch has most builds for it)."""
    names = [version] if version else ["3.11"]
    for name in names:
        for folder in os.get_exec_path():
            yield os.path.join(folder, f"python{name}")
        yield from sorted(
            glob.glob(os.path.expanduser(f"~/.pyenv/versions/{name}.*/bin/python{name}")), reverse=True
        )
    if version is None:
        yield sys.executable
        for name in VERSIONS:
            yield f"python{name}"


def choose(asked: str | None) -> tuple[str, str]:
    """Return version and path of the interpreter to use.

    Parameters:
        asked: a path, a version such as "3.13", or None for the best one at hand.

    Raises:
        SystemExit: there is none.
    """
    tries: Iterator[str] | list[str] = [asked] if asked and os.sep in asked else candidates(asked)
    for interpreter in tries:
        if (found := probe(interpreter)) is not None:
            return found
    wanted = asked or f"one of Python {', '.join(VERSIONS)}"
    raise SystemExit(
        f"make.py: found no usable interpreter ({wanted}, with the modules venv and ensurepip).\n"
        "         On Debian and Ubuntu: apt-get install python3 python3-venv"
    )


def environment(task: str, version: str, interpreter: str) -> Path:
    """Return the Python of the task's environment, which is made or renewed if need be."""
    extras, name = TASKS[task]
    folder = ROOT / f".venv-{name}-{version}"
    stamp = folder / "made-from"
    made_from = f"{interpreter}\n{extras}\n{(ROOT / 'pyproject.toml').read_text(encoding='utf-8')}"
    python = folder / "bin" / "python"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == made_from and python.exists():
        return python
    print(
        f"make.py: making {folder.name} with Python {version} ({extras}); the first time takes a while",
        flush=True,
    )
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--editable", f"{ROOT}[{extras}]"]
    subprocess.run(install, check=True)
    stamp.write_text(made_from, encoding="utf-8")
    return python


def commands(task: str, python: Path, arguments: list[str]) -> list[list[str]]:
    """Return the command lines of a task."""
    run = [str(python), "-m"]
    if task == "demo":
        return [[str(python.with_name("daifu")), "demo", *arguments]]
    if task in ("test", "core"):
        return [[*run, "pytest", *arguments]]
    return [
        [*run, "ruff", "check", "."],
        [*run, "ruff", "format", "--check", "."],
        [*run, "mypy"],
        [*run, "mypy", "--python-version", "3.15"],
    ]


def main() -> int:
    """Run the task named on the command line; return its exit code, the first one that is not 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", help="interpreter to use: a path or a version")
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    version, interpreter = choose(options.python)
    try:
        python = environment(options.task, version, interpreter)
    except subprocess.CalledProcessError as error:
        print(f"make.py: could not make the environment: {error}", file=sys.stderr)
        return 1
    lines = commands(options.task, python, options.arguments)
    if len(lines) == 1:  # become the task, so that the terminal and its signals are the task's alone
        os.chdir(ROOT)
        os.execv(lines[0][0], lines[0])
    codes = [subprocess.run(line, cwd=ROOT, check=False).returncode for line in lines]
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
