"""Small programs for torch.compile: each defines `calls`, a list of (function to compile, list of its arguments).

They are texts, so that they can be compiled twice: plain, and vaccinated. A program may define `OPTIONS` for
torch.compile, and `CONFIG` for Dynamo.
"""

from __future__ import annotations

HEAD = """
import contextlib
import functools
import torch
from torch import nn
torch.manual_seed(0)
X = torch.linspace(-1.0, 1.0, 12).reshape(3, 4)
"""

PROGRAMS = {
    "no break": """
def function(x):
    y = torch.sin(x)
    return y.cos() + 1
calls = [(function, [(X,), (X * 2,)])]
""",
    "module": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 5)
        self.second = nn.Linear(5, 2)
    def forward(self, x):
        x = torch.relu(self.first(x))
        x = self.second(x)
        return x.softmax(-1)
calls = [(Net(), [(X,), (X + 1,)])]
""",
    "print": """
def function(x):
    y = torch.sin(x)
    print("between")
    z = y + 1
    print("after")
    return z * 2
calls = [(function, [(X,), (X,)])]
""",
    "data-dependent branch": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        y = self.layer(x)
        if y.sum() > 0:
            y = y * 2
        else:
            y = y - 1
        return y.tanh()
calls = [(Net(), [(X,), (-X,), (X * 100,)])]
""",
    "closures": """
def make(scale):
    offset = torch.ones(4)
    count = 0
    def inner(x):
        nonlocal count
        count += 1
        return x * scale + offset
    def outer(x):
        y = inner(x)
        print("closure")
        return inner(y), count
    return outer
calls = [(make(2.0), [(X,), (X,)]), (make(3.0), [(X,)])]
""",
    "nested modules that handle exceptions": """
class Block(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.table = table
    def forward(self, x, name):
        try:
            factor = self.table[name]
        except KeyError:
            factor = 0.5
        finally:
            x = x + 1
        return self.layer(x) * factor
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block({"a": 2.0}) for _ in range(3))
    def forward(self, x):
        for name, block in zip("abc", self.blocks):
            x = block(x, name)
        return x
calls = [(Net(), [(X,), (X,)])]
""",
    "with no_grad": """
def function(x):
    with torch.no_grad():
        y = torch.sin(x)
        print("inside", torch.is_grad_enabled())
        z = y * x
    return z + x
calls = [(function, [(X.clone().requires_grad_(),), (X,)])]
""",
    "with of its own": """
class Count:
    def __init__(self):
        self.entered = self.left = 0
    def __enter__(self):
        self.entered += 1
        return self
    def __exit__(self, *exc):
        self.left += 1
        return False
COUNT = Count()
@contextlib.contextmanager
def doubled(x):
    try:
        yield x * 2
    finally:
        pass
def function(x):
    with COUNT as count, doubled(x) as y:
        y = y.sin()
    return y + count.entered, count.left
calls = [(function, [(X,), (X,)])]
""",
    "loops": """
def function(x, count):
    total = torch.zeros(4)
    for index in range(count):
        total = total + x[index % 3]
        if index == 2:
            print("third")
            continue
        while total.ndim > 3:
            break
    else:
        total = total * 2
    return total
calls = [(function, [(X, 4), (X, 5), (X, 2)])]
""",
    "unrolled loops": """
def function(x, count):
    total = torch.zeros(4)
    for index in range(count):
        if index == 1:
            continue
        total = total + x[index % 3]
        if index == 3:
            break
    else:
        total = total * 2
    while total.ndim < 3:
        total = total.unsqueeze(0)
    print("unrolled")
    return total.sin()
calls = [(function, [(X, 4), (X, 5), (X, 2)])]
""",
    "with of its own, traced": """
class Count:
    def __init__(self):
        self.entered = self.left = 0
    def __enter__(self):
        self.entered += 1
        return self
    def __exit__(self, *exc):
        self.left += 1
        return False
@contextlib.contextmanager
def doubled(x):
    try:
        yield x * 2
    finally:
        pass
def function(x):
    with Count() as count:
        y = x.sin()
    with doubled(y) as z, torch.autocast("cpu"):
        z = z @ z.T
    with torch.enable_grad():
        print("enabled")
    return y.sum() + count.entered, z, count.left
calls = [(function, [(X,), (X,)])]
""",
    "break in a loop of modules": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            if x.mean().item() > 1e9:
                raise ValueError("too large")
        return x
calls = [(Net(), [(X,), (X,)])]
""",
    "exceptions as control flow": """
class Stop(Exception):
    pass
def check(x, limit):
    if x.shape[0] > limit:
        raise Stop(f"{x.shape[0]} rows")
    return x + 1
def function(x, limit):
    try:
        y = check(x, limit)
    except Stop as stop:
        y = x - 1
        print(stop)
    except (KeyError, IndexError):
        y = x
    else:
        y = y * 2
    finally:
        y = y.cos()
    return y
calls = [(function, [(X, 5), (X, 2), (X, 5)])]
""",
    "generators and comprehensions": """
