"""Training loops of PyTorch crash anywhere, are repaired, and end as if nothing had happened."""

from __future__ import annotations

import functools
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.training import FUNCTION, MODULE, PLACES, SCALED, Result, environment, train

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Let torch compute in this thread alone: the tensors are small."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


LOOPS = {"module": MODULE, "function": FUNCTION, "scaled": SCALED}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> functools.partial[Result]:
    """Return what gives the result of a loop that does not crash."""
    folder = tmp_path_factory.mktemp("whole")

    @functools.cache
    def of(name: str) -> Result:
        return train(LOOPS[name], folder)

    return functools.partial(of)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", LOOPS)
def test_ends_as_if_it_had_not_crashed(
    whole: functools.partial[Result], name: str, place: str, tmp_path: Path
) -> None:
    crashed = train(LOOPS[name], tmp_path, playbook="pass", place=place, visit=2)
    assert crashed.holds == [place], crashed.output
    assert crashed.events == whole(name).events
    assert crashed.digest == whole(name).digest


AUTOGRAD = """
import torch
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        fault("function forward")
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        fault("function backward")
        return gradient * 2

def block(x):
    y = torch.nn.functional.dropout(layer(x), 0.5)
    fault("recomputed")
    return y.relu()

def squared(x):
    fault("mapped")
    return (x * weight).square().sum()

layer = torch.nn.Linear(4, 4)
weight = torch.randn(4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
for step in range(3):
    optimizer.zero_grad()
    x = torch.randn(5, 4)
    y = Double.apply(checkpoint(block, x, use_reentrant=False))
    y.sum().backward()
    optimizer.step()
    gradients = torch.func.vmap(torch.func.grad(squared))(x)
    events.append(f"{gradients.sum():.6f}")
finish(layer, optimizer)
"""


@pytest.mark.parametrize("place", ["function forward", "function backward", "recomputed", "mapped"])
@pytest.mark.parametrize("visit", [1, 2, 4])
def test_what_autograd_calls(place: str, visit: int, tmp_path: Path) -> None:
    """The recomputation of a checkpoint runs in the middle of the backward pass, a transformed function in C++."""
    visit = min(visit, 3) if place != "recomputed" else visit
    plain = train(AUTOGRAD, tmp_path)
    crashed = train(AUTOGRAD, tmp_path, playbook="pass", place=place, visit=visit)
    assert crashed.holds == [place], crashed.output
    assert crashed.events == plain.events
    assert crashed.digest == plain.digest


DEAD = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        activations = x.repeat(1000)
        seen(activations)
        return library(activations).sum()

def main(net, x):
    with torch.no_grad():
        for number in range(3):
            large = x * number
            seen(large)
            y = net(large)
            gone("after")
            del large
            gone("at the end")
main(Net(), torch.ones(1000))
"""


def test_dead_frames_keep_no_tensor(tmp_path: Path) -> None:
    """Neither the frames inside the held one nor that frame itself keep what the program has let go."""
    refs: list[weakref.ref[Any]] = []
    alive: list[tuple[str, int]] = []

    calls = 0

    def library(x: Any) -> Any:
        nonlocal calls
        calls += 1
        temporary = x * 2
        refs.append(weakref.ref(temporary))
        if calls in (1, 4):
            raise MemoryError
        return temporary

    def gone(when: str) -> None:
        alive.append((when, sum(ref() is not None for ref in refs)))

    names = {"library": library, "seen": lambda x: refs.append(weakref.ref(x)), "gone": gone}
    book = "action frame_of_dead = None\npass\n---\npass\n"
    crashed = train(DEAD, tmp_path, playbook=book, names=names)
    assert len(crashed.holds) == 2
    assert alive == [("after", 1), ("at the end", 0)] * 3


LIMITED = """
import resource
import torch
torch.set_num_threads(1)

def pages():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()

MEGABYTE = 2**20
layers = [torch.nn.Linear(64, 1024), *(torch.nn.Softplus() for _ in range(8)), torch.nn.Linear(1024, 1)]
net = torch.nn.Sequential(*layers)
data = torch.ones(4096, 64)
net(data[:64]).sum().backward()
resource.setrlimit(resource.RLIMIT_AS, (pages() + 100 * MEGABYTE, resource.RLIM_INFINITY))
seen = 0
for epoch in range(3):
    for batch in data.split(256 if epoch == 0 else 4096):
        parts = [batch]
        while parts:
            loss = net(parts[0]).sum()
            loss.backward()
            seen += len(parts.pop(0))
    print("epoch", epoch, "seen", seen)
