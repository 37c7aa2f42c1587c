"""A SIGTERM ends the program: the last will is done first, and then what the program has for the signal. Real processes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.at_terminal import starting
from tests.attaching import Programs
from tests.running import Ended, run

BY_SIGNAL = -signal.SIGTERM

PROGRAM = """
import os, signal, sys, threading, time
def save(where):
    print('saved', where, flush=True)
def end(number, frame):
    print('end', number, frame.f_code.co_name, flush=True)
    raise SystemExit(7)
def kill():
    os.kill(os.getpid(), signal.SIGTERM)
{before}
def train():
    for step in range(4):
        if step == 2:
            kill()
        print('step', step, flush=True)
try:
    train()
    print('over')
finally:
    print('finally', flush=True)
"""
STEPS = "step 0\nstep 1\n"
HANDLER = "signal.signal(signal.SIGTERM, end)"


def end(folder: Path, before: str = "", *options: str, will: str = "frame train\nsave(step)") -> Ended:
    return run(folder, PROGRAM.format(before=before), "", "--last-will", will, *options)


def told(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "journal.jsonl").read_text().splitlines()
    return [entry for entry in map(json.loads, lines) if entry["event"] == "last will"]


# -- running -----------------------------------------------------------------------------------------------------------


def test_before_the_default_action(tmp_path: Path) -> None:
    """The process dies by the signal, as ever: no `finally` of the program runs."""
    ended = end(tmp_path)
    assert (ended.code, ended.stdout) == (BY_SIGNAL, STEPS)
    assert "saved 2" in ended.stderr
    assert [entry["outcome"] for entry in told(tmp_path)] == ["done"]


def test_before_the_programs_handler(tmp_path: Path) -> None:
    ended = end(tmp_path, HANDLER)
    assert (ended.code, ended.stdout) == (7, f"{STEPS}end 15 train\nfinally\n")
    assert "saved 2" in ended.stderr


def test_it_is_done_before_the_handler(tmp_path: Path) -> None:
    """What it does is seen by the handler."""
    ended = end(
        tmp_path,
        HANDLER.replace("end)", "lambda *_: print(done, flush=True))") + "\ndone = []",
        will="done.append(1)",
    )
    assert ended.stdout == f"{STEPS}[1]\nstep 2\nstep 3\nover\nfinally\n"
    assert ended.code == 0


@pytest.mark.parametrize(
    ("before", "shown"),
    [
        ("", "True True"),
        ("assert signal.signal(signal.SIGTERM, end) == signal.SIG_DFL", "False end"),
        (
            "signal.signal(signal.SIGTERM, end)\nassert signal.signal(signal.SIGTERM, signal.SIG_IGN) is end",
            "False True",
        ),
        (
            "from signal import signal as put, getsignal\nput(signal.SIGTERM, end)\nassert getsignal(signal.SIGTERM) is end",
            "False end",
        ),
    ],
    ids=["none", "one", "ignored", "functions that were imported"],
)
def test_there_is_only_what_the_program_has(tmp_path: Path, before: str, shown: str) -> None:
    look = """
