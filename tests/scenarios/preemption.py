"""The machine is taken back: SIGTERM, and half a minute. A framework has a handler of its own, or there is none."""

from __future__ import annotations

FRAMEWORK = """
import json, os, signal
class Trainer:
    def __init__(self):
        self.weights = []
        if os.path.exists('checkpoint'):
            with open('checkpoint') as file:
                self.weights = json.load(file)
            print('resumes at', len(self.weights), flush=True)
    def save(self):
        with open('new', 'w') as file:
            json.dump(self.weights, file)
        os.replace('new', 'checkpoint')
    def fit(self, step, steps):
        if {handles} and signal.getsignal(signal.SIGTERM) in (None, signal.SIG_DFL):
            signal.signal(signal.SIGTERM, self.stop)
        while len(self.weights) < steps:
            value = step(len(self.weights))
            self.weights.append(value)
            print('step', len(self.weights), flush=True)
    def stop(self, number, frame):
        print('stops', flush=True)
        raise SystemExit(85)
"""

#: What is meant to happen at one of the steps stands in the place of `None`.
PROGRAM = """
import os, signal
from framework import Trainer
def step(number):
    if number == 3:
        None
    return number * number
trainer = Trainer()
try:
    trainer.fit(step, 6)
finally:
    print('tidies up', flush=True)
print(trainer.weights, flush=True)
"""
#: While the framework runs, or while the run is held.
PREEMPTED = "os.kill(os.getpid(), signal.SIGTERM)"
CRASHES = "open('/no/such/file')"

LAST_WILL = "frame Trainer.fit\nself.save()\n"
