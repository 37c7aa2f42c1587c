"""There is no memory for it."""

from __future__ import annotations

from tests.scenarios.scenario import Scenario

BUDGET = """
class Budget:
    free = 10
class Buffer:
    def __init__(self, size):
        if size > Budget.free:
            raise MemoryError(f'out of memory: {size} wanted, {Budget.free} free')
        Budget.free -= size
        self.size = size
    def __del__(self):
        Budget.free += self.size
"""

LONG_BATCH = (
    BUDGET
    + """
def layer(batch, depth):
    buffer = Buffer(len(batch))
    return buffer.size + layer(batch, depth - 1) if depth else buffer.size
def forward(batch):
    return layer(batch, 4)
def train(batches):
    total = 0
    for batch in batches:
        parts = [batch]
        total += sum(forward(part) for part in parts)
        print('total', total, Budget.free)
    return total
print(train(['ab', 'a', 'abcd', 'ab']))
"""
)

TWICE = (
    BUDGET
    + """
config = {'batch': 8}
class Validator:
    kept = None
    def validate(self):
        size = config['batch']
        copy = Buffer(size)
        print('validated')
def train():
    model = Buffer(4)
    for epoch in range(3):
        print('epoch', epoch)
        Validator().validate()
    print('trained', Budget.free)
train()
"""
)

KEPT = (
    BUDGET
    + """
import gc
class Validator:
    kept = None
    def validate(self, epoch):
        cycle = [Buffer(4)]
        cycle.append(cycle)
        Validator.kept = cycle
        print('validated', epoch)
gc.disable()
def train():
    for epoch in range(5):
        Validator().validate(epoch)
        # between
train()
"""
)

RECURSION = """
import sys
limit = None
def depth(tree):
    return 0 if tree is None else 1 + depth(tree[0])
def parse(count):
    tree = None
    for _ in range(count):
        tree = [tree]
    return tree
def evaluate(trees):
    for tree in trees:
        print('depth', depth(tree))
# limit
evaluate([parse(10), parse(3000), parse(20)])
print('done')
"""

SCENARIOS = {
    "a long batch needs too much": Scenario(
        LONG_BATCH,
        (("parts = [batch]", "parts = [batch[:2], batch[2:]] if len(batch) > 2 else [batch]"),),
        "frame train\naction parts = [batch[:2], batch[2:]]\npass\n",
        says=("MemoryError",),
    ),
    "validation needs too much": Scenario(
        TWICE, (("'batch': 8", "'batch': 6"),), "frame validate\naction config['batch'] = 6\ngoto 17\n"
    ),
    "what validation keeps has to be collected": Scenario(
        KEPT,
        (("# between", "gc.collect()"),),
        "frame validate\naction Validator.kept = None; import gc; print('collected', gc.collect() > 0)\npass\n---\n"
        * 2,
        holds=2,
        says=("collected True",),
    ),
    "the recursion limit is too low": Scenario(
        RECURSION,
        (("# limit", "sys.setrecursionlimit(20000)"),),
        "frame evaluate\naction sys.setrecursionlimit(20000)\npass\n",
        says=("RecursionError",),
    ),
}
