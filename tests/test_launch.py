"""`daifu run`, and DAIFU=1 in the environment, run programs as the interpreter itself does."""

from __future__ import annotations

import os
import py_compile
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from daifu_bc import pyversion

ROOT = Path(__file__).resolve().parent.parent

# Puts the start-up line of an installed daifu_bc into effect where it is not installed.
SITE = f"exec(open({str(ROOT / 'daifu_bc.pth')!r}).read())\n"

FILES: dict[str, str | bytes] = {
    "pyproject.toml": "",
    "look.py": """
import __main__, os, sys
print(sys.argv, sys.path[0], __file__, __name__, __package__, __spec__ and __spec__.name, type(__builtins__), *globals())
print(__main__ is sys.modules["__main__"], vars(__main__) is globals(), globals().get("__cached__"), __doc__)
print(isinstance(__loader__, __import__("importlib.machinery").machinery.FileLoader), __loader__.name, __loader__.path)
""",
    "exits.py": """
import os, sys
how = sys.argv[1]
if how == "handled":
    try: sys.exit(3)
    except SystemExit: print("handled")
if how == "os": os._exit(9)
if how == "string": sys.exit("bye")
if how == "nothing": sys.exit()
sys.exit(eval(how))
""",
    "chain.py": """
def f(x):
    return g(x) + 1
def g(x):
    try:
        return {}[x]
    except KeyError as error:
        raise ValueError("bad") from error
class A:
    def method(self): return f(3)
A().method()
""",
    "wrong.py": "x = (1,\ny = 2 2\n",
    "boom.py": "def f(): 1/0\nf()\n",
    "imports_wrong.py": "import wrong\n",
    "imports_boom.py": "import boom\n",
    "imports_nothing.py": "import no_such_module_at_all\n",
    "imports_no_name.py": "from os import no_such_name\n",
    "hook.py": """
import sys
def hook(kind, error, traceback):
    print("hook", kind, error, traceback.tb_frame.f_code.co_name, traceback.tb_next.tb_next, file=sys.stderr)
    print(sys.last_type, sys.last_value is error, sys.last_traceback is traceback, sys.exc_info())
sys.excepthook = hook
def f(): raise RuntimeError("x")
f()
""",
    "hook_fails.py": "import sys\ndef hook(*a): raise KeyError('in the hook')\nsys.excepthook = hook\n1/0\n",
    "hook_exits.py": "import sys\nsys.excepthook = lambda *a: sys.exit(5)\n1/0\n",
    "hook_is_gone.py": "import sys\ndel sys.excepthook\n1/0\n",
    "interrupt.py": """
import atexit, os, signal, time
atexit.register(print, "at exit")
def f():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
f()
""",
    "interrupt_by_hand.py": "class Mine(KeyboardInterrupt): pass\nraise Mine('x')\n",
    "end.py": """
import atexit, threading, time
def late():
    time.sleep(0.1)
    print("thread", flush=True)
class Dying:
    def __del__(self): print("gone")
atexit.register(print, "at exit", flush=True)
threading.Thread(target=late).start()
dying = Dying()
raise RuntimeError("main")
""",
    "thread.py": """
import threading
def fail(): raise ValueError("in a thread")
thread = threading.Thread(target=fail, name="mine")
thread.start()
thread.join()
print("on")
""",
    "pool.py": """
import multiprocessing, sys
from daifu_bc.rewrite.barrier import is_vaccinated
def work(x): return x * len("ab"), __name__, is_vaccinated(work.__code__)
if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        results = pool.map(work, [1, 2])
    print([(number, name) for number, name, _ in results])
    vaccinated = {result for *_, result in results} | {is_vaccinated(work.__code__)}
    assert len(vaccinated) == 1, "parent and child are of the same kind"
""",
    "pickles.py": """
import pickle
def f(): return 1
class C: pass
print(pickle.loads(pickle.dumps(f)) is f, pickle.loads(pickle.dumps(C)) is C, pickle.dumps(f))
""",
    "reads.py": "import sys\nprint(sys.stdin and sys.stdin.read())\n",
    "annotated.py": """
from dataclasses import dataclass
import typing
x: int = 3
@dataclass
class Point:
    a: int
    b: "list[Point]"
print(Point(1, []), typing.get_type_hints(Point), globals().get("__annotations__"))
""",
    "warns.py": """
import warnings
warnings.warn("old", DeprecationWarning)
def f(): warnings.warn("two", stacklevel=2)
f()
print(1 is 1)
""",
    "group.py": """
def f(n): raise ValueError(n)
errors = []
for number in range(2):
    try: f(number)
    except ValueError as error: errors.append(error)
raise ExceptionGroup("several", errors)
""",
    "typo.py": "abcdef = 1\nabcdeg\n",
    "latin.py": b"# -*- coding: latin-1 -*-\nprint(ascii('\xe9'))\n1/0 # \xe9\n",
    "bom.py": b"\xef\xbb\xbfprint('bom')\r\nprint('line')\r\n1/0\r\n",
    "no_newline.py": "print('x')\nif 1:\n    1/0",
    "empty.py": "",
    "no_suffix": "import sys\nprint(sys.argv)\n1/0\n",
    "package/__init__.py": "",
    "package/__main__.py": """
import sys
from .inner import f
print(__name__, __package__, __spec__.name, sys.argv, sys.path[0], *globals())
f()
""",
    "package/inner.py": "def f(): raise LookupError('inner')\nif __name__ == '__main__': f()\n",
    "folder/__main__.py": """
import sys, inner
print(__name__, __package__, __spec__.name, sys.argv, sys.path[0], __file__)
inner.f()
""",
    "folder/inner.py": "def f(): raise LookupError('inner')\n",
    "only/inner.py": "",
}