found = signal.getsignal(signal.SIGTERM)
print(found is signal.SIG_DFL, getattr(found, '__name__', found in (signal.SIG_DFL, signal.SIG_IGN)), flush=True)
"""
    ended = end(tmp_path, before + look)
    assert ended.stdout.startswith(f"{shown}\n"), ended.stderr
    if "SIG_IGN" in before:
        assert ended.stdout.endswith("over\nfinally\n")
        assert "last will" not in ended.stderr


def test_what_it_was_before_is_what_the_program_put_in(tmp_path: Path) -> None:
    before = f"{HANDLER}\nassert signal.signal(signal.SIGTERM, signal.SIG_DFL) is end"
    ended = end(tmp_path, before)
    assert (ended.code, ended.stdout) == (BY_SIGNAL, STEPS)
    assert "saved 2" in ended.stderr


def test_what_the_handler_raises_is_an_interruption(tmp_path: Path) -> None:
    """We stand between the handler and what it has interrupted; that is not to be seen."""
    before = HANDLER.replace("end)", "stop)")
    handler = "def stop(number, frame):\n    raise TimeoutError('stop')\n"
    program = PROGRAM.format(before=handler + before)
    ended = run(tmp_path, program, "pass\n", "--last-will", "frame train\nsave(step)")
    assert ended.stdout == f"{STEPS}step 2\nstep 3\nover\nfinally\n", ended.stderr
    assert re.search(
        "The handler of SIGTERM raised it; line [0-9]+ of `train` was only interrupted", ended.stderr
    )
    ended = run(tmp_path, program, "", "--last-will", "frame train\nsave(step)")
    assert ended.code == 1
    assert "daifu_bc/" not in ended.stderr[ended.stderr.index("Traceback") :]


def test_in_a_loop_that_waits_for_its_end(tmp_path: Path) -> None:
    """The clause that catches what the handler raises is no obstacle."""
    program = (
        "import os, signal\n"
        "class Stop(Exception): pass\n"
        "def stop(*_): raise Stop\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "def main(n=0):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        while n < 30000: n += 1\n"
        "    except Stop: print(n < 30000)\n"
        "main()\n"
    )
    ended = run(tmp_path, program, "", "--last-will", "print('saved', n < 30000)")
    assert (ended.code, ended.stdout) == (0, "True\n")
    assert "saved True" in ended.stderr


ASYNCIO = """
import asyncio, os, signal
async def work():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    for n in range(3):
        await asyncio.sleep(0)
        if n == 1: os.kill(os.getpid(), signal.SIGTERM)
        print('n', n, flush=True)
    await stop.wait()
    print('stopped', flush=True)
asyncio.run(work())
"""
FURTHER = """
import asyncio, os, signal
async def work():
    stop, again = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    def end():
        print('end', flush=True)
        stop.set()
    loop.add_signal_handler(signal.SIGTERM, end)
    loop.add_signal_handler(signal.SIGUSR2, again.set)
    os.kill(os.getpid(), signal.SIGTERM)
    await stop.wait()
    await again.wait()
    for _ in range(3): await asyncio.sleep(0)
asyncio.run(work())
"""
GIVES_BACK = """
import os, signal
def gives_back(number, frame):
    print('tidies up', flush=True)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
signal.signal(signal.SIGTERM, gives_back)
def f():
    os.kill(os.getpid(), signal.SIGTERM)
    x = 1
f()
print('not here')
"""
BLOCKS = """
import contextlib, os, signal
def end(number, frame): raise SystemExit(9)
signal.signal(signal.SIGTERM, end)
def numbers():
    try:
        for number in range(4):
            if number == 2: os.kill(os.getpid(), signal.SIGTERM)
            yield number
    finally: print('numbers left', flush=True)
@contextlib.contextmanager
def manager():
    try: yield
    finally: print('manager left', flush=True)
def f():
    with manager():
        for number in numbers(): print(number, flush=True)
