"""What the tests of the install layer share."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest

from daifu_bc.install import importer, vaccinate
from daifu_bc.install.scope import Scope
from daifu_bc.rewrite import barrier

TEN_SECONDS = 10**10  # in nanoseconds


def is_vaccinated(thing: object) -> bool:
    """Tell whether a function or a code object has barriers."""
    code = thing.__code__ if isinstance(thing, FunctionType) else thing
    assert isinstance(code, CodeType)
    return barrier.is_vaccinated(code)


def age(path: Path) -> None:
    """Let a file look older: one that has changed only just is not cached, as it may change again within a tick."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns - TEN_SECONDS, status.st_mtime_ns - TEN_SECONDS))


class Project:
    """A folder with modules, which is a project and on `sys.path`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scope = Scope("project", root=str(folder))
        self.modules: set[str] = set()

    def write(self, name: str, text: str = "def f():\n    return len('abc')\n") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        age(path)
        importlib.invalidate_caches()
        return path

    def load(self, name: str) -> ModuleType:
        """Import a module anew."""
        for loaded in [
            loaded for loaded in sys.modules if loaded.partition(".")[0] == name.partition(".")[0]
        ]:
            del sys.modules[loaded]
        self.modules.add(name.partition(".")[0])
        return importlib.import_module(name)

    def caches(self) -> list[Path]:
        return sorted(self.folder.rglob("*-daifu-*.pyc"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A fresh project; what it imported is forgotten afterwards."""
    folder = tmp_path / "project"
    folder.mkdir()
    made = Project(folder)
    made.write("pyproject.toml", "")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(vaccinate, "first_call", None)
    yield made
    importer.uninstall()
    for name in [name for name in sys.modules if name.partition(".")[0] in made.modules]:
        del sys.modules[name]
    importlib.invalidate_caches()
