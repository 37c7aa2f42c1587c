"""What holds for every test: a clean environment before it, and nothing of ours left behind after it."""

from __future__ import annotations

import asyncio  # noqa: F401 - before the engine, which prepares for it
import importlib.util
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

import daifu_bc
from daifu_bc.install import importer, vaccine
from tests.attaching import Programs

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent

# How long a test's threads and child processes may take to end after it.
PATIENCE = 5.0

# Programs under test are compiled and run several times per example, so no example has a deadline.
COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
settings.register_profile("default", COMMON)
# A dozen properties on five versions make some fifteen thousand programs.
settings.register_profile("ci", COMMON, max_examples=250, derandomize=True, print_blob=True, database=None)
settings.register_profile("long", COMMON, max_examples=20_000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default"))


# Loaded by whichever test holds first, the engine would go on waiting for libraries in all that follow.
daifu_bc._load_engine()
importer.uninstall()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests marked `torch` where torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        for item in items:
            if item.get_closest_marker("torch"):
                item.add_marker(pytest.mark.skip(reason="needs torch: install the extra `demo`"))


def interpreter_state() -> dict[str, object]:
    """Return what of the interpreter's global state a test must leave as it was."""
    state: dict[str, object] = {
        "trace function": sys.gettrace(),
        "profile function": sys.getprofile(),
        "trace function of new threads": threading.gettrace(),
        "sys.excepthook": sys.excepthook,
        "threading.excepthook": threading.excepthook,
        "recursion limit": sys.getrecursionlimit(),
        "working directory": os.getcwd(),
        "import hooks of daifu_bc": [
            hook for hook in sys.meta_path if type(hook).__module__.partition(".")[0] == "daifu_bc"
        ],
        "what loaders give out": (SourceFileLoader.get_code, SourcelessFileLoader.get_code),
    }
    if hasattr(sys, "monitoring"):
        state["monitoring tools"] = [sys.monitoring.get_tool(number) for number in range(6)]
    return state


def leftovers(threads_before: set[threading.Thread]) -> list[object]:
    """Return the threads and child processes that are still there, after a while in which they may end."""
    deadline = time.monotonic() + PATIENCE
    while True:
        rest: list[object] = [thread for thread in threading.enumerate() if thread not in threads_before]
        rest += multiprocessing.active_children()
        if not rest or time.monotonic() > deadline:
            return rest
        time.sleep(0.01)


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    """Processes that are run in the test's folder, and reached as from another terminal."""
    # A socket's path has hardly more than a hundred characters.
    with tempfile.TemporaryDirectory(prefix="daifu") as runtime:
        made = Programs(tmp_path, Path(runtime))
        yield made
        made.close()


@pytest.fixture(autouse=True)
def clean_slate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Give the test an environment without our variables; see that it leaves hooks and threads as they were."""
    for name in list(os.environ):
        if name == "DAIFU" or name.startswith("DAIFU_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    # No socket, and nobody waits for somebody who attaches, but where that is what is tested.
    monkeypatch.setenv("DAIFU_ATTACH", "0")
    # Child processes find the package wherever they are started, and may cache what they compile.
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    # What waits for an import stays in the process; tests that want it put it in, and take it out, themselves.
    monkeypatch.setattr(vaccine, "starters", [])
    monkeypatch.setattr(vaccine, "beginners", [])
    threads_before = set(threading.enumerate())
    before = interpreter_state()
    assert before.get("monitoring tools", []) in ([], [None] * 6)
    yield
    after = interpreter_state()
    changed = {name: (value, after[name]) for name, value in before.items() if after[name] != value}
    assert not changed, f"the test left the interpreter changed (before, after): {changed}"
    assert not leftovers(threads_before), "the test left threads or processes behind"
