"""A signal's handler raises at some instruction that has nothing to do with it."""

from __future__ import annotations

from tests.scenarios.scenario import Scenario

WORKER = """
import signal
class Loader:
    def __init__(self):
        self.generation, self.position, self.alive = 1, 0, True
    def rebuild(self):
        self.generation, self.alive = self.generation + 1, True
    def __iter__(self):
        return self
    def __next__(self):
        self.position += 1
        if self.position > 5:
            raise StopIteration
        return self.generation, self.position
loader = Loader()
def on_child(number, frame):
    print('worker', number == signal.SIGCHLD)
    loader.alive = False
    raise RuntimeError('DataLoader worker (pid 1) is killed by signal: Killed.')
signal.signal(signal.SIGCHLD, on_child)
def step(batch):
    if batch[1] == 3: signal.raise_signal(signal.SIGCHLD)
    return batch
def train():
    total = 0
    for batch in loader:
        total += step(batch)[1]
        print('batch', batch, total)
    return total
print(train(), loader.generation, loader.alive)
"""

HOT_LOOP = """
import signal
ended = []
def limit(number, frame):
    print('limit')
    raise TimeoutError('too long')
signal.signal(signal.SIGALRM, limit)
def search():
    found = []
    with open('/dev/null') as file:
        for name in 'ab':
            count = 0
            while not ended:
                count += 1
                found.append(count)
            print(name, len(found) == found[-1], file.closed)
    return count
signal.setitimer(signal.ITIMER_REAL, 0.05)
print(search())
"""

GENERATOR = """
import os, signal
class Stopped(Exception):
    pass
def stop(number, frame):
    check(number)
def check(number):
    print('check')
    raise Stopped
signal.signal(signal.SIGUSR1, stop)
def numbers():
    for number in range(4):
        try:
            squares = [value * value for value in range(number) if value != 2 or not os.kill(os.getpid(), signal.SIGUSR1)]
            yield squares
        finally:
            print('left', number)
print(*numbers())
"""

INTERRUPTED = """
import os, signal, time
def train():
    done = []
    for step in range(4):
        if step == 2:
            # Ctrl-C
            os.kill(os.getpid(), signal.SIGINT)
        done.append(step)
        print('step', step)
    return done
try:
    print(train())
except Exception:
    print('never')
"""

SCENARIOS = {
    "a worker is killed, and a handler says so somewhere": Scenario(
        WORKER,
        (
            (
                "    raise RuntimeError('DataLoader worker (pid 1) is killed by signal: Killed.')",
                "    loader.rebuild()",
            ),
        ),
        "action loader.rebuild()\npass\n",
        says=("The handler of SIGCHLD raised it; line 22 of `step` was only interrupted",),
    ),
    "a time limit ends in a loop without calls": Scenario(
        HOT_LOOP,
        (("raise TimeoutError('too long')", "ended.append(number)"),),
        "why\nframe search\np len(found) > 0\naction ended.append(1)\npass\n",
        says=("True", "was only interrupted"),
    ),
    "a handler fails in what it calls, below a generator": Scenario(
        GENERATOR,
        (("    raise Stopped\n", "    return\n"),),
        "frame numbers\npass\n",
        says=("behind the interrupted instruction at line",),
        holds=1,
    ),
    "Ctrl-C, when it is to be held": Scenario(
        INTERRUPTED,
        (("os.kill(os.getpid(), signal.SIGINT)", "pass"),),
        "p done\npass\n",
        says=("KeyboardInterrupt", "daifu> p done\n[0, 1]"),
        options=("--hold-keyboard-interrupt",),
    ),
}