f()
"""


@pytest.mark.parametrize(
    ("program", "stdout", "code"),
    [
        (ASYNCIO, "n 0\nn 1\nn 2\nstopped\n", 0),
        (GIVES_BACK, "tidies up\n", BY_SIGNAL),
        (BLOCKS, "0\n1\nnumbers left\nmanager left\n", 9),
    ],
    ids=["asyncio", "a handler that gives itself back", "blocks are left"],
)
def test_programs_end_as_ever(tmp_path: Path, program: str, stdout: str, code: int) -> None:
    """As they do plainly, the last will apart."""
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, "program.py"]
    plain = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (plain.stdout, plain.returncode) == (stdout, code)
    ended = run(tmp_path, program, "", "--last-will", "print('sav' + 'ed')")
    assert (ended.stdout, ended.code) == (stdout, code), ended.stderr
    assert ended.stderr.count("saved") == 1


def test_an_event_loop_is_told_once(tmp_path: Path) -> None:
    """The thread that looks at the time sends the signal, too; what else comes meanwhile is not lost."""
    will = "import os, signal, time\nos.kill(os.getpid(), signal.SIGUSR2)\ntime.sleep(60)"
    ended = run(tmp_path, FURTHER, "", "--last-will", will, "--grace", "0.5")
    assert (ended.code, ended.stdout) == (0, "end\n"), ended.stderr
    assert "the last will failed: it was not done within 0.5 s" in ended.stderr


def test_one_that_catches_everything_ends_by_the_handler(tmp_path: Path) -> None:
    (tmp_path / "will.py").write_text(
        "while not ended:\n    try: time.sleep(0.01)\n    except BaseException: pass\n"
    )
    before = "ended = []\ndef note(*_):\n    ended.append(1)\n    print('end', flush=True)\n"
    ended = end(tmp_path, before + "signal.signal(signal.SIGTERM, note)", "--grace", "0.2", will="will.py")
    assert (ended.code, ended.stdout) == (0, f"{STEPS}end\nstep 2\nstep 3\nover\nfinally\n"), ended.stderr
    assert "it was not done within 0.2 s" in ended.stderr


LEAVES = """
import os, signal, sys
class Bad(Exception): pass
def died(number, frame): fail(Bad('worker'))
fail = eval("lambda error: (_ for _ in ()).throw(error)")  # has no statements
signal.signal(signal.SIGCHLD, died)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
def kill(*numbers):
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    for number in numbers: os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
def main(known):
    {}
main(3)
"""


@pytest.mark.parametrize(
    "statement",
    [
        "os.kill(os.getpid(), signal.SIGTERM) or fail(Bad('own'))",
        "os.kill(os.getpid(), signal.SIGTERM) or sys.exit(1)",
        "os.kill(os.getpid(), signal.SIGTERM) or os.kill(os.getpid(), signal.SIGCHLD)",
        "kill(signal.SIGTERM, signal.SIGCHLD)",
    ],
    ids=["an exception", "its end", "a handler", "both at once"],
)
def test_what_leads_out_of_the_program_does_not_lead_past_it(tmp_path: Path, statement: str) -> None:
    """A signal for all processes of a run ends its workers, too; the news of their end is raised in the program."""
    ended = run(tmp_path, LEAVES.format(statement), "", "--last-will", "frame main\nprint('saved', known)")
    assert "saved 3" in ended.stderr, ended.stderr
    assert ended.code == 7
    assert [entry["outcome"] for entry in told(tmp_path)] == ["done"]


def test_signals_that_come_meanwhile_are_the_same_end(tmp_path: Path) -> None:
    before = "signal.signal(signal.SIGTERM, lambda *_: print('end', flush=True))"
    ended = end(tmp_path, before, will="for n in range(5): kill()\nprint('sav' + 'ed')")
    assert ended.stdout == f"{STEPS}end\nstep 2\nstep 3\nover\nfinally\n", ended.stderr
    assert ended.stderr.count("saved") == 1


#: The signal comes when the main thread has been in the call for a while.
SLEEPS = """
import os, signal, sys, threading, time
def nap(seconds):
    began = time.monotonic()
    time.sleep(seconds)
    slept = time.monotonic() - began
    print('over', flush=True)
