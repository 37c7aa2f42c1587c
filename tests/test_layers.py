"""The package's shape: imports only go down, modules stay short, one place knows the version of CPython."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "daifu_bc"
MODULES = sorted(PACKAGE.rglob("*.py"))

#: From top to bottom; a module imports from its own layer and from those below.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("manual", "shell_completion"),
    ("help_texts",),
    ("run_options",),
    ("demo",),
    ("__init__",),
    ("frontends",),
    ("integrations",),
    ("install",),
    ("recovery",),
    ("rewrite",),
    ("analysis",),
    ("errors", "pyversion"),
)
HEIGHT = {name: -number for number, names in enumerate(LAYERS) for name in names}

#: What a layer may import beside the standard library and `bytecode`. These are extras: a plain installation lacks them.
EXTRAS = {
    "demo": {"numpy", "sklearn", "torch"},
    "frontends": {"IPython", "prompt_toolkit", "pygments", "rich"},
    "integrations": {"debugpy", "numpy", "torch"},
}

MAX_LINES = 400

VERSION_NAMES = {"version_info", "hexversion", "python_version", "python_version_tuple"}

#: A line that needs the version for the type checker's sake alone says so.
FOR_TYPE_CHECKER = "# for the type checker"


def dotted(path: Path) -> str:
    """Return the name under which a file is imported."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {dotted(path) for path in MODULES}


def layer(module: str) -> str:
    """Return the layer of a dotted name of ours; the package itself is the layer `__init__`."""
    return module.split(".")[1] if "." in module else "__init__"


def imports(path: Path) -> list[tuple[int, str]]:
    """Return (line, dotted name) of everything that a module imports, wherever in it, submodules by full name."""
    found: list[tuple[int, str]] = []
    package = list(path.relative_to(PACKAGE.parent).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                found.append((node.lineno, full if full in NAMES else base))
    return found


def ours(name: str) -> bool:
    return name.partition(".")[0] == "daifu_bc"


def each_module() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", MODULES, ids=[str(path.relative_to(PACKAGE)) for path in MODULES])


def test_the_package_is_found() -> None:
    assert len(MODULES) > 3
    assert (PACKAGE / "py.typed").exists()


@each_module()
def test_has_a_place_in_the_layers(path: Path) -> None:
    assert layer(dotted(path)) in HEIGHT, f"{dotted(path)} is in no layer: give it a place in LAYERS"


@each_module()
def test_imports_go_down(path: Path) -> None:
    own = HEIGHT.get(layer(dotted(path)), 1)
    upward = [
        f"{path.name}:{line} imports {name}"
        for line, name in imports(path)
        if ours(name) and HEIGHT.get(layer(name), 1) > own
    ]
    assert not upward


def test_imports_have_no_cycle() -> None:
    """Imports inside functions count: they are for what is heavy or optional, not for breaking cycles."""
    graph = {
        dotted(path): {name for _, name in imports(path) if name in NAMES and name != dotted(path)}
        for path in MODULES
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imported by ".join(error.args[1]))


@each_module()
def test_imports_only_what_is_installed(path: Path) -> None:
    allowed = {
        "__future__",
        "bytecode",
        "daifu_bc",
        *sys.stdlib_module_names,
        *EXTRAS.get(layer(dotted(path)), ()),
    }
    foreign = [
        f"{path.name}:{line} imports {name}"
        for line, name in imports(path)
        if name.split(".")[0] not in allowed
    ]
    assert not foreign


@each_module()
def test_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES, "split it: one noun a module"


def asks_for_version(path: Path) -> list[str]:
    """Return the places in a module that ask which Python this is."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    places = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom) and node.module in ("sys", "platform"):
            names = [alias.name for alias in node.names]
        else:
            continue
        line = lines[node.lineno - 1]
        if VERSION_NAMES.intersection(names) and FOR_TYPE_CHECKER not in line:
            places.append(f"{path.name}:{node.lineno}: {line.strip()}")
    return places


@each_module()
def test_only_pyversion_asks_for_the_version(path: Path) -> None:
    if dotted(path) != "daifu_bc.pyversion":
        assert not asks_for_version(path), (
            f"name the behaviour in pyversion.py, or mark the line `{FOR_TYPE_CHECKER}`"
        )


@each_module()
def test_never_traces(path: Path) -> None:
    """The normal path costs nothing, and tracing belongs to the user's debugger. Pauses and moving frames on 3.11 are the exception."""
    if dotted(path) in ("daifu_bc.recovery.boundaries", "daifu_bc.recovery.watching"):
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    assert not [
        ast.unparse(call) for call in calls if ast.unparse(call.func) in ("sys.settrace", "sys.setprofile")
    ]


CORE_ALONE = """
import sys
extras = {extras!r}
for name in extras:
    sys.modules[name] = None  # an import of it now fails
before = set(sys.modules)
import daifu_bc
if {with_cli!r}:
    import daifu_bc.cli
roots = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(roots - set(sys.stdlib_module_names) - {{"daifu_bc", "bytecode", "typing_extensions"}}))
"""


@pytest.mark.skipif(not (PACKAGE / "__init__.py").exists(), reason="the package has no __init__.py yet")
def test_a_plain_installation_is_enough() -> None:
    extras = sorted(set().union(*EXTRAS.values()))
    program = CORE_ALONE.format(extras=extras, with_cli=(PACKAGE / "cli.py").exists())
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (run.stdout.strip(), run.stderr, run.returncode) == ("", "", 0)


def test_layers_are_a_chain() -> None:
    heights = [HEIGHT[names[0]] for names in LAYERS]
    assert all(upper > lower for upper, lower in pairwise(heights))
