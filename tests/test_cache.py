"""Vaccinated code on disk."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import shutil
import stat
import sys
import time
from pathlib import Path

import pytest

from daifu_bc import __version__
from daifu_bc.install import cache, importer, vaccine
from tests.installing import TEN_SECONDS, Project, is_vaccinated, project

__all__ = ["project"]


def test_the_version_is_the_package_s() -> None:
    assert cache.OUR_VERSION == __version__


@pytest.fixture
def counted(project: Project, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules for which code was made; the importer is installed."""
    made: list[str] = []

    def count(code: object, place: str = "") -> object:
        made.append(Path(place).stem)
        return vaccine.vaccinated(code, place)  # type: ignore[arg-type]

    monkeypatch.setattr(importer, "vaccinated", count)
    importer.install(project.scope)
    return made


def test_the_second_import_comes_from_the_cache(project: Project, counted: list[str]) -> None:
    path = project.write("alpha.py")
    for _ in range(3):
        assert is_vaccinated(project.load("alpha").f)
    assert counted == ["alpha"]
    plain = Path(importlib.util.cache_from_source(str(path)))
    assert project.caches() == [plain.with_name(f"{plain.stem}-daifu-{__version__}.pyc")]
    assert plain.exists(), "the interpreter's own cache is as ever"
    importer.uninstall()
    assert not is_vaccinated(project.load("alpha").f)


@pytest.mark.parametrize("change", ["text", "time", "size"])
def test_a_changed_source_is_noticed(project: Project, counted: list[str], change: str) -> None:
    path = project.write("alpha.py")
    project.load("alpha")
    status = path.stat()
    text = path.read_text(encoding="utf-8")
    if change == "text":
        path.write_text(text.replace("abc", "xyz"), encoding="utf-8")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + TEN_SECONDS // 2))
    elif change == "size":
        path.write_text(text + "#\n", encoding="utf-8")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    else:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    project.load("alpha")
    project.load("alpha")
    assert counted == ["alpha", "alpha"]


def test_what_has_changed_only_just_is_not_kept(project: Project, counted: list[str]) -> None:
    """Within a tick of the file system's clock a file may change twice and look the same."""
    path = project.write("alpha.py", "x = 1\n")
    now = time.time_ns()
    os.utime(path, ns=(now, now))
    assert project.load("alpha").x == 1
    assert project.caches() == []
    path.write_text("x = 2\n", encoding="utf-8")
    os.utime(path, ns=(now, now))
    # The interpreter's own cache, which only knows seconds, is fooled.
    Path(importlib.util.cache_from_source(str(path))).unlink()
    assert project.load("alpha").x == 2


def test_a_source_that_goes_by_its_content(project: Project, counted: list[str]) -> None:
    """Its time and size say nothing (PEP 552)."""
    path = project.write("alpha.py", "x = 1\n")
    checked = py_compile.PycInvalidationMode.CHECKED_HASH
    py_compile.compile(str(path), invalidation_mode=checked, doraise=True)
    status = path.stat()
    for _ in range(2):
        assert project.load("alpha").x == 1
    assert counted == ["alpha"], "the same content comes from the cache"
    path.write_text("x = 2\n", encoding="utf-8")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert project.load("alpha").x == 2


