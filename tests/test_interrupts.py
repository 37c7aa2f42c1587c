"""Interrupting what a held thread runs, by the interpreter and by a signal."""

from __future__ import annotations

from pathlib import Path

from tests.playing import python

#: Each thread that is traced afterwards has to get on: a flag of the interpreter's must not stay set.
PROGRAM = """
import os, signal, sys, threading
from daifu_bc.recovery import interrupts

def by_interpreter():
    assert interrupts.interrupt(threading.get_ident())

def by_signal():
    interrupts.note_interrupt(threading.get_ident())
    os.kill(os.getpid(), signal.SIGINT)

for interrupt in by_signal, by_interpreter:
    try:
        with interrupts.Interruptible():
            interrupt()
            for _ in range(1000000):
                pass
    except KeyboardInterrupt:
        print("interrupted")
    assert not interrupts.open_sections()

def called():
    print("called")

def traced():
    sys.settrace(lambda *_: None)
    called()

thread = threading.Thread(target=traced, daemon=True)
thread.start()
thread.join(20)
print(thread.is_alive())
"""


def test_nothing_is_left_of_an_interrupt(tmp_path: Path) -> None:
    done = python(tmp_path, ["-c", PROGRAM])
    assert (done.stdout, done.stderr) == ("interrupted\ninterrupted\ncalled\nFalse\n", "")