COMMANDS = [
    "look.py",
    "./look.py a -b --c=d --",
    "{folder}/look.py",
    "package/../look.py",
    "link.py",
    "-m look x",
    "look.pyc x",
    "changed.pyc",
    "old.pyc",
    *(
        f"exits.py {how}"
        for how in ("nothing", "7", "-1", "300", "string", "[1,2]", "(1,2)", "True", "None", "os", "handled")
    ),
    "chain.py",
    "-m chain",
    "chain.pyc",
    "wrong.py",
    "-m imports_wrong",
    "imports_wrong.py",
    "imports_boom.py",
    "imports_nothing.py",
    "imports_no_name.py",
    "hook.py",
    "hook_fails.py",
    "hook_exits.py",
    "hook_is_gone.py",
    "interrupt.py",
    "-m interrupt",
    "interrupt_by_hand.py",
    "end.py",
    "thread.py",
    "pool.py spawn",
    "pool.py forkserver",
    "pool.py fork",
    "-m pool spawn",
    "pickles.py",
    "reads.py",
    "annotated.py",
    "warns.py",
    "group.py",
    "typo.py",
    "latin.py",
    "bom.py",
    "no_newline.py",
    "empty.py",
    "no_suffix a",
    "-m package a",
    "-m package.inner",
    "-m no_such_module",
    "-m package.no_such_module",
    "-m boom.x",
    "folder",
    "folder/ x",
    "program.zip x",
    "only",
    "package",
    "no_such_file.py",
    "-m json.tool --help",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs."""
    made = tmp_path_factory.mktemp("programs")
    for name, content in FILES.items():
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    for name in ("look", "chain"):
        py_compile.compile(str(made / f"{name}.py"), cfile=str(made / f"{name}.pyc"), doraise=True)
    # Bytecode whose source says something else by now, and bytecode of another interpreter.
    (made / "changed.py").write_text("print('as compiled')\n", encoding="utf-8")
    py_compile.compile(str(made / "changed.py"), cfile=str(made / "changed.pyc"), doraise=True)
    (made / "changed.py").write_text("print('as changed')\n", encoding="utf-8")
    (made / "old.pyc").write_bytes(b"\0\0\r\n" + bytes(12))
    with zipfile.ZipFile(made / "program.zip", "w") as archive:
        for name in ("__main__.py", "inner.py"):
            archive.write(made / "folder" / name, name)
    (made / "links").mkdir()
    (made / "link.py").symlink_to(made / "look.py")
    (made / "site").mkdir()
    (made / "site" / "sitecustomize.py").write_text(SITE, encoding="utf-8")
    return made


def run(folder: Path, *words: str, **variables: str) -> tuple[str, str, int]:
    """Run the interpreter in the programs' folder and return what it wrote and its exit code."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder / "site"), str(ROOT)])} | variables
    ended = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return ended.stdout, re.sub(r" at 0x[0-9a-f]+", " at 0x", ended.stderr), ended.returncode


@pytest.mark.parametrize("command", COMMANDS)
def test_as_the_interpreter_runs_it(folder: Path, command: str) -> None:
    words = command.format(folder=folder).split()
    plain = run(folder, *words)
    launched = run(folder, "-m", "daifu_bc", "run", *words)
    assert launched == plain
    assert run(folder, *words, DAIFU="1") == plain
    assert "daifu" not in plain[1]


@pytest.mark.parametrize("options", [["-P"], ["-I"], ["-O"], ["-W", "error"]])
def test_options_of_the_interpreter(folder: Path, options: list[str]) -> None:
    plain = run(folder, *options, "warns.py")
    launcher = f"import sys; sys.path.append({str(ROOT)!r}); sys.path.insert(0, '') if not sys.flags.safe_path else 0; "
    launcher += "from daifu_bc.install import launch; sys.exit(launch.run('warns.py', [], as_module=False))"
    assert run(folder, *options, "-c", launcher) == plain
    if "-I" not in options:
        assert run(folder, *options, "warns.py", DAIFU="1") == plain


def test_ctrl_c_ends_it_by_the_signal(folder: Path) -> None:
    for words in (["-m", "daifu_bc", "run", "interrupt.py"], ["-m", "daifu_bc", "run", "-m", "interrupt"]):
        output, report, code = run(folder, *words)
        assert (output, code) == ("at exit\n", -signal.SIGINT)
        assert report.count("KeyboardInterrupt") == 1


def test_standard_input_may_be_closed(folder: Path) -> None:
    outputs = []
    for words in ("reads.py", "-m daifu_bc run reads.py"):
        command = f"{sys.executable} {words} <&-"
        outputs.append(
            subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=False)
        )
    assert [(output.stdout, output.stderr) for output in outputs] == [("None\n", "")] * 2


