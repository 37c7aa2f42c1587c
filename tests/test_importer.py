"""Modules are vaccinated as they are imported, and notice nothing."""

from __future__ import annotations

import importlib.machinery
import importlib.resources
import importlib.util
import inspect
import os
import py_compile
import runpy
import subprocess
import sys
import traceback
import zipfile
from pathlib import Path
from typing import Any

import pytest

from daifu_bc.analysis import sources
from daifu_bc.install import importer
from daifu_bc.install.scope import Scope
from tests.installing import Project, age, is_vaccinated, project

__all__ = ["project"]


def test_a_module_in_scope(project: Project) -> None:
    project.write("alpha.py", "def f():\n    def g():\n        return len('x')\n    return g\n")
    importer.install(project.scope)
    module = project.load("alpha")
    assert is_vaccinated(module.f)
    assert is_vaccinated(module.f())
    assert module.f()() == 1


def test_a_module_is_described_as_ever(project: Project) -> None:
    path = project.write("alpha.py", "x = len('x')\n")
    plain = project.load("alpha")
    importer.install(project.scope)
    module = project.load("alpha")
    assert set(vars(module)) == set(vars(plain))
    assert module.__file__ == plain.__file__ == str(path)
    assert module.__spec__ is not None
    assert plain.__spec__ is not None
    assert module.__spec__.cached == plain.__spec__.cached
    assert module.__spec__.origin == plain.__spec__.origin
    assert module.__spec__.has_location
    loader: Any = module.__loader__
    assert loader is module.__spec__.loader
    assert isinstance(loader, importlib.machinery.SourceFileLoader)
    assert inspect.getsource(module) == loader.get_source("alpha") == "x = len('x')\n"
    code = loader.source_to_code(path.read_bytes(), str(path))
    assert not is_vaccinated(code), "who compiles for a purpose of their own gets plain code"


def test_two_specs_of_a_module_are_equal(project: Project) -> None:
    project.write("twice.py", "def f(x): return 1 / x\n")
    importer.install(project.scope)
    first, second = importlib.util.find_spec("twice"), importlib.util.find_spec("twice")
    assert first is not second
    assert first == second
    # As without us: a loader compares by what it was made of.
    assert first is not None
    assert second is not None
    assert first.loader == second.loader
    plain: Any = importlib.machinery.SourceFileLoader("twice", first.origin or "")
    assert first.loader == plain
    assert project.load("twice").__loader__ == plain


def test_packages_and_namespace_packages(project: Project) -> None:
    project.write("package/__init__.py", "from . import inner\n")
    project.write("package/inner.py")
    project.write("package/data.txt", "data")
    project.write("space/inner.py")
    importer.install(project.scope)
    assert is_vaccinated(project.load("package").inner.f)
    assert importlib.resources.files("package").joinpath("data.txt").read_text(encoding="utf-8") == "data"
    space = project.load("space.inner")
    assert is_vaccinated(space.f)


def test_a_module_out_of_scope(project: Project) -> None:
    project.write("alpha.py")
    importer.install(Scope("project", root=str(project.folder / "elsewhere")))
    module = project.load("alpha")
    assert not is_vaccinated(module.f)
    loader: Any = module.__loader__
    assert type(loader) is importlib.machinery.SourceFileLoader
    importer.install(Scope("packages", packages=("alpha",)))
    assert is_vaccinated(project.load("alpha").f)


def test_the_loaders_are_as_ever_afterwards(project: Project) -> None:
    loaders = importlib.machinery.SourceFileLoader, importlib.machinery.SourcelessFileLoader
    before = list(sys.meta_path), [dict(vars(loader)) for loader in loaders]
    importer.install(project.scope)
    importer.install(project.scope)
    importer.install(Scope("packages", packages=("alpha",)))
    importer.uninstall()
    assert (list(sys.meta_path), [dict(vars(loader)) for loader in loaders]) == before
    assert not importer.covers("alpha", str(project.folder / "alpha.py"))


