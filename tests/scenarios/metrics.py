"""Validation, metrics and logging, once in an epoch, fail."""

from __future__ import annotations

from tests.scenarios.scenario import Scenario

FORMAT = """
class Fake:
    def __init__(self, value):
        self.value = value
def train():
    done = []
    for epoch in range(3):
        loss = 0
        for batch in iter(range(4)):
            loss += batch * epoch
            done.append((epoch, batch))
            if batch == 3:
                loss = Fake(loss)
                print(f'epoch {epoch} loss {loss:.4f}')
        print('done', len(done))
    return done
print(train())
"""

FORMAT_MODULE = """
class Fake:
    value = 7
    def item(self):
        return self.value
seen = []
for epoch, name in enumerate(['a', 'b']):
    for batch in (value for value in range(3)):
        seen.append((epoch, batch))
    print('{}: {:.2f}'.format(name, Fake()))
print(seen)
"""

ACCUMULATOR = """
class Tensor:
    def __init__(self, value):
        self.value = value
    def __array__(self):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")
    def cpu(self):
        return self.value
def conv(tensor):
    return tensor.__array__() if isinstance(tensor, Tensor) else tensor
def train():
    meters = 0
    for step in range(5):
        print('step', step)
        meters = meters + conv(Tensor(step))
    return meters
print(train())
"""

METER = """
class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0
    def update(self, value):
        self.count += 1
        self.total += float(value)
class Loss:
    def __init__(self, value):
        self.value = value
    def __float__(self):
        raise TypeError('only on the CPU')
meter = Meter()
values = [1.5, 2.5, Loss(4.0), 8.0]
for value in values:
    meter.update(value)
    print('updated', meter.count, meter.total)
"""

NUMPY = """
import types
np = types.ModuleType('np')
np.int = int
class Evaluator:
    def evaluate(self, count):
        found = [np.bool(number % 2) for number in range(count)]
        print('first', found)
        return self.report(found)
    def report(self, found):
        print('second', np.bool(sum(found)))
        return np.bool(found[0])
def main():
    for epoch in range(2):
        print('epoch', epoch)
        print('third', Evaluator().evaluate(3))
main()
"""

MODULE_CONSTANT = """
import types
config = types.SimpleNamespace(gamma=0.5)
def schedule(step):
    return config.gamma ** step + config.floor
def rates():
    print('rates')
    return [schedule(step) for step in range(3)]
print(rates(), rates())
print(config.floor)
"""

CALLBACKS = """
class Callback:
    def __init__(self, name, monitor):
        self.name, self.monitor, self.calls = name, monitor, 0
    def on_epoch_end(self, epoch, logs):
        self.calls += 1
        print(self.name, epoch, self.calls, logs[self.monitor])
class CallbackList:
    def __init__(self, callbacks):
        self.callbacks = callbacks
    def on_epoch_end(self, epoch, logs):
        for callback in self.callbacks:
            callback.before = epoch
            self.one(callback, epoch, logs)
    def one(self, callback, epoch, logs):
        callback.on_epoch_end(epoch, logs)
def fit(epochs):
    callbacks = CallbackList([Callback('a', 'loss'), Callback('b', 'val_loss'), Callback('c', 'loss')])
    for epoch in range(epochs):
        callbacks.on_epoch_end(epoch, {'loss': epoch, 'accuracy': 1})
fit(3)
"""

CALLBACKS_MAPPED = """
calls = []
def hook(name, key):
    def run(logs):
        calls.append(name)
        return name, logs[key]
    return run
hooks = [hook('a', 'loss'), hook('b', 'gone'), hook('c', 'loss')]
for epoch in range(2):
    print(epoch, list(map(lambda one: one({'loss': epoch}), hooks)), calls)
"""

SCENARIOS = {
    "a format that the value does not know, in nested loops": Scenario(
        FORMAT,
        (("{loss:.4f}", "{loss.value:.4f}"),),
        "p done\nsurgery fixed.py\npass\n",
        says=("unsupported format string",),
    ),
    "a format that the value does not know, in a module's nested loops": Scenario(
        FORMAT_MODULE,
        (("name, Fake())", "name, Fake().item())"),),
        "frame <module>\nsurgery fixed.py\npass\n",
    ),
    "an accumulator cannot be converted": Scenario(
        ACCUMULATOR,
        (("meters = meters + conv(Tensor(step))", "meters = meters + conv(Tensor(step).cpu())"),),
        "frame train\nsurgery fixed.py\npass\n",
    ),
    "a meter has counted already": Scenario(
        METER, (("Loss(4.0)", "4.0"),), "frame update\naction value = value.value\ngoto 7\n"
    ),
    "an attribute of a module is missing at several places": Scenario(
        NUMPY, (("np.int = int", "np.bool = bool"),), "action np.bool = bool\npass\n"
    ),
    "a constant is missing at several places": Scenario(
        MODULE_CONSTANT, (("gamma=0.5", "gamma=0.5, floor=0.25"),), "config.floor = 0.25\npass\n"
    ),
    "the second callback of three fails": Scenario(
        CALLBACKS,
        (("'val_loss'", "'loss'"), ("self.calls += 1", "self.calls += 1")),
        "self.monitor = 'loss'\npass\n",
    ),
    "the second callback of three fails below map": Scenario(
        CALLBACKS_MAPPED, (("'gone'", "'loss'"),), "action key = 'loss'\npass\n"
    ),
}
