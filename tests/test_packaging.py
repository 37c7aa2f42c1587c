"""The start-up line that installations ship: it vaccinates child processes, and never breaks the start of Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: Stands in for daifu_bc.install.child: it leaves a line per process that it was imported in.
CHILD = """
import os
with open(os.environ["RECORD"], "a") as record:
    record.write(f"{os.getpid()}\\n")
"""

SPAWNING = """
import multiprocessing, os
def work(queue): queue.put(os.getpid())
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(os.getpid(), queue.get(timeout=60))
    process.join()
"""


def check(command: list[str], folder: Path | None = None) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


class Installation:
    """A virtual environment with the project installed, `daifu_bc.install.child` replaced by a stand-in."""

    def __init__(self, folder: Path, version: str) -> None:
        self.python = folder / "venv" / "bin" / "python"
        self.source = folder / "project"
        self.record = folder / "record"
        self.editable = version == "editable"
        self.source.mkdir()
        for name in ("pyproject.toml", "daifu_bc.pth", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, self.source)
        for name in ("", "install"):
            (self.source / "daifu_bc" / name).mkdir()
            (self.source / "daifu_bc" / name / "__init__.py").touch()
        (self.source / "daifu_bc" / "install" / "child.py").write_text(CHILD)
        build = "build_editable" if self.editable else "build_wheel"
        check([sys.executable, "-c", f"import hatchling.build as b; b.{build}('dist')"], self.source)
        (wheel,) = (self.source / "dist").glob("*.whl")
        check([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")])
        pip = [sys.executable, "-m", "pip", "--python", str(self.python)]
        check([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)])

    def package(self) -> Path:
        """The folder that the environment imports the package from."""
        if self.editable:
            return self.source / "daifu_bc"
        (site,) = self.python.parent.parent.glob("lib/python*/site-packages")
        return site / "daifu_bc"

    def run(self, *arguments: str, daifu: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "DAIFU"))
        }
        environment["RECORD"] = str(self.record)
        if daifu is not None:
            environment["DAIFU"] = daifu
        command = [str(self.python), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)

    def recorded(self) -> list[str]:
        return self.record.read_text().split() if self.record.exists() else []


@pytest.fixture(params=["normal", "editable"])
def installation(tmp_path: Path, request: pytest.FixtureRequest) -> Installation:
    pytest.importorskip("hatchling")
    return Installation(tmp_path, request.param)


def test_does_nothing_unless_asked(installation: Installation) -> None:
    for daifu in (None, ""):
        done = installation.run(
            "-X", "dev", "-W", "error", "-c", "import sys; print('daifu_bc' in sys.modules)", daifu=daifu
        )
        assert (done.stdout, done.stderr, done.returncode) == ("False\n", "", 0)
    assert installation.recorded() == []


def test_reaches_a_program_and_the_processes_it_spawns(installation: Installation, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SPAWNING)
    done = installation.run(str(program), daifu="1")
    assert (done.stderr, done.returncode) == ("", 0)
    assert set(done.stdout.split()) <= set(installation.recorded())


@pytest.mark.parametrize("damage", ["it raises", "it does not compile", "the package is gone"])
def test_a_failure_is_one_line_and_the_program_runs(installation: Installation, damage: str) -> None:
    child = installation.package() / "install" / "child.py"
    if damage == "it raises":
        child.write_text("raise RuntimeError('out of luck')")
    elif damage == "it does not compile":
        child.write_text("def")
    else:
        shutil.rmtree(installation.package())
    done = installation.run("-c", "print('ran')", daifu="1")
    assert (done.stdout, done.returncode) == ("ran\n", 0)
    assert done.stderr.startswith("daifu_bc: this process runs without it: ")
    assert done.stderr.count("\n") == 1


def test_the_command_is_installed(installation: Installation) -> None:
    assert (installation.python.parent / "daifu").exists()


def test_the_source_distribution_has_no_more_than_was_named(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    check(
        [sys.executable, "-c", "import sys, hatchling.build as b; b.build_sdist(sys.argv[1])", str(tmp_path)],
        ROOT,
    )
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        tops = {name.split("/")[1] for name in opened.getnames()}
    named = {"daifu_bc", "daifu_bc.pth", "docs", "tests", "CHANGELOG.md", "make.py", "tox.ini"}
    always = {".gitignore", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
    assert named <= tops <= named | always
