"""Importing vaccinated modules from the cache, in fresh processes; plain processes run in turns with the others."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.pairs import FOLDER

BOUND = 1.2
MODULES = 40
PACKAGE = "generated"
#: Modules of the standard library whose copies make another package.
LIBRARY = [
    "argparse",
    "ast",
    "bdb",
    "calendar",
    "cmd",
    "code",
    "codeop",
    "colorsys",
    "configparser",
    "contextlib",
    "copy",
    "csv",
    "dataclasses",
    "difflib",
    "dis",
    "filecmp",
    "fractions",
    "ftplib",
    "getpass",
    "gettext",
    "glob",
    "gzip",
    "heapq",
    "imaplib",
    "mailbox",
    "optparse",
    "pdb",
    "pickle",
    "pickletools",
    "pprint",
    "queue",
    "random",
    "shlex",
    "smtplib",
    "socketserver",
    "statistics",
    "tarfile",
    "textwrap",
    "tokenize",
    "zipapp",
]

MODULE = '''
"""A module that was generated."""

import os
from collections import OrderedDict

LIMIT = {number}


def read{number}(path, *, strict=True):
    """Read what is there."""
    found = []
    try:
        with open(path) as file:
            for line in file:
                line = line.strip()
                if not line and strict:
                    raise ValueError(path)
                found.append(line)
    except OSError:
        return None
    finally:
        count = len(found)
    return found[:count]


class Table{number}:
    """A class with some methods."""

    names = ("a", "b", "c")

    def __init__(self, rows):
        self.rows = [row for row in rows if row]
        self.index = OrderedDict((row[0], row) for row in self.rows)

    @property
    def size(self):
        return sum(len(row) for row in self.rows) + LIMIT

    def find(self, key, default=None):
        while key not in self.index:
            key = os.path.dirname(key)
            if not key:
                return default
        return self.index[key]

    def walk(self):
        for row in self.rows:
            for cell in row:
                if cell is None:
                    continue
                yield cell, {{name: row for name in self.names}}

    async def fetch(self, source):
        async with source as stream:
            async for part in stream:
                self.rows.append(part)
                await stream.acknowledge(part, limit=LIMIT * {number})
'''

#: Run in each process; argument: whether our importer is installed. All import daifu_bc and what the copies import.
PROCESS = f"""
import gc, sys, time
import daifu_bc
import {", ".join(LIBRARY)}
from daifu_bc.install import importer
from daifu_bc.install.scope import Scope
if sys.argv[1] == "1":
    importer.install(Scope("packages", packages=("{PACKAGE}",)))
gc.collect()  # else a collection of all that is there may fall into one of the runs only
start = time.process_time()
import {PACKAGE}
taken = time.process_time() - start
from daifu_bc.rewrite.barrier import is_vaccinated
function = next(value for value in vars({PACKAGE}.m1).values() if hasattr(value, "__code__") and value.__module__ == "{PACKAGE}.m1")
assert is_vaccinated(function.__code__) == (sys.argv[1] == "1")
print(taken)
"""


def generate(folder: Path) -> None:
    """Write a package of short functions full of `with`, `for` and `async`: nothing grows more."""
    _write(
        folder,
        ["".join(MODULE.format(number=f"{n}{part}") for part in ("", 7, 8)) for n in range(1, MODULES + 1)],
    )


def copy_library(folder: Path) -> None:
    """Write a package of copies of the standard library's modules."""
    sources = [inspect.getsource(importlib.import_module(name)) for name in LIBRARY]
    _write(folder, sources)


def _write(folder: Path, sources: list[str]) -> None:
    package = folder / PACKAGE
    package.mkdir()
    for number, source in enumerate(sources, 1):
        (package / f"m{number}.py").write_text(source, encoding="utf-8")
    lines = [f"from {PACKAGE} import m{number}\n" for number in range(1, len(sources) + 1)]
    (package / "__init__.py").write_text("".join(lines), encoding="utf-8")


def seconds(folder: Path, *, vaccinated: bool) -> float:
    """CPU seconds that the import takes in a new process."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DAIFU"))
    }
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), str(FOLDER.parent)])
    environment["DAIFU_ATTACH"] = "0"
    command = [sys.executable, "-c", PROCESS, "1" if vaccinated else "0"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    return float(done.stdout)


def start_up(program: Path, *, ours: bool) -> float:
    """CPU seconds of a whole process that runs an empty program."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DAIFU"))
    }
    environment["PYTHONPATH"] = str(FOLDER.parent)
    command = [sys.executable, *(["-m", "daifu_bc", "run"] if ours else []), str(program)]
    before = os.times()
    subprocess.run(command, env=environment, check=True, timeout=120)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def measure(quick: bool) -> list[Figure]:
    """From the cache, and for the first time; and what starting a program by the command takes."""
    rounds = 7 if quick else 15
    figures = _imports("copies of modules of the standard library", copy_library, rounds)
    figures += _imports("generated modules of short functions", generate, rounds)
    return [*figures, _starts(rounds)]


def _imports(what: str, write: Callable[[Path], None], rounds: int) -> list[Figure]:
    figure = Figure("importing", f"{MODULES} {what}, from the cache", "ratio", [], BOUND, plain_unit="ms")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        seconds(folder, vaccinated=False)
        first = seconds(folder, vaccinated=True)
        for _ in range(rounds):
            plain = seconds(folder, vaccinated=False)
            ours = seconds(folder, vaccinated=True)
            again = seconds(folder, vaccinated=False)
            # The plain runs lie on both sides of ours: what changes slowly in between falls out.
            figure.plain.append(plain * 1e3)
            figure.values.append(ours * 2 / (plain + again))
            figure.control.append(again / plain)
    return [figure, Figure("importing", f"the {what}, for the first time", "ms", [first * 1e3])]


def _starts(rounds: int) -> Figure:
    name = "`daifu run` of an empty program, more than `python`"
    figure = Figure("importing", name, "ms", [], plain_unit="ms")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text("", encoding="utf-8")
        start_up(program, ours=True)
        for _ in range(rounds):
            alone = start_up(program, ours=False)
            figure.plain.append(alone * 1e3)
            figure.values.append((start_up(program, ours=True) - alone) * 1e3)
            figure.control.append((start_up(program, ours=False) - alone) * 1e3)
    return figure
