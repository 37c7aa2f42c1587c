"""A worker of a DataLoader dies: torch's handler raises wherever the main process is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import run

pytestmark = [pytest.mark.torch, pytest.mark.slow]

PROGRAM = """
import os, signal, time
told, tell = os.pipe()
from torch.utils.data import DataLoader, Dataset
class Numbers(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        if index == 1:
            os.write(tell, b'x')
            time.sleep(60)
        return index
def busy(total):
    count = other = 0
    while count < total:
        count += 1
        if died and count - other < 2: os.kill(died.pop(), signal.SIGKILL)
        other += 1
    return count - other
died = []
def train():
    batches = iter(DataLoader(Numbers(), batch_size=None, num_workers=1, multiprocessing_context='fork'))
    print('first', int(next(batches)))
    # Nothing that it shares with the main process may be locked when it is killed: torch would wait for ever.
    os.read(told, 1)
    died.append(batches._workers[0].pid)
    print('busy', busy(30_000_000))
    print('alive', batches._workers[0].is_alive())
train()
"""


def test_goes_on_behind_the_interrupted_instruction(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    ended = run(tmp_path, PROGRAM, "p _error_if_any_worker_fails\npass\n")
    assert ended.stdout == "first 0\nbusy 0\nalive False\n", ended.stderr
    assert "is killed by signal: Killed" in ended.stderr
    assert "The handler of SIGCHLD raised it; line" in ended.stderr
    assert ended.stderr.count("-- daifu: hold ") == 1
    assert ended.code == 0
