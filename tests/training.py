"""Training loops under test: run plain, or vaccinated with a fault that is held and answered."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daifu_bc.analysis import sources
from daifu_bc.frontends.playbook import parse_playbook
from daifu_bc.recovery import carriers, policy
from daifu_bc.rewrite import barrier

#: In this order the functions of the loop call `fault`; each is a place at which it may crash.
PLACES = (
    "item",
    "collate",
    "batch",
    "forward",
    "loss",
    "hook",
    "before step",
    "after step",
    "schedule",
    "validation",
    "metric",
    "save",
)

LOOP = """
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, default_collate

class Blobs(Dataset):
    def __init__(self, size):
        generator = torch.Generator().manual_seed(1)
        self.labels = torch.randint(0, 3, (size,), generator=generator)
        self.points = torch.randn(size, 8, generator=generator) + self.labels[:, None]
    def __len__(self):
        return len(self.labels)
    def __getitem__(self, index):
        fault("item")
        # An augmentation: a draw too many or too few changes all that follow.
        return self.points[index] + 0.1 * torch.randn(8), self.labels[index]

def collate(samples):
    points = torch.stack([point for point, _ in samples])
    fault("collate")
    return points, torch.stack([label for _, label in samples])

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.norm = nn.BatchNorm1d(16)
        self.drop = nn.Dropout(0.3)
        self.last = nn.Linear(16, 3)
    def forward(self, x):
        x = self.norm(self.first(x)).relu()
        if self.training:
            x = self.drop(x)
            fault("forward")
        return self.last(x)

def loss_of(scores, labels):
    penalty = scores.square().mean()
    fault("loss")
    return cross_entropy(scores, labels) + 0.01 * penalty

def on_gradient(gradient):
    fault("hook")
    return gradient * 1.0

def validate(net, loader):
    net.eval()
    right = count = 0
    with torch.no_grad():
        for x, y in loader:
            assert not torch.is_grad_enabled()
            fault("validation")
            right += int((net(x).argmax(1) == y).sum())
            count += len(y)
        fault("metric")
        events.append(f"accuracy {right / count:.3f}")
    net.train()

def make():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = Net()
    net.last.weight.register_hook(on_gradient)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    loaders = [
        DataLoader(Blobs(40), 8, shuffle=True, collate_fn=collate, num_workers=WORKERS),
        DataLoader(Blobs(16), 8, collate_fn=collate),
    ]
    return net, optimizer, schedule, loaders
"""

STEPS = """
net, optimizer, schedule, (training, validation) = make()
for epoch in range(3):
    for x, y in training:
        fault("batch")
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        fault("before step")
        optimizer.step()
        fault("after step")
        events.append(f"step {len(x)}")
    schedule.step()
    fault("schedule")
    validate(net, validation)
    fault("save")
    events.append(f"epoch {epoch}")
"""

#: The loop in the module itself, as most training programs have it, and in a function.
MODULE = LOOP + STEPS + "finish(net, optimizer)\n"
FUNCTION = (
    LOOP
    + "def main():\n"
    + "".join(f"    {line}\n" for line in STEPS.splitlines())
    + "    finish(net, optimizer)\nmain()\n"
)
#: The same with automatic mixed precision.
SCALED = MODULE.replace(
    "loss = loss_of(net(x), y)\n        loss.backward()",
    "with torch.autocast('cpu', dtype=torch.bfloat16):\n"
    "            scores = net(x)\n"
    "            loss = loss_of(scores.float(), y)\n"
    "        scaler.scale(loss).backward()",
)
SCALED = SCALED.replace("optimizer.step()", "scaler.step(optimizer)\n        scaler.update()")
SCALED = SCALED.replace(
    "for epoch in", "scaler = torch.amp.GradScaler('cpu', init_scale=1024.0)\nfor epoch in"
)


ROOT = Path(__file__).resolve().parent.parent


def environment(folder: Path) -> dict[str, str]:
    """Return the environment in which child processes are vaccinated, whether daifu_bc is installed or not.

    Args:
        folder: for a start-up file.
    """
    # Installed, as what starts us is, it is no code of the program's.
    site = folder / "site-packages"
    site.mkdir()
    (site / "sitecustomize.py").write_text(f"exec(open({str(ROOT / 'daifu_bc.pth')!r}).read())\n")
    return {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}


class Injected(Exception):
    """What a fault raises."""


@dataclass
class Result:
    """What a run did.

    Attributes:
        events: the event list.
        digest: of the weights, the optimiser's state and the state of the random numbers at the end.
        holds: the text of each hold's exception.
        output: what the playbook printed.
    """

    events: list[Any] = field(default_factory=list)
    digest: str = ""
    holds: list[str] = field(default_factory=list)
    output: str = ""


def fault_at(place: str, visit: int, events: list[Any]) -> Callable[[str], None]:
    """Return what the program calls at each place: it notes the event, and raises once, at one of them.

    Args:
        place: where; an empty text for nowhere.
        visit: at which visit of the place, from 1.
        events: where the events are noted.
    """
    visits = 0

    def fault(here: str) -> None:
        nonlocal visits
        if here == place:
            visits += 1
            if visits == visit:
                raise Injected(here)
        if here not in ("item", "hook"):
            events.append(here)

    return fault


def digest_of(net: Any, optimizer: Any) -> str:
    """Return a text that is the same for two runs only if they came to the same state, bit for bit."""
    import torch

    digest = hashlib.sha256()
    tensors = [*net.state_dict().values(), torch.get_rng_state()]
    for state in optimizer.state_dict()["state"].values():
        tensors += [value for value in state.values() if isinstance(value, torch.Tensor)]
    for tensor in tensors:
        digest.update(tensor.detach().numpy().tobytes())
    return digest.hexdigest()


def train(
    source: str,
    folder: Path,
    *,
    playbook: str | None = None,
    place: str = "",
    visit: int = 1,
    names: dict[str, Any] | None = None,
) -> Result:
    """Run a program.

    Args:
        source: its text.
        folder: where the text is written to.
        playbook: the words that answer its holds; None to run it plain.
        place: where it crashes once; see `fault_at`.
        visit: at which visit of that place.
        names: more names that the program finds.
    """
    path = folder / "train.py"
    path.write_text(source)
    sources.remember(str(path), source.encode())
    result = Result()
    module = types.ModuleType("training_program")
    module.__dict__.update(
        events=result.events,
        fault=fault_at(place, visit, result.events),
        finish=lambda net, optimizer: setattr(result, "digest", digest_of(net, optimizer)),
        WORKERS=0,
        __file__=str(path),
        **(names or {}),
    )
    code = compile(source, str(path), "exec")
    if playbook is None:
        exec(code, module.__dict__)
        return result
    with answering(playbook, result):
        exec(barrier.vaccinate_code(code), module.__dict__)
    return result


@contextlib.contextmanager
def answering(playbook: str, result: Result) -> Iterator[None]:
    """Answer the holds of this process from a playbook."""
    book = parse_playbook(playbook)

    def responder(hold: Any) -> None:
        result.holds.append(str(hold.exception))
        book.responder(hold)

    carriers.set_carrier(__name__, "train", carriers.OUTERMOST)
    policy.set_playbook(responder)
    written = io.StringIO()
    stderr = sys.__stderr__
    vars(sys)["__stderr__"] = written
    try:
        yield
    finally:
        vars(sys)["__stderr__"] = stderr
        result.output = written.getvalue()
        policy.set_playbook(None)
        carriers.set_carrier(__name__, "train", None)