def rows(x):
    for index in range(x.shape[0]):
        yield x[index].sin()
def function(x):
    parts = [row * 2 for row in rows(x)]
    names = {f"row {index}": part for index, part in enumerate(parts)}
    total = sum(part for part in names.values())
    first, *rest = parts
    return total + first, {len(rest)}
calls = [(function, [(X,), (X,)])]
""",
    "functions that are made": """
def function(x):
    scale = x.shape[1]
    def inner(y, factor=2, *, power=1):
        return (y * factor * scale) ** power
    twice = lambda y: inner(inner(y), power=2)
    return twice(x), inner
def use(x):
    y, made = function(x)
    print("made")
    return made(y)
calls = [(use, [(X,), (X,)])]
""",
    "inheritance": """
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x, *rest, **named):
        return self.layer(x) + sum(rest) + named.get("bias", 0)
    @property
    def scale(self):
        return 3
    @staticmethod
    def shift(x):
        return x + 1
    @classmethod
    def name(cls):
        return cls.__name__
class Net(Base):
    def forward(self, x, *rest, **named):
        y = super().forward(self.shift(x), *rest, **named) * self.scale
        return y, self.name()
class Caller(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()
    def forward(self, x):
        y, name = self.net(x, 1, 2, bias=0.5)
        print(name)
        return y
calls = [(Caller(), [(X,), (X,)])]
""",
    "break in a function that is called": """
def helper(x):
    value = x.sum().item()
    return x + value
def function(x):
    y = x * 2
    z = helper(y)
    return z.sin()
calls = [(function, [(X,), (X,)])]
""",
    "function that is kept out": """
@torch.compiler.disable
def helper(x):
    return x + 1
def function(x):
    y = x * 2
    z = helper(y)
    return z.sin()
calls = [(function, [(X,), (X,)])]
""",
    "shapes": """
def function(x):
    if x.shape[0] == 1:
        return x.squeeze(0)
    return x.reshape(-1)[:: 2] * x.shape[0]
calls = [(function, [(torch.ones(size, 4),) for size in (3, 4, 5, 1, 7)])]
""",
    "plain arguments": """
def function(x, number, text, flag=True, *, rate=0.5):
    if flag and text == "sum":
        x = x + number
    return x * rate
calls = [(function, [(X, 1, "sum"), (X, 2, "sum"), (X, 3, "mean"), (X, 1.5, "sum", False)])]
""",
    "training step": """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
def step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()
calls = [(step, [(X, torch.tensor([0, 1, 0]))] * 3)]
""",
    "own autograd function": """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x * gradient
def function(x):
    return Square.apply(x).sum()
calls = [(function, [(X.clone().requires_grad_(),), (X,)])]
""",
    "checkpoint": """
from torch.utils.checkpoint import checkpoint
layer = nn.Linear(4, 4)
def block(x):
    return layer(x).relu()
def function(x):
    return checkpoint(block, x, use_reentrant=False).sum()
calls = [(function, [(X.clone().requires_grad_(),)])]
""",
    "match and walrus": """
def function(x, options):
    match options:
        case {"kind": "scale", "by": by} if (double := by * 2) > 0:
            y = x * double
        case [first, *rest]:
            y = x + first + len(rest)
        case _:
            y = x
    return y.sin() if (rows := x.shape[0]) > 2 else y + rows
calls = [(function, [(X, {"kind": "scale", "by": 2}), (X, [1, 2, 3]), (X, None)])]
""",
    "whole graph": """
OPTIONS = {"fullgraph": True}
def function(x):
    try:
        y = x.sin()
    finally:
        y = x.cos()
    return y
def broken(x):
    y = x.sin()
    print("no whole graph")
    return y
calls = [(function, [(X,)]), (broken, [(X,)])]
""",
    "dynamic shapes": """
OPTIONS = {"dynamic": True}
def function(x):
    with torch.no_grad():
        y = x * x.shape[0]
    return y.sum(0)
calls = [(function, [(torch.ones(size, 4),) for size in (3, 4, 5)])]
""",
    "breaks in nested calls": """
CONFIG = {"nested_graph_breaks": True}
def inner(x):
    y = x + 1
    print("inner")
    return y * 2
def middle(x):
    y = inner(x.sin())
    return y.cos()
def function(x):
    z = middle(x * 2)
    return z + 1
calls = [(function, [(X,), (X,)])]
""",
    "lambda": """
calls = [(lambda x, y=2: torch.relu(x) * y, [(X,), (X, 3)])]
""",
    "deleted variables": """
def function(x):
    large = x * 100
    y = large + 1
    del large
    print("deleted")
    try:
        large
    except NameError as error:
        z = y.sin()
    return z
calls = [(function, [(X,), (X,)])]
""",
    "crash in what was compiled": """
table = torch.ones(5)
def function(x, index):
    y = x.sin()
    picked = table[index]
    print("picked")
    return y.sum() + picked.sum()
calls = [(function, [(X, torch.tensor([1, 2])), (X, torch.tensor([7])), (X, torch.tensor([3]))])]
""",
}
