"""What is said on standard error, in the middle of its own work too."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import io, signal, sys
from daifu_bc.recovery.telling import tell
class Interrupted(io.FileIO):
    def write(self, data):
        signal.raise_signal(signal.SIGUSR1)
        return super().write(data)
signal.signal(signal.SIGUSR1, lambda *_: tell('told'))
sys.__stderr__ = io.TextIOWrapper(io.BufferedWriter(Interrupted(2, 'wb', closefd=False)))
print('said', file=sys.__stderr__, flush=True)
"""


def test_a_signal_comes_while_the_program_writes() -> None:
    command = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stderr == "told\nsaid\n"
