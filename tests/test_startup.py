"""Importing daifu_bc is light, and what was left out comes in time, or does no harm where it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import daifu_bc
from daifu_bc import integrations
from daifu_bc.install import importer
from daifu_bc.integrations import asyncio as asyncio_integration
from daifu_bc.recovery import verdict

#: What only a hold, or vaccinating, needs.
HEAVY = ("ast", "asyncio", "ctypes", "datetime", "difflib", "dis", "inspect", "json", "runpy", "traceback")
OURS_HEAVY = ("daifu_bc.analysis", "daifu_bc.rewrite", "daifu_bc.recovery.hold", "daifu_bc.recovery.verdict")

LOADED = f"""
import sys
before = set(sys.modules)
import daifu_bc
new = set(sys.modules) - before
print(sorted(new.intersection({HEAVY!r})), [name for name in sorted(new) if name.startswith({OURS_HEAVY!r})])
"""


def run(program: str, *, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program] if folder is None else [sys.executable, str(folder / "program.py")],
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_import_is_light() -> None:
    ended = run(LOADED)
    assert (ended.stdout, ended.stderr) == ("[] []\n", "")


def test_what_is_not_there_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        getattr(daifu_bc, "no_such_name")  # noqa: B009


PROGRAM = """
import sys
{before}
import daifu_bc
@daifu_bc.vaccinate(scope="function")
def f(state):
    return 10 // len(state)
{then}
try:
    f([])
    print("went on")
except ZeroDivisionError as error:
    print("came out", error.__context__)
print("daifu_bc.recovery.hold" in sys.modules, "_intercept" in vars(daifu_bc))
"""


def write(folder: Path, before: str = "", then: str = "") -> Path:
    (folder / "pyproject.toml").touch()
    (folder / "playbook").write_text("state.append(1)\npass\n")
    (folder / "program.py").write_text(PROGRAM.format(before=before, then=then))
    return folder


def test_nobody_answers(tmp_path: Path) -> None:
    ended = run("", folder=write(tmp_path))
    assert (ended.stdout, ended.stderr) == ("came out None\nFalse False\n", "")


FORGETS = (
    "for name in [name for name in vars(daifu_bc) if name in daifu_bc._ENGINE]: del vars(daifu_bc)[name]\n"
)
#: The program fails outside of every handler, so that it would be held.
HELD = PROGRAM.replace(
    'try:\n    f([])\n    print("went on")\nexcept', "print(f([]))\nif 0: pass\ntry: pass\nexcept"
)


def held(folder: Path, before: str = "", then: str = "") -> Path:
    write(folder)
    (folder / "program.py").write_text(HELD.format(before=before, then=then))
    return folder


@pytest.mark.parametrize("then", ["", FORGETS], ids=["loaded at the start", "loaded in the barrier"])
def test_somebody_answers(tmp_path: Path, then: str) -> None:
    ended = run("", folder=held(tmp_path, then=then), DAIFU_PLAYBOOK=str(tmp_path / "playbook"))
    assert ended.stdout == "10\nTrue True\n", ended.stderr


def test_it_is_there_before_there_is_no_room(tmp_path: Path) -> None:
    """A crash for want of file descriptors can be held, although nothing could be imported any more."""
    then = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))"
    folder = held(tmp_path, then="from daifu_bc.recovery import policy\npolicy.prepare()\n" + then)
    ended = run("", folder=folder, DAIFU_PLAYBOOK=str(tmp_path / "playbook"))
    assert ended.stdout == "10\nTrue True\n", ended.stderr


@pytest.mark.parametrize(
    ("failure", "told"),
    [("MemoryError", False), ("RecursionError", False), ("OSError(24, 'no more files')", True)],
)
def test_it_cannot_be_loaded(tmp_path: Path, failure: str, told: bool) -> None:
    then = FORGETS + f"def fails(name): raise {failure}\ndaifu_bc.import_module = fails\n"
    ended = run("", folder=held(tmp_path, then=then), DAIFU_PLAYBOOK=str(tmp_path / "playbook"))
    assert ended.stdout == ""
    assert ended.stderr.splitlines()[-1].startswith("ZeroDivisionError: "), ended.stderr
    assert ended.stderr.count("During handling") == 0
    assert ("daifu_bc: could not load what holds crashes: OSError" in ended.stderr) == told


def test_near_the_end_of_the_stack(tmp_path: Path) -> None:
    """Where there is no room to load anything the exception goes on, and an outer frame is held."""
    program = (
        """
import daifu_bc, sys
sys.setrecursionlimit(300)
state = []
@daifu_bc.vaccinate(scope="function")
def f(n):
    if state: return n
    return f(n + 1) + 0
"""
        + FORGETS
        + """
print(f(0) > 0)
"""
    )
    (write(tmp_path) / "program.py").write_text(program)
    ended = run("", folder=tmp_path, DAIFU_PLAYBOOK=str(tmp_path / "playbook"))
    assert ended.stdout == "True\n", ended.stderr[-2000:]


def test_at_the_end_of_the_interpreter(tmp_path: Path) -> None:
    then = (
        FORGETS
        + """
class Last:
    def __del__(self, f=f):
        try: f([])
        except ZeroDivisionError: print("its way", flush=True)
sys.last = Last()
sys.exit()
"""
    )
    ended = run("", folder=held(tmp_path, then=then), DAIFU_PLAYBOOK=str(tmp_path / "playbook"))
    assert "its way" in ended.stdout or not ended.stdout, ended.stderr
    assert ended.returncode == 0
    assert "Traceback" not in ended.stderr


THREADS = (
    """
import threading, sys
import daifu_bc
@daifu_bc.vaccinate(scope="function")
def f(state):
    return 10 // len(state)
"""
    + FORGETS
    + """
for name in [name for name in sys.modules if name.startswith("daifu_bc.recovery.") and name != "daifu_bc.recovery.policy"]:
    del sys.modules[name]
results = []
start = threading.Barrier(4)
def call():
    start.wait()
    try: f([])
    except ZeroDivisionError: results.append(1)
threads = [threading.Thread(target=call) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join(20)
print(len(results), all(name in vars(daifu_bc) for name in daifu_bc._ENGINE))
"""
)


def test_threads_load_it_at_once(tmp_path: Path) -> None:
    (write(tmp_path) / "program.py").write_text(THREADS)
    ended = run("", folder=tmp_path, DAIFU_PLAYBOOK=str(tmp_path / "playbook"))
    assert ended.stdout == "4 True\n", ended.stderr


def test_asyncio_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "deliveries", [])
    import asyncio

    assert asyncio.tasks is sys.modules["asyncio.tasks"]
    integrations.engine_loaded()
    assert verdict.deliveries == [asyncio_integration.routes]
    importer.uninstall()


def test_asyncio_is_known_when_it_comes_later() -> None:
    program = """
import sys, daifu_bc
@daifu_bc.vaccinate(scope="function")
def f(): return len("abc")
from daifu_bc.recovery import verdict
before = list(verdict.deliveries)
assert "asyncio" not in sys.modules
import asyncio
print([route.__module__ for route in verdict.deliveries if route not in before])
"""
    ended = run(program, DAIFU_PLAYBOOK="/nowhere")
    assert ended.stdout == "['daifu_bc.integrations.asyncio']\n", ended.stderr