def test_a_loader_that_the_program_makes(project: Project) -> None:
    path = str(project.write("configuration.py"))
    importer.install(project.scope)
    spec = importlib.util.spec_from_file_location("any.name", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert is_vaccinated(module.f)
    assert vars(spec.loader) == {"name": "any.name", "path": path}


def test_a_loader_of_a_class_of_the_programs_own(project: Project) -> None:
    class Loader(importlib.machinery.SourceFileLoader):
        pass

    path = str(project.write("alpha.py"))
    importer.install(project.scope)
    loader: Any = Loader("alpha", path)
    spec = importlib.util.spec_from_file_location("alpha", path, loader=loader)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert not is_vaccinated(module.f)


def test_a_bytecode_file_without_source(project: Project) -> None:
    path = project.write("alpha.py")
    py_compile.compile(str(path), cfile=str(project.folder / "alpha.pyc"), doraise=True)
    path.unlink()
    age(project.folder / "alpha.pyc")
    importer.install(project.scope)
    for _ in range(2):
        module = project.load("alpha")
        assert is_vaccinated(module.f)
        assert module.f() == 3
        assert isinstance(module.__loader__, importlib.machinery.SourcelessFileLoader)
    assert len(project.caches()) == 1


@pytest.mark.parametrize("suffix", [".py", ".pyc"])
def test_zip_files(suffix: str, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project.write("zipped.py")
    py_compile.compile(str(path), cfile=str(project.folder / "zipped.pyc"), doraise=True)
    archive = project.folder / "library.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.write(project.folder / f"zipped{suffix}", f"zipped{suffix}")
    path.unlink()
    (project.folder / "zipped.pyc").unlink()
    monkeypatch.syspath_prepend(str(archive))
    importer.install(project.scope)
    module = project.load("zipped")
    assert type(module.__loader__).__name__ == "zipimporter"
    assert is_vaccinated(module.f)
    assert module.f() == 3
    importer.uninstall()
    assert not is_vaccinated(project.load("zipped").f)


def test_zip_files_that_are_not_covered(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    archive = tmp_path_factory.mktemp("elsewhere") / "library.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("zipped.py", "def f():\n    return len('x')\n")
    monkeypatch.syspath_prepend(str(archive))
    importer.install(project.scope)
    assert not is_vaccinated(project.load("zipped").f)


def test_reload(project: Project) -> None:
    path = project.write("alpha.py")
    importer.install(project.scope)
    module = project.load("alpha")
    path.write_text("def f():\n    return len('abcd') + 1\n", encoding="utf-8")
    assert importlib.reload(module) is module
    assert is_vaccinated(module.f)
    assert module.f() == 5


def test_runpy(project: Project) -> None:
    path = project.write("alpha.py")
    importer.install(project.scope)
    assert is_vaccinated(runpy.run_module("alpha")["f"])
    for _ in range(2):
        assert is_vaccinated(runpy.run_path(str(path))["f"])
    compiled = str(project.folder / "compiled.pyc")
    py_compile.compile(str(path), cfile=compiled, doraise=True)
    path.write_text("def f():\n    return len('other')\n", encoding="utf-8")
    assert runpy.run_path(compiled)["f"]() == 3
    importer.uninstall()
    assert not is_vaccinated(runpy.run_path(str(path))["f"])


@pytest.mark.parametrize(
    "text",
    [
        "1/0\n",
        "x = (\n",
        "import no_such_module_at_all\n",
        "from os import no_such_name\n",
        "x = '\xe9\udcff'\n",
    ],
)
def test_a_failing_import_looks_as_ever(project: Project, text: str) -> None:
    path = project.write("alpha.py", "")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))

    def failure() -> tuple[str, list[str]]:
        sys.modules.pop("alpha", None)
        try:
            exec("import alpha")
        except Exception as error:
            return repr(error), traceback.format_exception(error)
        raise AssertionError

    plain = failure()
    importer.install(project.scope)
    assert failure() == plain
    assert failure() == plain


def test_a_failing_import_of_an_imported_module_looks_as_ever(project: Project) -> None:
    project.write("alpha.py", "import beta\n")
    project.write("beta.py", "x = )\n")
    program = "import sys; sys.path.insert(0, sys.argv[1])\n{}import alpha\n"
    ours = f"from daifu_bc.install import importer, scope\nimporter.install(scope.Scope('project', root={str(project.folder)!r}))\n"
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program.format(hook), str(project.folder)],
            capture_output=True,
            text=True,
            check=False,
        ).stderr.replace("line 4", "line 2")
        for hook in ("", ours)
    ]
    assert outputs[0] == outputs[1]
    assert "SyntaxError" in outputs[0]


