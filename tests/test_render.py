from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections import Counter, OrderedDict, deque, namedtuple
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daifu_bc.frontends import render, values
from daifu_bc.frontends.values import describe, printable, show
from tests import fake_hold
from tests.fake_hold import FakeHold, crash, make, make_without_source

CRASHING = next(
    number
    for number, text in enumerate(Path(fake_hold.__file__).read_text().splitlines(), start=1)
    if text.endswith("# the line that crashes")
)


def test_the_whole_report() -> None:
    with contextlib.chdir(Path(fake_hold.__file__).parent.parent):
        text = render.report(make())
    expected = f"""\
-- daifu: hold 1, thread MainThread ------------------------------------------
ZeroDivisionError: division by zero

tests/fake_hold.py, line {CRASHING}, in inner
  {CRASHING - 3}  def inner(batches: list[int]) -> float:
  {CRASHING - 2}      count = batches[1]
  {CRASHING - 1}      name = "mean"
> {CRASHING}      share = batches[0] / count  # the line that crashes
  {CRASHING + 1}      print(name)
  {CRASHING + 2}      return share

Values:
    batches = [12, 0]
    count = 0

Frames:
  0  outer  tests/fake_hold.py:{CRASHING - 6}
> 1  inner  tests/fake_hold.py:{CRASHING}   <- held

Held: no frame further out has a handler for it.
Next: pass would run line {CRASHING} again"""
    assert text == expected


def test_a_part_that_cannot_be_made_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    hold = make()

    def fail() -> list[str]:
        raise RuntimeError

    monkeypatch.setattr(hold.selected, "names_in_line", fail)
    monkeypatch.setattr(hold, "where_next", fail)
    text = render.report(hold)
    assert "(not available: RuntimeError)\n\nFrames:" in text
    assert text.endswith(
        "\n\nHeld: no frame further out has a handler for it.\nNext: (not available: RuntimeError)"
    )


def test_very_many_frames() -> None:
    def deeper(left: int) -> None:
        if left:
            deeper(left - 1)
        raise ValueError

    hold = FakeHold(crash(deeper, 99))
    shown = render.frames(hold, most=24)
    assert shown[0] == "  ... 76 more further out, `where` shows them"
    assert len(shown) == 25
    assert shown[1].split()[0] == "76"
    assert len(render.frames(hold)) == 100


def test_without_source_it_is_the_disassembly() -> None:
    text = render.report(make_without_source())
    assert "(no source at hand)" in text
    marked = [line for line in text.splitlines() if line.startswith(">") and "BINARY_OP" in line]
    assert len(marked) == 1
    assert len(render.instructions("\n".join(["  x"] * 50 + ["> y"] + ["  z"] * 50))) == 12 + 1 + 12 + 2


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def test_an_error_with_its_chain() -> None:
    def low() -> None:
        raise KeyError("a")

    def middle() -> None:
        try:
            low()
        except KeyError:
            raise ValueError("two\nlines") from OSError(2, "gone")

    lines = render.error(crash(middle)).splitlines()
    assert lines == ["ValueError: two", "  lines", "  because of FileNotFoundError: [Errno 2] gone"]

    def handling() -> None:
        try:
            low()
        except KeyError:
            1 / 0  # noqa: B018

    first, second = render.error(crash(handling)).splitlines()
    assert first == "ZeroDivisionError: division by zero"
    assert second.startswith("  while handling KeyError: 'a'   (")
    assert second.endswith("in test_an_error_with_its_chain.<locals>.low)")


def test_an_error_with_notes_and_members() -> None:
    error = ExceptionGroup("several", [ValueError("x"), ExceptionGroup("inner", [KeyError(1)])])
    error.add_note("a note")
    assert render.error(error).splitlines() == [
        "ExceptionGroup: several (2 sub-exceptions)",
        "  a note",
        "  + ValueError: x",
        "  + ExceptionGroup: inner (1 sub-exception)",
        "    + KeyError: 1",
    ]


def test_an_error_that_cannot_be_written_out() -> None:
    assert "Silent" in render.error(Silent())


def test_a_chain_that_is_a_circle_or_very_long() -> None:
    one, two = ValueError("1"), ValueError("2")
    one.__context__, two.__context__ = two, one
    assert len(render.error(one).splitlines()) == 2
    error = ValueError(0)
    for number in range(1, 50):
        later = ValueError(number)
        later.__cause__ = error
        error = later
    assert len(render.error(error).splitlines()) == render.LINKS + 1


def test_no_text_drives_the_terminal() -> None:
    assert render.error(ValueError("a\x1b[31mb\x07")) == r"ValueError: a\x1b[31mb\x07"
    assert printable("a\x9bb\tc\nd\u202ee") == "a\\x9bb\tc\nd\\u202ee"


class Broken:
    def __repr__(self) -> str:
        raise ValueError("no repr")


class Leaving:
    def __repr__(self) -> str:
        raise SystemExit(3)