def kill():
    while sys._current_frames()[main].f_lineno != 5:
        time.sleep(0.01)
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGTERM)
main = threading.get_ident()
threading.Thread(target=kill).start()
nap({seconds})
"""


def test_a_call_in_c_is_finished_first(tmp_path: Path) -> None:
    will = "print('saved', time.monotonic() - began >= 0.5)"
    ended = run(tmp_path, SLEEPS.format(seconds=0.5), "", "--last-will", will, "--grace", "60")
    assert (ended.code, ended.stdout) == (BY_SIGNAL, "")
    assert "saved True" in ended.stderr


def test_a_call_in_c_that_does_not_end_in_time(tmp_path: Path) -> None:
    program = SLEEPS.format(seconds=100)
    ended = run(tmp_path, program, "", "--last-will", "print('saved')", "--grace", "0.2")
    assert (ended.code, ended.stdout) == (BY_SIGNAL, "")
    assert "no statement was reached within 0.2 s, so it is not done" in ended.stderr
    assert "saved" not in ended.stderr
    assert [entry["outcome"][:24] for entry in told(tmp_path)] == ["no statement was reached"]


@pytest.mark.parametrize(
    ("will", "text"),
    [
        ("save(missing)", "the action raised NameError"),
        ("frame nowhere\nsave(1)", "no frame on the stack runs 'nowhere'"),
        ("raise_it = 1 / 0", "the action raised ZeroDivisionError"),
        ("import sys; sys.exit(3)", "the action raised SystemExit"),
    ],
)
def test_one_that_fails(tmp_path: Path, will: str, text: str) -> None:
    ended = end(tmp_path, HANDLER, will=will)
    assert (ended.code, ended.stdout) == (7, f"{STEPS}end 15 train\nfinally\n")
    assert f"the last will failed: {text}" in ended.stderr
    assert text.partition(" ")[0] in told(tmp_path)[0]["outcome"]


@pytest.mark.parametrize("will", ["while True: pass", "import time; time.sleep(100)"])
@pytest.mark.parametrize("handler", [False, True], ids=["default", "handler"])
def test_one_that_never_ends(tmp_path: Path, will: str, handler: bool) -> None:
    ended = end(tmp_path, HANDLER if handler else "", "--grace", "0.8", will=will)
    expected = (7, f"{STEPS}end 15 train\nfinally\n") if handler else (BY_SIGNAL, STEPS)
    assert (ended.code, ended.stdout) == expected
    assert "it was not done within 0.8 s" in ended.stderr


def test_the_programs_function(tmp_path: Path) -> None:
    before = """
import daifu_bc
@daifu_bc.last_will
def will(hold):
    hold.select('train')
    print('saved', hold.evaluate('step'), flush=True)
"""
    ended = run(tmp_path, PROGRAM.format(before=before))
    assert (ended.code, ended.stdout) == (BY_SIGNAL, f"{STEPS}saved 2\n")
    ended = run(tmp_path, PROGRAM.format(before=before.replace("'step'", "'stop'")))
    assert (ended.code, ended.stdout) == (BY_SIGNAL, STEPS)
    assert "the last will failed: NameError: name 'stop' is not defined" in ended.stderr


def test_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "will.txt").write_text("# save\nframe train\nsave(step)\n")
    (tmp_path / "pyproject.toml").write_text('[tool.daifu]\nlast-will = "will.txt"\ngrace = 5\n')
    ended = run(tmp_path, PROGRAM.format(before="os.chdir('/')"))
    assert (ended.code, ended.stdout) == (BY_SIGNAL, STEPS)
    assert "saved 2" in ended.stderr
    (tmp_path / "will.py").write_text("print('from', __name__)\n")
    assert "from __main__" in end(tmp_path, will="will.py").stderr


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--last-will", "save(x)\npass"), "last will:2: `pass` has no place in a last will"),
        (("--last-will", "save(x"), "last will:1: this is no Python"),
        (("--last-will", "x", "--grace", "soon"), "'soon' is no time for a last will"),
    ],
)
def test_mistakes_are_told_before_the_program_starts(
    tmp_path: Path, options: tuple[str, ...], text: str
) -> None:
    ended = run(tmp_path, "print('started')", "", *options)
    assert (ended.code, ended.stdout) == (2, "")
    assert text in ended.stderr


FORKS = """
import multiprocessing, os, signal
def child(ready):
    ready.send('ready')
    signal.pause()
def end(method, early):
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    process = context.Process(target=child, args=(theirs,))
    process.start()
    if not early:
        ours.recv()
    process.terminate()
    process.join()
    print(method, process.exitcode, flush=True)
if __name__ == '__main__':
    end('fork', True)
    end('fork', False)
    end('spawn', False)
    end('forkserver', False)
    os.kill(os.getpid(), signal.SIGTERM)
    print('not here')