def test_a_failure_of_ours_leaves_the_module_plain(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from daifu_bc.install import notice
    from daifu_bc.rewrite import barrier

    def fail(code: object) -> None:
        raise ValueError("no luck")

    monkeypatch.setattr(barrier, "vaccinate_code", fail)
    monkeypatch.setattr(notice, "_said", set())
    project.write("alpha.py")
    project.write("beta.py")
    importer.install(project.scope)
    assert project.load("alpha").f() == 3
    assert project.load("beta").f() == 3
    report = capsys.readouterr().err
    assert report.count("daifu_bc:") == 1
    assert "alpha.py" in report
    assert "ValueError: no luck" in report
    assert "DAIFU_DISABLE=1" in report
    assert not project.caches()


def test_the_text_as_loaded_is_remembered(project: Project) -> None:
    path = project.write("alpha.py", "x = len('x')  # old\n")
    importer.install(project.scope)
    for _ in range(2):
        project.load("alpha")
        before = sources.lines(str(path))
        sources.forget(str(path))
        project.load("alpha")
        status = path.stat()
        path.write_text("# new\n", encoding="utf-8")
        assert before == sources.lines(str(path)) == ["x = len('x')  # old", ""]
        path.write_text("x = len('x')  # old\n", encoding="utf-8")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_pytest_rewrites_its_modules_as_ever(project: Project) -> None:
    project.write("helper.py")
    project.write(
        "test_inner.py",
        "from daifu_bc.rewrite.barrier import is_vaccinated\nimport helper\n"
        "def test_it():\n    assert is_vaccinated(helper.f.__code__)\n    assert not is_vaccinated(test_it.__code__)\n"
        "    assert len('ab') == 3\n",
    )
    project.write(
        "conftest.py",
        "from daifu_bc.install import importer, scope\n"
        f"importer.install(scope.Scope('project', root={str(project.folder)!r}))\n",
    )
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_inner.py"],
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "AssertionError: assert 2 == 3" in run.stdout, run.stdout + run.stderr


def test_other_finders_are_asked(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project.write("hidden/file.py")

    class Finder:
        """What an editable installation does."""

        @staticmethod
        def find_spec(
            name: str, path_: object = None, target: object = None
        ) -> importlib.machinery.ModuleSpec | None:
            return importlib.util.spec_from_file_location(name, str(path)) if name == "editable" else None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    importer.install(project.scope)
    assert is_vaccinated(project.load("editable").f)
    with pytest.raises(ModuleNotFoundError):
        project.load("no_such_module_at_all")


def test_a_loader_that_was_given_anything(project: Project) -> None:
    importer.install(Scope("all"))
    loader = importlib.machinery.SourceFileLoader("good", {})  # type: ignore[arg-type]
    with pytest.raises(ImportError, match="cannot handle bad"):
        loader.get_code("bad")


MEANWHILE = """
import threading
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == 'inspect' and self in sys.meta_path:
            sys.meta_path.remove(self)
            other = threading.Thread(target=vaccine.vaccinated, args=(MEANWHILE,))
            other.start()
            other.join(0.5)  # it waits for what is being imported here
from daifu_bc.install import vaccine
MEANWHILE = compile('x = len(str())', 'meanwhile.py', 'exec')
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("meanwhile", ["", MEANWHILE], ids=["alone", "another thread wants it, too"])
def test_what_vaccinates_may_need_what_is_in_scope(project: Project, meanwhile: str) -> None:
    path = project.write("alpha.py")
    folders = [
        str(Path(found.origin).parent.parent)
        for name in ("daifu_bc", "bytecode")
        if (found := importlib.util.find_spec(name)) and found.origin
    ]
    program = (
        f"import sys; sys.path[:0] = {folders!r}\n"
        "from daifu_bc.install import importer\n"
        "from daifu_bc.install.scope import Scope\n"
        "assert 'inspect' not in sys.modules and 'daifu_bc.rewrite.barrier' not in sys.modules\n"
        f"{meanwhile}\n"
        "importer.install(Scope('all'))\n"
        f"sys.path.insert(0, {str(path.parent)!r})\n"
        "import alpha\n"
        "print(alpha.f.__code__.co_exceptiontable != b'', alpha.f())\n"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    assert (run.stdout, run.stderr) == ("True 3\n", "")