class Odd:
    def __repr__(self) -> str:
        return 3  # type: ignore[return-value]


class Lines:
    def __repr__(self) -> str:
        return "a\n  b"


class Liar:
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise RuntimeError("asked for its class")

    def __repr__(self) -> str:
        return "liar"


Point = namedtuple("Point", "x y")  # noqa: PYI024
self_containing: list[object] = []
self_containing.append(self_containing)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12, "12"),
        ("text", "'text'"),
        ([1, 2.5, None], "[1, 2.5, None]"),
        ({"b": 1, "a": 2}, "{'b': 1, 'a': 2}"),
        ({}, "{}"),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, ...]"),
        (dict.fromkeys(range(100)), "{0: None, 1: None, 2: None, 3: None, 4: None, 5: None, ...}"),
        (deque(range(100)), "deque([0, 1, 2, 3, 4, 5, ...])"),
        (Point(1, [2]), "Point(x=1, y=[2])"),
        (OrderedDict(a=1), repr(OrderedDict(a=1))),
        (Broken(), "<the repr of this Broken raised ValueError>"),
        ([1, Broken()], "[1, <the repr of this Broken raised ValueError>]"),
        ({"a": Broken()}, "{'a': <the repr of this Broken raised ValueError>}"),
        (Leaving(), "<the repr of this Leaving raised SystemExit>"),
        (Odd(), "<the repr of this Odd raised TypeError>"),
        (Lines(), "a b"),
        ("\x1b[31m", r"'\x1b[31m'"),
        (self_containing, "[[[[...]]]]"),
        (int, "<class 'int'>"),
    ],
)
def test_values_in_a_line(value: object, text: str) -> None:
    assert describe(value) == text


def test_a_value_is_not_asked_for_its_class() -> None:
    text = describe(Liar())
    assert text == "liar"


def test_long_values_are_shortened() -> None:
    assert len(describe("x" * 100_000)) < 110
    assert len(describe(object.__new__(type("Long" * 500, (), {})))) < 110
    counter = Counter(range(100_000))
    assert describe(counter).startswith("Counter({0: 1, 1: 1,")
    assert len(describe(counter)) < 110
    assert len(show("x" * 100_000)) < 6100
    assert show("x" * 5000) == repr("x" * 5000)
    assert len(describe([["y" * 500] * 50] * 50)) < 6 * 6 * 110
    assert describe(10**10_000)


