"""Saving fails."""

from __future__ import annotations

from tests.scenarios.scenario import Scenario

MODULE_LOOP = """
import os
class Opener:
    def __init__(self, name):
        self.file = open(name, 'w')
    def __enter__(self):
        return self.file
    def __exit__(self, *_):
        self.file.close()
def save(value, name):
    with Opener(name) as file:
        file.write(str(value))
# made here
total = 0
for epoch in range(1, 11):
    for batch in range(3):
        total += epoch * batch
        print('batch', epoch, batch)
    save(total, f'models/{epoch}.txt')
    print('saved', epoch)
print(epoch, total, sorted(os.listdir('models')))
print([open(f'models/{number}.txt').read() for number in range(1, 11)])
"""

CLASS_BODY = """
import os
def stored(name):
    with open(name, 'a') as file:
        file.write('x')
    return name
# made here
class Run:
    names = []
    for part in ('one', 'two', 'three'):
        print('before', part)
        names.append(stored('parts/' + part))
    print('stored', names)
print(Run.part, Run.names, [open('parts/' + name).read() for name in ('one', 'two', 'three')])
"""

CALLBACK_SAVES = """
import sys
class Writer:
    def __init__(self):
        self.open = True
        self.budget = 10
    def __enter__(self):
        print('enter')
        return self
    def __exit__(self, kind, error, traceback):
        self.open = False
        print('exit', kind)
        if kind is not None:
            raise RuntimeError('the writer is broken')
    def write(self, size):
        if size > self.budget:
            raise MemoryError('no space for it')
        print('written', size)
writer_budget = 10
def save(step):
    with Writer() as writer:
        size = 4 * step
        writer.write(size)
def on_exception(error):
    print('on_exception', error)
    save(99)
def fit(steps):
    try:
        for step in range(1, steps):
            print('step', step)
            save(step)
    except Exception as error:
        on_exception(error)
    print('end of fit')
fit(5)
"""

SWALLOWED = """
import json
def fit(state):
    for step in range(4):
        try:
            print('step', step)
            open(state['folder'] + f'/{step}.json', 'w').write(json.dumps(state['step']))
            state['step'] += 1
            print('saved', step)
        except Exception:
            print('swallowed')
fit({'folder': 'nowhere', 'step': 0})
"""

LAMBDA = """
import pickle
class Model:
    def __init__(self):
        self.weights = [1, 2, 3]
        self.hook = lambda value: value
def save(model, epoch):
    with open(f'model{epoch}.pickle', 'wb') as file:
        pickle.dump(model, file)
    print('saved', epoch)
model = Model()
for epoch in range(3):
    model.weights.append(epoch)
    save(model, epoch)
print([pickle.load(open(f'model{epoch}.pickle', 'rb')).weights for epoch in range(3)])
"""

LOCAL_CLASS = """
import copyreg, pickle
def made():
    class Logger:
        pass
    return Logger()
state = {'step': 0}
state['logger'] = made()
def checkpoint():
    data = pickle.dumps(state)
    print('checkpoint', state['step'], len(pickle.loads(data)))
    return data
while state['step'] < 3:
    state['step'] += 1
    checkpoint()
"""

TRANSIENT = """
calls = []
def flaky_open(name):
    calls.append(name)
    if 2 <= len(calls) <= 4:
        raise OSError(116, 'Stale file handle')
    return open(name, 'a')
def save(epoch):
    with flaky_open('state.txt') as file:
        file.write(f'{epoch}\\n')
    print('saved', epoch)
for epoch in range(5):
    print('epoch', epoch)
    save(epoch)
print(open('state.txt').read().split())
"""

TRANSIENT_READ = """
failures = iter([None, BlockingIOError(), None, ConnectionResetError(), ConnectionResetError()])
def read(part):
    error = next(failures, None)
    if error is not None:
        raise error
    return part * 2
def parts():
    for part in 'abcd':
        yield read(part)
print('read', *parts())
"""

SCENARIOS = {
    "a folder is missing, in a module's loop": Scenario(
        MODULE_LOOP,
        (("# made here", "os.makedirs('models')"),),
        "action import os; os.makedirs('models')\npass\n",
    ),
    "a folder is missing, in a class body's loop": Scenario(
        CLASS_BODY,
        (("# made here", "os.makedirs('parts')"),),
        "frame Run\naction import os; os.makedirs('parts')\npass\n",
    ),
    "no memory, and the framework saves in its clause": Scenario(
        CALLBACK_SAVES,
        (("self.budget = 10", "self.budget = 100"),),
        "p self.open\nself.budget = 100\ngoto 16\n---\nwhy\nself.budget = 100\ngoto 16\n",
        holds=2,
        says=("MemoryError", "daifu> p self.open\nTrue", "does not count: hold-through."),
        options=("--hold-through", "fit"),
    ),
    "a clause swallows what is raised in its own body": Scenario(
        SWALLOWED,
        (("'nowhere'", "'.'"),),
        "state['folder'] = '.'\npass\n",
        says=("nowhere/0.json",),
        options=("--hold-through", "program.py:fit"),
    ),
    "a lambda cannot be pickled": Scenario(
        LAMBDA, (("lambda value: value", "None"),), "model.hook = None\npass\n"
    ),
    "an object of a local class cannot be pickled": Scenario(
        LOCAL_CLASS,
        (("state['logger'] = made()", "state['logger'] = None"),),
        "action state['logger'] = None\npass\n",
        says=("Logger",),
    ),
    "a file handle is stale for a while": Scenario(
        TRANSIENT,
        (("2 <= len(calls) <= 4", "False"),),
        "frame save\npass\n---\n" * 3,
        holds=3,
        says=("Errno 116",),
    ),
    "a read fails for a while, in a generator": Scenario(
        TRANSIENT_READ,
        (("error = next(failures, None)", "error = None"),),
        "frame parts\npass\n---\n" * 3,
        holds=3,
    ),
}