SHOWS = """
import os, subprocess, sys
from daifu_bc.rewrite.barrier import is_vaccinated
import helper
def f(): return len("abc")
print(is_vaccinated(sys._getframe().f_code), is_vaccinated(f.__code__), is_vaccinated(helper.f.__code__))
print(os.environ.get("DAIFU"), os.environ.get("DAIFU_SCOPE"))
if len(sys.argv) == 1:
    sys.stdout.flush()
    subprocess.run([sys.executable, __file__, "child"], check=True)
"""


@pytest.fixture
def shows(folder: Path) -> Path:
    (folder / "shows.py").write_text(SHOWS, encoding="utf-8")
    (folder / "helper.py").write_text("def f():\n    return len('abc')\n", encoding="utf-8")
    return folder


def test_all_of_it_is_vaccinated(shows: Path) -> None:
    words = ["-m", "daifu_bc", "run", "shows.py"]
    for _ in range(2):
        output, report, code = run(shows, *words)
        environment = f"1 project:{shows}"
        assert output.splitlines() == ["True True True", environment] * 2, report
        assert (report, code) == ("", 0)
    assert run(shows, "-m", "daifu_bc", "run", "-m", "shows")[0].startswith("True True True\n")


def test_a_child_alone_is_vaccinated(shows: Path) -> None:
    for words in (["shows.py", "x"], ["-m", "shows", "x"]):
        assert run(shows, *words, DAIFU="1")[0] == "True True True\n1 None\n"
        assert run(shows, *words, DAIFU="0")[0] == "False False False\n0 None\n"
        assert run(shows, *words, DAIFU="1", DAIFU_SCOPE="helper")[0].startswith(
            "True True True" if words[0] != "-m" else "False False True"
        )
        assert run(shows, *words, DAIFU="1", DAIFU_SCOPE="project:/elsewhere")[0].startswith(
            "False False False"
        )


@pytest.mark.parametrize("options", [["-i"], ["-x"]])
def test_what_a_child_cannot_take_over_runs_plainly(shows: Path, options: list[str]) -> None:
    assert run(shows, *options, "shows.py", "x", DAIFU="1")[0].startswith("False False True\n")


def test_switched_off(shows: Path) -> None:
    plain = "False False False\nNone None\n"
    assert run(shows, "-m", "daifu_bc", "run", "shows.py", DAIFU_DISABLE="1") == (plain * 2, "", 0)
    assert run(shows, "shows.py", "x", DAIFU="1", DAIFU_DISABLE="1") == ("False False False\n1 None\n", "", 0)


def test_an_unknown_python_runs_it_plainly(shows: Path) -> None:
    launcher = "import sys; from daifu_bc import pyversion; pyversion.SUPPORTED = False; from daifu_bc.install import launch; "
    launcher += "sys.exit(launch.run('shows.py', ['x'], as_module=False))"
    output, report, code = run(shows, "-c", launcher)
    assert (output, code) == ("False False False\nNone None\n", 0)
    assert report.count("\n") == 1
    assert "3.11 to 3.15" in report


def test_a_failure_of_ours_runs_it_plainly(shows: Path) -> None:
    launcher = (
        "import sys; from daifu_bc.rewrite import barrier; barrier.vaccinate_code = lambda code: 1 / 0; "
    )
    launcher += "from daifu_bc.install import launch; sys.exit(launch.run('chain.py', [], as_module=False))"
    plain = run(shows, "chain.py")
    output, report, code = run(shows, "-c", launcher, PYTHONPYCACHEPREFIX=str(shows / "empty"))
    assert (output, code) == (plain[0], plain[2])
    ours, _, rest = report.partition("\n")
    assert rest == plain[1]
    assert "ZeroDivisionError" in ours
    assert "DAIFU_DISABLE=1" in ours


def test_the_last_exception(folder: Path) -> None:
    (folder / "last.py").write_text(
        "import atexit, sys\natexit.register(lambda: print(hasattr(sys, 'last_exc'), sys.last_value))\n1/0\n",
        encoding="utf-8",
    )
    output = run(folder, "-m", "daifu_bc", "run", "last.py")[0]
    assert output == f"{pyversion.HAS_LAST_EXC} division by zero\n"
