"""Which code is in scope."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

import pytest

import daifu_bc
from daifu_bc.errors import UsageError
from daifu_bc.install.scope import Scope, is_library, project_root

OUR_FOLDER = Path(daifu_bc.__file__).parent


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("marker", ["pyproject.toml", "setup.py", ".git/HEAD"])
def test_root_is_the_nearest_marked_folder(tmp_path: Path, marker: str) -> None:
    write(tmp_path / "pyproject.toml")
    write(tmp_path / "inner" / marker)
    script = write(tmp_path / "inner" / "scripts" / "deep" / "train.py")
    assert project_root(str(script)) == str(tmp_path / "inner")


def test_root_without_a_marker_is_the_folder(tmp_path: Path) -> None:
    assert project_root(str(write(tmp_path / "train.py"))) == str(tmp_path)


def test_root_without_a_marker_is_where_the_package_lies(tmp_path: Path) -> None:
    write(tmp_path / "package" / "__init__.py")
    write(tmp_path / "package" / "inner" / "__init__.py")
    assert project_root(str(write(tmp_path / "package" / "inner" / "train.py"))) == str(tmp_path)


def test_a_home_folder_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / ".git" / "HEAD")
    assert project_root(str(write(tmp_path / "work" / "train.py"))) == str(tmp_path / "work")


@pytest.mark.parametrize("name", ["<stdin>", "<ipython-input-1>", json.__file__, "/no/such/file.py"])
def test_root_of_what_is_no_project_file_is_that_of_the_working_directory(tmp_path: Path, name: str) -> None:
    write(tmp_path / "setup.py")
    (tmp_path / "inner").mkdir()
    with contextlib.chdir(tmp_path / "inner"):
        assert project_root(name) == str(tmp_path)


def test_root_of_an_installed_program_is_that_of_the_working_directory(tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        assert project_root(sys.executable) == str(tmp_path)


def test_libraries(tmp_path: Path) -> None:
    assert is_library(json.__file__)
    assert is_library(pytest.__file__)
    assert is_library(str(OUR_FOLDER / "errors.py"))
    assert is_library("/usr/lib/python3/dist-packages/numpy/__init__.py")
    assert not is_library(str(tmp_path / "train.py"))


def test_project(tmp_path: Path) -> None:
    scope = Scope("project", root=str(tmp_path))
    assert scope.covers("train", str(tmp_path / "train.py"))
    assert scope.covers("package.inner", str(tmp_path / "package" / "inner.py"))
    assert not scope.covers("other", str(tmp_path) + "-other/train.py")
    assert not scope.covers("up", str(tmp_path / ".." / "up.py"))
    assert not scope.covers("numpy", str(tmp_path / ".venv/lib/python3.11/site-packages/numpy/__init__.py"))
    assert not scope.covers("json", json.__file__)
    assert not scope.covers("typed", "<stdin>")
    with contextlib.chdir(tmp_path):
        assert scope.covers("train", "train.py")


def test_project_behind_a_link(tmp_path: Path) -> None:
    write(tmp_path / "real" / "train.py")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for root, folder in (("real", "link"), ("link", "real")):
        assert Scope("project", root=str(tmp_path / root)).covers(
            "train", str(tmp_path / folder / "train.py")
        )


def test_daifu_itself_is_never_covered() -> None:
    for scope in (
        Scope("all"),
        Scope("packages", packages=("daifu_bc",)),
        Scope("project", root=str(OUR_FOLDER.parent)),
    ):
        assert not scope.covers("daifu_bc.errors", str(OUR_FOLDER / "errors.py"))
        assert not scope.covers("renamed", str(OUR_FOLDER / "errors.py"))
        assert not scope.covers("__main__", str(OUR_FOLDER / "__main__.py"))


def test_packages() -> None:
    scope = Scope("packages", packages=("json", "one.two"))
    assert scope.covers("json", json.__file__)
    assert scope.covers("json.decoder", json.__file__)
    assert not scope.covers("jsonx", "/x/jsonx.py")
    assert scope.covers("one.two.three", "/x/one/two/three.py")
    assert not scope.covers("one", "/x/one/__init__.py")
    assert scope.covers("__main__", "/x/train.py"), "a program that is run is always meant"
    assert not scope.covers("__main__", json.__file__)


def test_all() -> None:
    assert Scope("all").covers("json", json.__file__)
    assert not Scope("all").covers("importlib.util", os.__file__)


def test_what_a_user_writes(tmp_path: Path) -> None:
    script = str(write(tmp_path / "train.py"))
    assert Scope.of("project", script) == Scope("project", root=str(tmp_path))
    assert Scope.of("all", script) == Scope("all")
    assert Scope.of("function", script) == Scope("function")
    assert Scope.of(["one", "two"], script) == Scope("packages", packages=("one", "two"))


@pytest.mark.parametrize("argument", ["mypackage", [], [""], [1]])
def test_what_is_no_scope(argument: object) -> None:
    with pytest.raises(UsageError, match="list of package names"):
        Scope.of(argument, "x.py")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "scope",
    [
        Scope("all"),
        Scope("function"),
        Scope("project", root="/some/where: there"),
        Scope("packages", packages=("one", "two.three")),
    ],
    ids=repr,
)
def test_a_child_gets_the_same_scope(scope: Scope) -> None:
    again = Scope.decode(scope.encode(), "x.py")
    assert again == scope
    assert hash(again) == hash(scope)


def test_a_user_may_put_words_into_the_environment(tmp_path: Path) -> None:
    script = str(write(tmp_path / "train.py"))
    for text in ("", "project"):
        assert Scope.decode(text, script) == Scope("project", root=str(tmp_path))
    assert Scope.decode("one, two", script) == Scope("packages", packages=("one", "two"))
