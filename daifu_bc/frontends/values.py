"""Values in a line or a few: shortened, tensors and arrays by what they are, and whatever goes wrong is shown.

Nothing here may hurt the held program: a repr that raises, a device in error, a tensor of many gigabytes.
"""

from __future__ import annotations

import math
import reprlib
import sys
from collections import deque
from itertools import islice
from types import ModuleType
from typing import Any

from daifu_bc.recovery.interrupts import was_interrupted

#: Statistics are taken of at most so many elements; of larger ones a regular sample.
SAMPLE = 1_000_000
#: In a child process of multiprocessing, few enough that no library starts its thread pool: it may not survive a fork.
SAMPLE_IN_CHILD = 20_000

PLAIN_TYPES = frozenset(
    {
        int,
        float,
        complex,
        bool,
        str,
        bytes,
        bytearray,
        type(None),
        list,
        tuple,
        dict,
        set,
        frozenset,
        deque,
        type,
    }
)


def printable(text: str) -> str:
    """Return `text` with control characters escaped, so that no value can drive the terminal."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1]
        for character in text
    )


def describe(value: object) -> str:
    """Return a value in one line of about a hundred characters."""
    return " ".join(_SHORT.of(value).split())


def show(value: object) -> str:
    """Return a value in full as far as that is reasonable: some thousand characters, tensors still in one line."""
    return _LONG.of(value)


def inline(value: object) -> str:
    """Return a value as it is written inside a container: tensors by shape alone."""
    return printable(_LONG.repr1(value, _LONG.maxlevel))


def _module(name: str) -> ModuleType | None:
    """Return a library if the program has loaded it. One that is only half imported has no types yet."""
    return sys.modules.get(name)


class _Repr(reprlib.Repr):
    """reprlib's shortening, made safe against reprs that raise and against arrays."""

    def of(self, value: object) -> str:
        summary = self._array(value, statistics=True)
        return printable(self.repr1(value, self.maxlevel) if summary is None else summary)

    def repr1(self, x: Any, level: int) -> str:
        try:
            summary = self._array(x, statistics=False)
            if summary is not None:
                return summary
            if type(x) in PLAIN_TYPES:
                return super().repr1(x, level)
            return self._instance(x, level)
        # The user's __repr__ may raise anything at all; the value is shown as such.
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and was_interrupted():
                raise
            return f"<the repr of this {type(x).__name__} raised {type(error).__name__}>"

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        """Return a dictionary in its own order; reprlib sorts the keys."""
        if not x:
            return "{}"
        if level <= 0:
            return "{...}"
        parts = [
            f"{self.repr1(key, level - 1)}: {self.repr1(value, level - 1)}"
            for key, value in islice(x.items(), self.maxdict)
        ]
        if len(x) > self.maxdict:
            parts.append("...")
        return "{" + ", ".join(parts) + "}"

    def _instance(self, x: Any, level: int) -> str:
        name = type(x).__name__
        # A long container of a derived class would write all of itself before it could be cut, and one of tensors
        # would dump them: a model's state is such a dictionary.
        for base, limit in (
            (dict, self.maxdict),
            (list, self.maxlist),
            (tuple, self.maxtuple),
            (set, self.maxset),
        ):
            if issubclass(type(x), base):
                items = list(islice(dict.items(x) if base is dict else base.__iter__(x), limit + 1))
                if len(items) > limit or any(
                    map(self._is_array, dict(items).values() if base is dict else items)
                ):
                    return f"{name}({super().repr1(base(items), level)})"
        fields = getattr(type(x), "__dataclass_fields__", None)
        if fields and any(map(self._is_array, getattr(x, "__dict__", {}).values())):
            shown = {key: value for key, value in vars(x).items() if key in fields}
            return f"{name}({', '.join(f'{key}={self.repr1(value, level - 1)}' for key, value in shown.items())})"
        text = repr(x)
        if len(text) > self.maxother:
            text = f"{text[: self.maxother * 2 // 3]}...{text[len(text) - self.maxother // 3 :]}"
        return text

    def _is_array(self, value: object) -> bool:
        return self._array(value, statistics=False) is not None

    def _array(self, value: object, *, statistics: bool) -> str | None:
        """Return the summary of a tensor or an array; None if it is none, or if not even that works."""
        try:
            return _tensor(value, statistics) or _ndarray(value, statistics)
        except BaseException as error:  # a half-built or foreign tensor is shown by name alone
            if isinstance(error, KeyboardInterrupt) and was_interrupted():
                raise
            return f"<{type(value).__name__}, not readable: {type(error).__name__}>"


def _make(*, containers: int, characters: int, levels: int) -> _Repr:
    maker = _Repr()
    maker.maxlevel = levels
    maker.maxlist = maker.maxtuple = maker.maxdict = maker.maxset = containers
    maker.maxfrozenset = maker.maxdeque = maker.maxarray = containers
    maker.maxstring = maker.maxlong = maker.maxother = characters
    return maker


_SHORT = _make(containers=6, characters=100, levels=3)
_LONG = _make(containers=200, characters=6000, levels=8)


def _limit() -> int:
    process = sys.modules.get("multiprocessing.process")
    in_child = process is not None and process.parent_process() is not None
    return SAMPLE_IN_CHILD if in_child else SAMPLE