@given(
    st.recursive(
        st.integers() | st.text() | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_value_is_one_printable_line(value: object) -> None:
    assert describe(value).isprintable()


def test_names_of_functions_and_modules_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    hold = make()
    monkeypatch.setattr(
        hold.selected, "names_in_line", lambda: ["count", "Path", "outer", "__name__", "nothing"]
    )
    assert render.values_in_line(hold.selected) == ["    count = 0", "    __name__ = 'tests.fake_hold'"]


def test_a_module_tells_what_a_function_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    code = compile("from pathlib import Path\ncount = 3\nraise KeyError\n", "<program>", "exec")
    names: dict[str, Any] = {}
    with pytest.raises(KeyError) as raised:
        exec(code, names)
    frame = fake_hold.FakeFrame(raised.traceback[-1].frame.raw, 3, held=True, with_source=False)
    monkeypatch.setattr(frame, "names_in_line", lambda: ["count", "Path"])
    assert render.values_in_line(frame) == ["    count = 3"]


def test_no_line_behind_the_last_one() -> None:
    frame = make().selected
    frame.source = [(1, "x = 1"), (2, ""), (3, "y = 2"), (4, "")]
    frame.line = 3
    assert render.surroundings(frame).splitlines()[1:] == ["  1  x = 1", "  2", "> 3  y = 2"]


# --------------------------------------------------------------------- arrays


class FakeTensor:
    """Has what is read of a tensor; its device is in error."""

    shape = (2, 3)
    dtype = "torch.float32"
    device = type("Device", (), {"type": "cuda", "__str__": lambda self: "cuda:0"})()
    requires_grad = True
    layout = "strided"
    is_quantized = False

    def detach(self) -> FakeTensor:
        raise RuntimeError("CUDA error: device-side assert triggered")

    def __repr__(self) -> str:
        raise RuntimeError("CUDA error: device-side assert triggered")


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("torch")
    module.Tensor = FakeTensor  # type: ignore[attr-defined]
    module.strided = "strided"  # type: ignore[attr-defined]
    module._C = None  # type: ignore[attr-defined]
    module.cuda = type("cuda", (), {"is_current_stream_capturing": staticmethod(lambda: False)})  # type: ignore[attr-defined]
    module.no_grad = contextlib.nullcontext  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_a_device_in_error(fake_torch: ModuleType) -> None:
    head = "FakeTensor(2, 3) float32 on cuda:0, requires grad"
    assert describe(FakeTensor()) == f"{head}; no statistics: RuntimeError"
    assert describe([FakeTensor()]) == f"[{head}]"
    assert show({"a": FakeTensor()}) == f"{{'a': {head}}}"


@dataclasses.dataclass
class Batch:
    images: object
    size: int = 1


def test_tensors_in_containers_are_not_dumped(fake_torch: ModuleType) -> None:
    head = "FakeTensor(2, 3) float32 on cuda:0, requires grad"
    assert describe(OrderedDict(w=FakeTensor())) == f"OrderedDict({{'w': {head}}})"
    assert describe(Point(FakeTensor(), 1)) == f"Point(({head}, 1))"
    assert describe(Batch(FakeTensor())) == f"Batch(images={head}, size=1)"
    assert describe(Batch(3)) == "Batch(images=3, size=1)"


def test_a_half_imported_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    assert describe([1]) == "[1]"


def test_real_tensors() -> None:
    torch = pytest.importorskip("torch")
    assert describe(torch.tensor([[1.0, 2.0], [3.0, float("nan")]])) == (
        "Tensor(2, 2) float32 on cpu: min 1, mean 2, max 3, nan 1, inf 0"
    )
    assert describe(torch.tensor([float("inf"), float("nan")])) == "Tensor(2) float32 on cpu: nan 1, inf 1"
    assert describe(torch.tensor([1, 2, 6])) == "Tensor(3) int64 on cpu: min 1, mean 3, max 6"
    assert describe(torch.tensor([True, False, True])) == "Tensor(3) bool on cpu: true 2, false 1"
    assert describe(torch.tensor(2.5)) == "Tensor() float32 on cpu: value 2.5"
    assert describe(torch.zeros(0, 4)) == "Tensor(0, 4) float32 on cpu"
    assert describe(torch.empty(3, device="meta")) == "Tensor(3) float32 on meta"
    assert describe(torch.ones(2, dtype=torch.bfloat16)) == (
        "Tensor(2) bfloat16 on cpu: min 1, mean 1, max 1, nan 0, inf 0"
    )
    assert describe(torch.ones(2, dtype=torch.complex64)) == "Tensor(2) complex64 on cpu: nan 0, inf 0"
    weight = torch.nn.Parameter(torch.ones(3))
    assert describe(weight) == (
        "Parameter(3) float32 on cpu, requires grad: min 1, mean 1, max 1, nan 0, inf 0"
    )
    assert describe({"w": weight}) == "{'w': Parameter(3) float32 on cpu, requires grad}"
    assert describe(torch.ones(4, 3).to_sparse()).startswith("Tensor(4, 3) float32 on cpu")


def test_looking_at_a_tensor_changes_nothing() -> None:
    torch = pytest.importorskip("torch")
    state = torch.get_rng_state()
    tensor = torch.arange(6.0, requires_grad=True)
    version = tensor._version
    describe(tensor)
    assert tensor._version == version
    assert tensor.grad_fn is None
    assert torch.equal(state, torch.get_rng_state())
    assert torch.is_grad_enabled()

    seen = []

    def watch(self: object, function: Any, types: object, args: Any = (), kwargs: Any = None) -> object:
        seen.append(function)
        return function(*args, **(kwargs or {}))

    mode = pytest.importorskip("torch.utils._python_dispatch").TorchDispatchMode
    with type("Watching", (mode,), {"__torch_dispatch__": watch})():
        assert describe(tensor) == "Tensor(6) float32 on cpu, requires grad"
    assert seen == []


def test_large_tensors_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(values, "SAMPLE", 1000)
    large = torch.full((100, 200), 3.0)
    assert describe(large) == (
        "Tensor(100, 200) float32 on cpu: min 3, mean 3, max 3, nan 0, inf 0 (of a sample)"
    )
    assert describe(large.t()[::3]).endswith("(of a sample)")


def test_real_arrays() -> None:
    numpy = pytest.importorskip("numpy")
    assert describe(numpy.array([[1.0, 2.0], [3.0, float("nan")]])) == (
        "ndarray(2, 2) float64: min 1, mean 2, max 3, nan 1, inf 0"
    )
    assert describe(numpy.array([1, 2, 6], dtype=numpy.int32)) == "ndarray(3) int32: min 1, mean 3, max 6"
    assert describe(numpy.array(["a", "b"])) == "ndarray(2) <U1"
    assert describe(numpy.array([object()])) == "ndarray(1) object"
    assert describe(numpy.array([65504, 65504], dtype=numpy.float16)) == (
        "ndarray(2) float16: min 6.55e+04, mean 6.55e+04, max 6.55e+04, nan 0, inf 0"
    )
    assert describe([numpy.zeros((2, 2))]) == "[ndarray(2, 2) float64]"


@given(st.lists(st.integers(0, 50), max_size=5), st.integers(1, 100))
def test_a_sample_is_never_larger_than_the_limit(shape: list[int], limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "SAMPLE", limit)
        size = 1
        for length, part in zip(shape, values._steps(tuple(shape)), strict=True):
            size *= len(range(length)[part])
    assert size <= limit
    assert (size == 0) == (0 in shape)