"""


def daifu_run(folder: Path, source: str, playbook: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own under `daifu run`, with a playbook."""
    (folder / "train.py").write_text(source)
    (folder / "playbook.txt").write_text(playbook)
    command = [sys.executable, "-m", "daifu_bc", "run", "--playbook", "playbook.txt", "train.py", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, env=environment(folder)
    )


@pytest.mark.slow
def test_a_smaller_batch_after_running_out_of_memory(tmp_path: Path) -> None:
    """The memory that the dead frames had is there again at once: nearly all that there was."""
    block = "where\nlocals\naction parts = list(batch.split(512))\npass\n"
    run = daifu_run(tmp_path, LIMITED, f"{block}---\n{block}")
    assert run.returncode == 0, run.stderr
    assert run.stdout == "epoch 0 seen 4096\nepoch 1 seen 8192\nepoch 2 seen 12288\n"
    assert run.stderr.count("can't allocate memory") == 2


WORKERS = """
import os
import sys
import torch
from torch.utils.data import DataLoader, Dataset

method, place, marker = sys.argv[1:]

def fault(here):
    # Once in all processes together.
    if here == place:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        raise OSError("image file is truncated")

class Images(Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, index):
        if index == 13:
            fault("item")
        return torch.full((2, 2), float(index)) + 0.01 * torch.rand(2, 2), index

def collate(samples):
    if any(index == 13 for _, index in samples):
        fault("collate")
    return torch.stack([image for image, _ in samples]), [index for _, index in samples]

def main():
    torch.manual_seed(0)
    loader = DataLoader(
        Images(),
        4,
        shuffle=True,
        collate_fn=collate,
        num_workers=2,
        multiprocessing_context=method,
        persistent_workers=True,
    )
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
    for epoch in range(2):
        seen = []
        for images, indices in loader:
            optimizer.zero_grad()
            net(images.flatten(1)).square().mean().backward()
            optimizer.step()
            seen += indices
        assert sorted(seen) == list(range(24))
        print(epoch, seen)
    print([parameter.tolist() for parameter in net.parameters()])

if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("method", "place"), [("fork", "item"), ("fork", "collate"), ("spawn", "item")])
def test_a_crash_in_a_worker(method: str, place: str, tmp_path: Path) -> None:
    """The worker is held where the sample failed; its batch comes in its turn, and no sample is lost."""
    held = daifu_run(tmp_path, WORKERS, "where\nskip\n", method, place, "marker")
    plain = subprocess.run(
        [sys.executable, "train.py", method, "nowhere", "marker"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert held.returncode == 0, held.stderr
    assert held.stderr.count("OSError: image file is truncated") == 1
    assert plain.stdout
    assert held.stdout == plain.stdout


TENSORS = """
import torch
from daifu_bc.frontends.values import describe
sharded = torch.ones(1000)
sharded.untyped_storage().resize_(0)
print(describe(sharded))
print(describe(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])))
print(describe(torch.tensor([1, 2, 6], dtype=torch.uint16)))
torch.func.vmap(lambda x: print(describe(x)) or x)(torch.ones(3, 2))
with torch.inference_mode():
    print(describe(torch.ones(2, 3)))
print(describe(torch.ones(1).expand(10**9)))
"""


@pytest.mark.slow
def test_tensors_that_cannot_be_read(tmp_path: Path) -> None:
    """A process of its own: reading memory that is not there ends it."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TENSORS], capture_output=True, text=True, timeout=300
    )
    assert run.stderr == ""
    assert run.stdout.splitlines() == [
        "Tensor(1000) float32 on cpu; its memory was given back",
        "Tensor, nested, float32 on cpu",
        "Tensor(3) uint16 on cpu: min 1, mean 3, max 6",
        "Tensor(2) float32 on cpu; no statistics: NotImplementedError",
        "Tensor(2, 3) float32 on cpu: min 1, mean 1, max 1, nan 0, inf 0",
        "Tensor(1000000000) float32 on cpu: min 1, mean 1, max 1, nan 0, inf 0 (of a sample)",
    ]