"""


def test_children_do_not_save(tmp_path: Path) -> None:
    """Their parent ends them; they would save over what it saves. A signal that comes at once is not lost, either."""
    ended = run(tmp_path, FORKS, "", "--last-will", "print('saved', 'by', __name__)")
    assert ended.stdout == "fork -15\nfork -15\nspawn -15\nforkserver -15\n"
    assert ended.code == BY_SIGNAL
    assert re.findall("saved by .*", ended.stderr) == ["saved by __main__"]


# -- held --------------------------------------------------------------------------------------------------------------

CRASHES = """
import os, signal, sys, threading, time
def end(number, frame):
    print('end', number, flush=True)
    raise SystemExit(7)
{before}
def fetch(name):
    kept = name
    return open(name)
def work():
    try:
        fetch('/no/such/file')
    finally:
        print('finally', flush=True)
def in_thread():
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
{run}()
print('over')
"""
WAITS = """
[[on]]
do = "retry"
wait = 100
"""
ACTS = """
[[on]]
do = '''
print('be' + 'gun', file=sys.__stderr__, flush=True); time.sleep(100)
retry
'''
"""


def hold(programs: Programs, way: str, *, before: str = "", run: str = "work") -> tuple[str, str, int]:
    """Have a program held, send it the signal, and wait for its end."""
    (programs.folder / "rules.toml").write_text(ACTS if way == "action" else WAITS)
    options = ("--attach",) if way == "attach" else ("--policy", "rules.toml")
    pattern = {"rule": "it waits 100 s", "action": "^begun", "attach": "Held. Type"}[way]
    held = programs.start(
        CRASHES.format(before=before, run=run), "--last-will", "print('saved', kept)", *options
    )
    held.wait_until(re.compile(pattern))
    held.signal(signal.SIGTERM)
    ended = held.end()
    assert not list(programs.directory.iterdir())
    return ended


@pytest.mark.parametrize("way", ["rule", "action", "attach"])
@pytest.mark.parametrize("run", ["work", "in_thread"])
def test_held_it_is_done_there(programs: Programs, way: str, run: str) -> None:
    out, err, code = hold(programs, way, run=run)
    assert (out, code) == ("", BY_SIGNAL), err
    assert err.count("saved /no/such/file") == 1
    assert [entry["function"] for entry in told(programs.folder)] == ["fetch"]
    assert programs.sockets() == []  # nor anything else there


@pytest.mark.parametrize("way", ["rule", "attach"])
def test_held_and_then_the_programs_handler(programs: Programs, way: str) -> None:
    out, err, code = hold(programs, way, before=HANDLER)
    assert (out, code) == ("end 15\nfinally\n", 7), err
    assert err.count("saved /no/such/file") == 1


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_held_at_a_terminal(tmp_path: Path) -> None:
    with starting(tmp_path, "comfortable") as start:
        child = start(CRASHES.format(before="", run="work"), "--last-will", "print('saved', kept)")
        child.expect("daifu>")
        assert not termios.tcgetattr(child.child_fd)[3] & termios.ICANON
        child.kill(signal.SIGTERM)
        child.expect("saved /no/such/file")
        child.expect(pexpect.EOF)
        assert termios.tcgetattr(child.child_fd)[3] & termios.ICANON
        child.wait()
        assert child.signalstatus == signal.SIGTERM
        assert "a daemon thread" not in child.before


def test_files_are_looked_for_where_the_program_started(tmp_path: Path) -> None:
    (tmp_path / "will.txt").write_text("save(1)\n")
    (tmp_path / "rules.toml").write_text('[[on]]\ndo = "last-will"\n')
    program = f"import os\nos.chdir('/')\n{PROGRAM.format(before='')}".replace(
        "kill()\n        print", "open('/no')\n        print"
    )
    ended = run(tmp_path, program, DAIFU_LAST_WILL="will.txt", DAIFU_POLICY="rules.toml")
    assert (ended.code, ended.stdout) == (1, f"{STEPS}finally\n")
    assert "saved 1" in ended.stderr