def test_damage_is_ignored(project: Project, counted: list[str]) -> None:
    project.write("alpha.py")
    project.load("alpha")
    (path,) = project.caches()
    good = path.read_bytes()
    bad = [good[:length] for length in (0, 5, 20, len(good) // 2, len(good) - 1)]
    when_written = range(32, 40)  # damage there costs but the checksum
    for position in sorted({*range(0, len(good), max(1, len(good) // 60))}.difference(when_written)):
        bad.append(good[:position] + bytes([good[position] ^ 0x41]) + good[position + 1 :])
    for content in bad:
        counted.clear()
        path.write_bytes(content)
        module = project.load("alpha")
        assert module.f() == 3
        assert is_vaccinated(module.f)
        assert counted == ["alpha"]
        assert path.read_bytes()[:16] == good[:16], "it is written anew"


def test_a_copy_is_as_good(project: Project, counted: list[str]) -> None:
    project.write("alpha.py")
    project.load("alpha")
    (path,) = project.caches()
    path.write_bytes(path.read_bytes())
    assert is_vaccinated(project.load("alpha").f)
    assert counted == ["alpha"]


@pytest.mark.parametrize("other", ["version of ours", "build of the interpreter"])
def test_what_another_one_wrote_is_ignored(
    project: Project, counted: list[str], monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    project.write("alpha.py")
    project.load("alpha")
    (path,) = project.caches()
    foreign = path.read_bytes()
    cache._key.cache_clear()
    if other == "version of ours":
        monkeypatch.setattr(cache, "OUR_VERSION", "9.9")
        cached = cache.path_of(str(project.folder / "alpha.py"))
        assert cached is not None
        Path(cached).write_bytes(foreign)
    else:
        monkeypatch.setattr(sys, "version", "3.11.99 (another build)")
    try:
        assert is_vaccinated(project.load("alpha").f)
        assert counted == ["alpha", "alpha"]
    finally:
        cache._key.cache_clear()


def test_a_moved_folder(project: Project, counted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("first/alpha.py", "def f():\n    return f.__code__.co_filename\n")
    monkeypatch.syspath_prepend(str(project.folder / "first"))
    project.load("alpha")
    shutil.copytree(project.folder / "first", project.folder / "second", dirs_exist_ok=True)
    monkeypatch.syspath_prepend(str(project.folder / "second"))
    assert project.load("alpha").f() == str(project.folder / "second" / "alpha.py")
    assert counted == ["alpha", "alpha"]


def test_nothing_is_written_when_told_so(
    project: Project, counted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    project.write("alpha.py")
    assert is_vaccinated(project.load("alpha").f)
    assert not project.caches()


def test_a_cache_elsewhere(
    project: Project, counted: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "caches"))
    project.write("alpha.py")
    project.load("alpha")
    project.load("alpha")
    assert counted == ["alpha"]
    assert not project.caches()
    assert len(list((tmp_path / "caches").rglob("*-daifu-*.pyc"))) == 1


def test_an_interpreter_without_caches(
    project: Project, counted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.implementation, "cache_tag", None)
    project.write("alpha.py")
    assert is_vaccinated(project.load("alpha").f)
    assert cache.path_of("/x/alpha.py") is None


@pytest.mark.parametrize("obstacle", ["file in the way", "folder in the way"])
def test_a_cache_that_cannot_be_written(project: Project, counted: list[str], obstacle: str) -> None:
    path = project.write("alpha.py")
    if obstacle == "file in the way":
        (project.folder / "__pycache__").write_text("", encoding="utf-8")
    else:
        cached = cache.path_of(str(path))
        assert cached is not None
        Path(cached).mkdir(parents=True)
    for _ in range(2):
        assert is_vaccinated(project.load("alpha").f)
    assert counted == ["alpha", "alpha"]
    rest = [name for name in project.folder.rglob("*") if name.is_file() and "-daifu-" in name.name]
    assert not rest, "no half-written files stay"


def test_permissions_follow_the_source(project: Project, counted: list[str]) -> None:
    path = project.write("alpha.py")
    path.chmod(0o640)
    project.load("alpha")
    (cached,) = project.caches()
    assert stat.S_IMODE(cached.stat().st_mode) == 0o640


def test_optimised_code_has_its_own(project: Project) -> None:
    assert cache.path_of("/x/alpha.py") is not None
    plain = importlib.util.cache_from_source("/x/alpha.py", optimization=2)
    assert "opt-2" in plain


def test_no_state_without_a_file(tmp_path: Path) -> None:
    assert cache.state_of(str(tmp_path / "no.py")) is None
