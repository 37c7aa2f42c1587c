"""Programs that change what everything stands on: the builtin functions, the standard streams."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.playing import ROOT, TIMEOUT_SECONDS, play, python

FORBIDDING = """
import builtins
real = builtins.__import__
def hook(name, *rest):
    if name != 'sys':
        raise ImportError(f'{name} is forbidden')
    return real(name, *rest)
def f():
    return {}['k']
def handled():
    try:
        f()
    except KeyError:
        print('handled')
def cleaned():
    try:
        f()
    finally:
        builtins.__import__ = real
builtins.__import__ = hook
handled()
try:
    cleaned()
except Exception as error:
    print(repr(error), error.__context__)
"""


@pytest.mark.parametrize("words", [None, "raise"])
def test_an_import_function_that_refuses(words: str | None, tmp_path: Path) -> None:
    ended = play(tmp_path, FORBIDDING, words)
    assert (ended.returncode, ended.stdout) == (0, "handled\nKeyError('k') None\n"), ended.stderr


REPLACED = """
import builtins
def f():
    x = {}['k']
    return x
def silent(*values, **options):
    raise RuntimeError('not here')
write = __import__('os').write
builtins.print = silent
write(1, f())
"""


def test_a_print_of_the_program_s_own(tmp_path: Path) -> None:
    ended = play(tmp_path, REPLACED, "x = b'1'\nskip")
    assert (ended.returncode, ended.stdout) == (0, "1"), ended.stderr
    assert "going on at line 5: return x\n" in ended.stderr


@pytest.mark.parametrize("name", ["id", "issubclass", "set", "vars"])
def test_the_program_s_exception_is_seen(name: str, tmp_path: Path) -> None:
    program = REPLACED.replace("builtins.print", f"builtins.{name}")
    ended = play(tmp_path, program, None)
    assert ended.returncode == 1
    assert ended.stderr.startswith("Traceback (most recent call last):\n"), ended.stderr
    assert ended.stderr.endswith("\nKeyError: 'k'\n"), ended.stderr
    assert "RuntimeError" not in ended.stderr


CRASH = "def f():\n    x = {}['k']\n    return x\n"


def test_an_output_that_is_missing(tmp_path: Path) -> None:
    program = f"import os, sys\n{CRASH}del sys.stdout\nx = f()\nos.write(1, b'%d %d' % (x, hasattr(sys, 'stdout')))\n"
    ended = play(tmp_path, program, "x = 1\nskip")
    assert (ended.returncode, ended.stdout) == (0, "1 0"), ended.stderr


@pytest.mark.parametrize("way", ["closed", "full", "nobody reads"])
def test_a_standard_error_that_takes_nothing(way: str, tmp_path: Path) -> None:
    closing = "import os\nos.close(2)\n" if way == "closed" else ""
    (tmp_path / "program.py").write_text(f"{closing}{CRASH}print(f())\n")
    (tmp_path / "playbook").write_text("x = 1\nskip\n")
    if way == "nobody reads":
        reading, stderr = os.pipe()
        os.close(reading)
    else:
        stderr = os.open("/dev/full" if way == "full" else os.devnull, os.O_WRONLY)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "daifu_bc", "run", "--playbook", "playbook", "program.py"],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "DAIFU_ATTACH": "0"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    finally:
        os.close(stderr)
    assert (ended.returncode, ended.stdout) == (0, b"1\n")


MODULES = """
import importlib.util, sys, types
def lazy(name):
    spec = importlib.util.find_spec(name)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
class Refusing(types.ModuleType):
    def __getattr__(self, name):
        raise ImportError(name)
    @property
    def __dict__(self):
        raise RuntimeError('no')
lazy('heavy')
sys.modules['refusing'] = Refusing('refusing')
sys.modules['strange'] = object()
sys.modules['none'] = None
def f():
    return {}['k']
print(f())
"""


def test_modules_are_not_asked_what_file_they_are_from(tmp_path: Path) -> None:
    (tmp_path / "heavy.py").write_text("print('loaded')\n")
    edit = (
        "p = __import__('pathlib').Path('program.py')\n!p.write_text(p.read_text().replace(\"{}['k']\", '2'))"
    )
    ended = play(tmp_path, MODULES, f"{edit}\nsurgery\npass")
    assert (ended.returncode, ended.stdout) == (0, "2\n"), ended.stderr


@pytest.mark.parametrize("module", ["refusing", "strange", "none"])
def test_a_function_of_a_module_that_has_none(module: str, tmp_path: Path) -> None:
    (tmp_path / "heavy.py").write_text("")
    ended = play(tmp_path, MODULES, f"surgery {module}.g <<END\ndef g(): return 3\nEND")
    assert f"{module}.g is no function that can be found from here." in ended.stderr
    assert ended.stderr.endswith("KeyError: 'k'\n"), ended.stderr


ZIPPED = "import helper\nprint(helper.f({}), helper.g({}))\n"
HELPER = "def f(d):\n    return d['k']\ndef g(d):\n    return d['h']\n"


def test_a_program_in_a_zip_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "program.zip", "w") as archive:
        archive.writestr("__main__.py", ZIPPED)
        archive.writestr("helper.py", HELPER)
    words = "list\nd['k'] = 1\npass\n---\nsurgery g <<END\ndef g(d):\n    return d.get('h', 2)\nEND\npass\n"
    (tmp_path / "playbook").write_text(words)
    command = ["-m", "daifu_bc", "run", "--playbook", "playbook", "program.zip"]
    ended = python(tmp_path, command, HOME=str(tmp_path))
    assert (ended.returncode, ended.stdout) == (0, "1 2\n"), ended.stderr
    assert "\n> 2      return d['k']\n" in ended.stderr


#: An abort in native code, as of Tcl when the garbage collector runs in another thread, is no exception.
ABORTS = """
import os, threading
def step(number):
    print("step", number, flush=True)
    if number == 2:
        os.abort()
def train():
    try:
        for number in range(4):
            step(number)
    finally:
        print("left")
thread = threading.Thread(target=train)
thread.start()
thread.join()
"""


def test_an_abort_ends_the_program_as_without_us(tmp_path: Path) -> None:
    """It cannot be held; `-X faulthandler` says where it was, in the lines of the program."""
    ended = play(tmp_path, ABORTS, "pass")
    assert (ended.returncode, ended.stdout) == (-signal.SIGABRT, "step 0\nstep 1\nstep 2\n")
    assert "-- daifu: hold" not in ended.stderr
    places = re.findall(r'File "[^"]*program\.py", line (\d+) in (\w+)', ended.stderr)
    assert places[:2] == [("6", "step"), ("10", "train")]
