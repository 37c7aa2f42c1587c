"""torch.compile of vaccinated code: the same graphs, breaks and recompilations as of plain code."""

from __future__ import annotations

import io
import re
import types
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import pytest

from daifu_bc import integrations
from daifu_bc.install import importer
from daifu_bc.integrations import torch as hook
from daifu_bc.rewrite import barrier
from tests.programs.compiled import HEAD, PROGRAMS

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