def _steps(shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Return slices that thin an array out to at most the limit. Slices are views: nothing is copied."""
    steps = [1] * len(shape)
    sizes = list(shape)
    while math.prod(sizes) > _limit():
        widest = sizes.index(max(sizes))
        steps[widest] *= 2
        sizes[widest] = -(-shape[widest] // steps[widest])
    return tuple(slice(None, None, step) for step in steps)


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _sentence(head: str, shape: tuple[int, ...], facts: dict[str, Any], *, sampled: bool) -> str:
    if not facts:
        return head
    text = ", ".join(f"{name} {_number(value)}" for name, value in facts.items())
    return f"{head}: {text}{' (of a sample)' if sampled and shape else ''}"


def _tensor(value: object, statistics: bool) -> str | None:
    torch: Any = _module("torch")
    base = getattr(torch, "Tensor", None)
    if base is None or not issubclass(type(value), base):
        return None
    tensor: Any = value
    kind = f"{str(tensor.dtype).removeprefix('torch.')} on {tensor.device}"
    if getattr(tensor, "is_nested", False):
        return f"{type(value).__name__}, nested, {kind}"
    shape = tuple(tensor.shape)
    head = f"{type(value).__name__}{_shape(shape)} {kind}"
    if tensor.requires_grad:
        head += ", requires grad"
    # A derived class may do anything when it is read: a distributed tensor would wait for the other processes.
    known = (base, getattr(getattr(torch, "nn", None), "Parameter", base))
    if not statistics or type(value) not in known or not _may_read(torch, tensor):
        return head
    try:
        sampled = math.prod(shape) > _limit()
        # Copied to the processor before anything is computed: memory of the device may be what is missing.
        with torch.no_grad():
            elements = tensor.detach()
            if not _has_memory(elements):
                return f"{head}; its memory was given back"
            facts = _torch_facts(torch, elements[_steps(shape)].cpu())
    except Exception as error:  # noqa: BLE001 - a device that is in error, memory that is missing
        return f"{head}; no statistics: {type(error).__name__}"
    return _sentence(head, shape, facts, sampled=sampled)


def _may_read(torch: Any, tensor: Any) -> bool:
    """Tell whether looking at the elements is invisible to the program."""
    if tensor.layout is not torch.strided or tensor.device.type == "meta" or tensor.is_quantized:
        return False
    # The program's own modes (profilers, counters, fake tensors) would see our operations as the program's.
    for name in ("_len_torch_dispatch_stack", "_len_torch_function_stack"):
        depth = getattr(torch._C, name, None)
        if depth is not None and depth() > 0:
            return False
    # A read from the device in the middle of a graph's capture spoils the graph.
    return not (tensor.device.type == "cuda" and torch.cuda.is_current_stream_capturing())


def _has_memory(tensor: Any) -> bool:
    """Tell whether a tensor's elements are there: sharding takes the memory away, and reading it ends the process."""
    if tensor.numel() == 0:
        return True
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    needed = (tensor.storage_offset() + last + 1) * tensor.element_size()
    return bool(tensor.untyped_storage().nbytes() >= needed)


def _torch_facts(torch: Any, sample: Any) -> dict[str, Any]:
    if sample.numel() == 0:
        return {}
    if sample.numel() == 1:
        return {"value": sample.reshape(()).item()}
    if sample.dtype is torch.bool:
        return {"true": int(sample.sum()), "false": int((~sample).sum())}
    if sample.is_complex():
        return {"nan": int(torch.isnan(sample).sum()), "inf": int(torch.isinf(sample).sum())}
    if not sample.is_floating_point():
        # For the larger unsigned types there is no arithmetic.
        sample = sample.to(torch.float64 if sample.dtype is torch.uint64 else torch.int64)
        return {
            "min": int(sample.min()),
            "mean": float(sample.to(torch.float64).mean()),
            "max": int(sample.max()),
        }
    sample = sample.to(torch.float64)
    finite = sample[torch.isfinite(sample)]
    facts: dict[str, Any] = {}
    if finite.numel():
        facts = {"min": float(finite.min()), "mean": float(finite.mean()), "max": float(finite.max())}
    return facts | {"nan": int(torch.isnan(sample).sum()), "inf": int(torch.isinf(sample).sum())}


def _ndarray(value: object, statistics: bool) -> str | None:
    numpy: Any = _module("numpy")
    base = getattr(numpy, "ndarray", None)
    if base is None or not issubclass(type(value), base):
        return None
    array: Any = value
    shape = tuple(array.shape)
    head = f"{type(value).__name__}{_shape(shape)} {array.dtype}"
    if not statistics or type(value) not in (base, getattr(numpy, "memmap", base)):
        return head
    try:
        with numpy.errstate(all="ignore"):
            facts = _numpy_facts(numpy, numpy.asarray(array[_steps(shape)]))
    except Exception as error:  # noqa: BLE001 - a mapped file that is gone, memory that is missing
        return f"{head}; no statistics: {type(error).__name__}"
    return _sentence(head, shape, facts, sampled=math.prod(shape) > _limit())


def _numpy_facts(numpy: Any, sample: Any) -> dict[str, Any]:
    kind = sample.dtype.kind
    if sample.size == 0 or kind not in "biufc":
        return {}
    if sample.size == 1:
        return {"value": sample.reshape(()).item()}
    if kind == "b":
        return {"true": int(sample.sum()), "false": int((~sample).sum())}
    if kind == "c":
        return {"nan": int(numpy.isnan(sample).sum()), "inf": int(numpy.isinf(sample).sum())}
    if kind in "iu":
        return {"min": int(sample.min()), "mean": float(sample.mean()), "max": int(sample.max())}
    sample = sample.astype(numpy.float64)
    finite = sample[numpy.isfinite(sample)]
    facts: dict[str, Any] = {}
    if finite.size:
        facts = {"min": float(finite.min()), "mean": float(finite.mean()), "max": float(finite.max())}
    return facts | {"nan": int(numpy.isnan(sample).sum()), "inf": int(numpy.isinf(sample).sum())}


def _shape(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(str(size) for size in shape) + ")"
