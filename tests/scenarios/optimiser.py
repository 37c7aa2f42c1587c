"""The optimiser or the schedule fails."""

from __future__ import annotations

from tests.scenarios.scenario import Scenario

SCALER = """
class Scaler:
    def __init__(self):
        self.checks = 0
    def scale(self, loss):
        if loss:
            self.checks += 1
    def step(self):
        assert self.checks, 'No inf checks were recorded for this optimizer.'
        self.checks = 0
        print('step')
def train(samples):
    scaler, accumulated = Scaler(), []
    for epoch in range(2):
        for number, sample in enumerate(samples):
            if sample is None:
                continue
            accumulated.append((epoch, number))
            scaler.scale(sample)
            if len(accumulated) == 2 or sample == 0:
                scaler.step()
                print('applied', accumulated)
                accumulated = []
    return accumulated
print(train([5, 6, 7, 8, 0, 9, 10]))
"""

BAD_BATCH = """
weights = 1
steps = 0
def optimise(batch):
    global weights
    assert batch >= 0, 'negative'
    weights += batch
index = 0
while index < 6:
    index += 1
    batch = 3 - index if index == 4 else index
    try:
        print('begin', index)
        if batch > -9: optimise(batch)
        steps += 1
        print('end', index)
    finally:
        print('finally', index)
print(weights, steps)
"""

NAN = """
import copy, math
def normal(mean):
    if math.isnan(mean):
        raise ValueError('invalid values nan in Normal()')
    return mean
class Runner:
    def __init__(self):
        self.weights = {'w': 1.0}
        self.scales = [2.0, 2.0, float('nan'), 2.0]
        self.updates = 0
    def learn(self):
        for step in range(4):
            self.iterate(step)
        print('updates', self.updates)
    def iterate(self, step):
        self.good = copy.copy(self.weights)
        self.update(step)
        self.act(step)
    def update(self, step):
        self.weights['w'] *= self.scales[step]
        self.updates += 1
    def act(self, step):
        print('act', step, normal(self.weights['w']))
Runner().learn()
"""

DIVERGED = """
def total(values):
    found = sum(values)
    if found > 100:
        raise OverflowError('diverged')
    return found
history = []
def epoch(number, rate, state):
    for value in range(3):
        state.append(value * rate)
    history.append(total(state))
    print('epoch', number, history[-1])
def train():
    state = []
    for number in range(4):
        epoch(number, rate=1000 if number == 2 else 1, state=state)
    return state
print(train(), history)
"""

SCENARIOS = {
    "a bad sample leaves the scaler without checks": Scenario(
        SCALER,
        (("[5, 6, 7, 8, 0, 9, 10]", "[5, 6, 7, 8, None, 9, 10]"),),
        "frame train\naction accumulated.pop()\nskip body\n---\n" * 2,
        holds=2,
    ),
    "a bad batch is left out of a while loop with a finally": Scenario(
        BAD_BATCH,
        (("if batch > -9: optimise(batch)", "if batch < 0: continue\n        optimise(batch)"),),
        "frame <module>\nskip body\n",
    ),
    "the state was spoilt before": Scenario(
        NAN,
        (("float('nan')", "2.0"),),
        "pass\n---\nframe iterate\nself.scales[2] = 2.0\nself.weights.update(self.good)\nself.updates -= 1\nrestart\n",
        holds=2,
    ),
    "a parameter has spoilt the state": Scenario(
        DIVERGED,
        (("1000 if number == 2 else 1", "1"),),
        "frame epoch\naction rate = 1; del state[-3:]\nrestart\n",
    ),
}
