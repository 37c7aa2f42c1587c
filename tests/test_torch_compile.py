"""torch.compile of vaccinated code: the same graphs, breaks and recompilations as of plain code."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import types
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import daifu_bc
from daifu_bc import integrations
from daifu_bc.install import importer, notice
from daifu_bc.install.scope import Scope
from daifu_bc.install.vaccinate import vaccinate_loaded
from daifu_bc.integrations import torch as hook
from daifu_bc.recovery import policy
from daifu_bc.rewrite import barrier
from tests.programs.compiled import HEAD, PROGRAMS
from tests.training import train

if TYPE_CHECKING:
    from collections.abc import Iterator

# What torch warns of is not about us, and a warning that is made an exception changes what it does.
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

#: Plain code gives no graph here either: Dynamo leaves such a function alone.
NO_GRAPHS = {"with of its own", "loops", "break in a loop of modules"}


@pytest.fixture
def dynamo() -> Iterator[Any]:
    """Give a Dynamo that has compiled nothing and reads pristine code."""
    found = pytest.importorskip("torch._dynamo")
    integrations.install()
    # A process does this when it starts to vaccinate, and not under the eyes of Dynamo.
    policy.somebody_answers()
    policy.set_playbook(lambda _: None)
    assert hasattr(daifu_bc, "_intercept")
    policy.set_playbook(None)
    found.reset()
    yield found
    found.reset()
    hook.uninstall()
    importer.uninstall()


def namespace(text: str, *, vaccinated: bool) -> dict[str, Any]:
    """Run a program's text and return its names."""
    code = compile(HEAD + text, "<program>", "exec")
    if vaccinated:
        code = barrier.vaccinate_code(code)
        assert barrier.is_vaccinated(code)
    names: dict[str, Any] = {"__name__": "program"}
    exec(code, names)
    return names


def value(result: Any) -> Any:
    """Return something that can be compared."""
    if isinstance(result, tuple):
        return tuple(value(part) for part in result)
    if isinstance(result, types.FunctionType):
        return result.__qualname__
    return result.tolist() if hasattr(result, "tolist") else result


def record(dynamo: Any, text: str, *, vaccinated: bool) -> dict[str, Any]:
    """Compile a program's functions, call them, and return all that Dynamo did."""
    dynamo.reset()
    dynamo.utils.counters.clear()
    names = namespace(text, vaccinated=vaccinated)
    graphs: list[str] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(re.sub(r"\d+", "0", graph.print_readable(print_output=False)))
        return graph

    outcomes: list[Any] = []
    written = io.StringIO()
    with redirect_stdout(written), dynamo.config.patch(names.get("CONFIG", {})):
        for function, arguments in names["calls"]:
            compiled = dynamo.optimize(
                backend,
                **{
                    "nopython" if key == "fullgraph" else key: option
                    for key, option in names.get("OPTIONS", {}).items()
                },
            )(function)
            for given in arguments:
                try:
                    outcomes.append(value(compiled(*given)))
                except Exception as error:
                    outcomes.append((type(error).__name__, re.sub("0x[0-9a-f]+", "0x", str(error))))
                outcomes.append(len(graphs))
    counters = {
        name: {re.sub("0x[0-9a-f]+", "0x", str(key)): count for key, count in found.items()}
        for name, found in dynamo.utils.counters.items()
        if name != "inductor"
    }
    return {"outcomes": outcomes, "printed": written.getvalue(), "graphs": graphs, "counters": counters}


@pytest.mark.parametrize("name", PROGRAMS)
def test_dynamo_sees_no_difference(dynamo: Any, name: str) -> None:
    plain = record(dynamo, PROGRAMS[name], vaccinated=False)
    vaccinated = record(dynamo, PROGRAMS[name], vaccinated=True)
    assert bool(plain["graphs"]) == (name not in NO_GRAPHS)
    assert vaccinated == plain


GRAPHS = """
import re
import torch
from torch import nn
torch.manual_seed(0)
graphs = []
def backend(graph, inputs):
    graphs.append(re.sub(r"\\d+", "0", graph.print_readable(print_output=False)))
    return graph
"""

WATCHED = (
    GRAPHS
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
    def forward(self, x):
        large = [x * 2, x * 3]
        for layer in self.layers:
            x = layer(x)
            if x.mean().item() > 1e9:
                raise ValueError
            fault("loop")
            x = self.last(x, large)
        return x
    def last(self, x, large):
        return (x + large[0]).relu()
net = torch.compile(Net(), backend=backend)
for step in range(3):
    events.append(net(torch.ones(2, 4)).tolist())
"""
)


@pytest.mark.parametrize("visit", [1, 2, 5])
def test_dynamo_does_not_see_a_repair(dynamo: Any, visit: int, tmp_path: Path) -> None:
    """What runs under Dynamo's eyes is held and goes on, and Dynamo compiles nothing of it."""
    records: list[tuple[Any, ...]] = []
    for place in ("", "loop"):
        dynamo.reset()
        dynamo.utils.counters.clear()
        names = {"keep": lambda graphs: records.append((graphs, dict(dynamo.utils.counters)))}
        source = WATCHED + "keep(graphs)\n"
        book = "locals\naction large = [x.relu() + 0 * x for x in large]\np self.last(x, large)\npass"
        result = train(source, tmp_path, playbook=book, place=place, visit=visit, names=names)
        assert result.holds == ([place] if place else []), result.output
        records[-1] += (result.events,)
    assert records[0] == records[1]


TABLE = (
    GRAPHS
    + """
table = torch.arange(5.0)
def pick(x, index):
    y = x.sin()
    picked = table[index]
    print("picked")
    return y.sum() + picked.sum()
pick = torch.compile(pick, backend=backend)
def main():
    for index in (1, 7, 3):
        index = torch.tensor([index])
        value = pick(torch.ones(3), index)
        events.append(f"{value:.3f}")
    events.append(len(graphs))
main()
"""
)


def test_a_crash_in_compiled_code(dynamo: Any, tmp_path: Path) -> None:
    """It is held at the statement that called the compiled function."""
    crashed = train(TABLE, tmp_path, playbook="where\naction index = index - 5\npass")
    assert len(crashed.holds) == 1, crashed.output
    assert re.search(r"^> \d+ +main .*<- held$", crashed.output, re.MULTILINE), crashed.output
    dynamo.reset()
    plain = train(TABLE.replace("(1, 7, 3)", "(1, 2, 3)"), tmp_path)
    assert crashed.events == plain.events


BUGGY = (
    GRAPHS
    + """
class Inner(nn.Module):
    def forward(self, x):
        return x @ torch.ones(SIZE, 2)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
    def forward(self, x):
        y = self.inner(x.sin())
        print("inner")
        return y + 1
net = torch.compile(Net(), backend=backend)
def main():
    for size in (4, 4, 3, 3):
        x = torch.ones(2, size)
        y = net(x)
        events.append(y.tolist())
main()
"""
)


def test_surgery_on_what_was_compiled(dynamo: Any, tmp_path: Path) -> None:
    """A method that was traced inline is replaced, and the compiled code follows, though Dynamo does not look."""
    book = """
surgery Inner.forward <<END
def forward(self, x):
    return x @ torch.ones(x.shape[1], 2)
END
pass
"""
    crashed = train(BUGGY.replace("SIZE", "4"), tmp_path, playbook=book)
    assert len(crashed.holds) == 1, crashed.output
    assert dynamo.utils.counters["frames"]["ok"]
    plain = train(BUGGY.replace("SIZE", "x.shape[1]"), tmp_path)
    assert crashed.events == plain.events


def test_surgery_reaches_inlined_methods(dynamo: Any, tmp_path: Path) -> None:
    """The code that crashed is another function's; the compiled one must be made anew."""
    source = BUGGY.replace("SIZE", "x.shape[1]").replace("(4, 4, 3, 3)", "(4, 4, 4, 4)")
    source = source.replace("events.append", "fault('step')\n        events.append")
    book = """
surgery Inner.forward <<END
def forward(self, x):
    return x @ torch.zeros(x.shape[1], 2)
END
pass
"""
    crashed = train(source, tmp_path, playbook=book, place="step", visit=2)
    assert len(crashed.holds) == 1, crashed.output
    values = [event for event in crashed.events if isinstance(event, list)]
    assert [value[0][0] == 1.0 for value in values] == [False, False, True, True]


UNDER = """
import torch
@torch.compiler.disable
def risky(x):
    fault("risky")
    return x + 1
class Net(torch.nn.Module):
    def forward(self, x):
        y = risky(x.sin())
        return y.cos()
net = torch.compile(Net(), backend="eager")
for step in range(3):
    events.append(net(torch.ones(2)).tolist())
"""


RESUMES = """
import torch
def plain(x):
    x = x + 1
    print("a break")
    return x * 2
f = torch.compile(plain, backend="eager")
print(f(torch.ones(2)).tolist())
"""


def test_what_dynamo_has_generated_stays_plain(dynamo: Any, tmp_path: Path) -> None:
    """It lies among the module's names, under the file of the function that it was made of."""
    path = tmp_path / "resumes.py"
    path.write_text(RESUMES)
    module = types.ModuleType("resumes")
    module.__file__ = str(path)
    sys.modules["resumes"] = module
    try:
        exec(compile(RESUMES, str(path), "exec"), vars(module))
        generated = [
            value
            for value in vars(module).values()
            if isinstance(value, types.FunctionType) and "resume_in" in value.__code__.co_name
        ]
        assert generated
        vaccinate_loaded(Scope("project", root=str(tmp_path)))
        assert barrier.is_vaccinated(vars(module)["plain"].__code__)
        assert not any(barrier.is_vaccinated(function.__code__) for function in generated)
    finally:
        del sys.modules["resumes"]


def test_forgetting_what_is_running(dynamo: Any, tmp_path: Path) -> None:
    """A surgery has Dynamo drop its compiled code while functions of it are on the stack."""
    book = """
surgery risky <<END
def risky(x):
    fault("risky")
    return x + 1000
END
pass
"""
    crashed = train(UNDER, tmp_path, playbook=book, place="risky", visit=2)
    assert len(crashed.holds) == 1, crashed.output
    import torch

    sine = torch.ones(2).sin()
    expected = [(sine + 1).cos().tolist(), (sine + 1000).cos().tolist(), (sine + 1000).cos().tolist()]
    assert [event for event in crashed.events if isinstance(event, list)] == expected


def test_a_torch_that_is_not_known_is_left_alone(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notice, "_said", set())
    changed = types.ModuleType(hook.BYTECODE)
    changed.cleaned_instructions = lambda instructions: instructions  # type: ignore[attr-defined]
    before = dict(vars(changed))
    hook.install(changed)
    hook.watch(types.ModuleType("torch._dynamo"))
    assert vars(changed) == before
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert "torch.compile sees the vaccinated code" in said


PROGRAM = """
import torch
from torch._dynamo.utils import counters

def shifted(x):
    print("shifted")
    return x + 1

@torch.compile(backend="eager")
def function(x):
    y = x.sin()
    print("between")
    return shifted(y).cos()

function(torch.ones(3))
print(counters["stats"]["unique_graphs"], sum(counters["graph_break"].values()), counters["frames"]["total"])
"""


@pytest.mark.slow
def test_a_program_that_is_run(tmp_path: Path) -> None:
    """The hook is put in when Dynamo is imported, by whatever way the program is vaccinated."""
    (tmp_path / "train.py").write_text(PROGRAM)
    decorated = PROGRAM.replace("@torch", "import daifu_bc\n@torch")
    decorated = decorated.replace("def function", "@daifu_bc.vaccinate\ndef function")
    # Compiled, the decorated function is not called itself; the project is vaccinated all the same.
    look = "from daifu_bc.rewrite.barrier import is_vaccinated\nprint(is_vaccinated(shifted.__code__))\n"
    (tmp_path / "decorated.py").write_text(decorated + look)
    outputs = [
        subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=300
        )
        for arguments in (["train.py"], ["-m", "daifu_bc", "run", "train.py"], ["decorated.py"])
    ]
    assert [run.stderr for run in outputs] == [""] * 3
    assert outputs[0].stdout == "between\nshifted\n3 3 5\n"
    assert outputs[1].stdout == outputs[0].stdout
    assert outputs[2].stdout == outputs[0].stdout + "True\n"
