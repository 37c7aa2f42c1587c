"""Several threads are held at once: at a real pseudo-terminal, and under a playbook."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from daifu_bc.frontends.completion import complete
from daifu_bc.frontends.playbook import PlaybookError, parse_playbook
from daifu_bc.recovery import policy
from daifu_bc.recovery.turns import turns
from tests.at_terminal import Start, starting
from tests.fake_hold import make
from tests.playing import play
from tests.running import ROOT
from tests.test_terminal import end, prompt

pytestmark = [
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture(params=["comfortable", "dumb"])
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    with starting(tmp_path, request.param) as spawn:
        yield spawn


def say(child: pexpect.spawn[str], words: str, answer: str) -> str:
    """Type words, wait for what they answer, and for the next prompt; all the text before it."""
    child.sendline(words)
    return prompt(child, answer)


#: The first thread is held before the second one crashes, and that before the main thread does.
THREE = f"""
import sys, threading, time
sys.path.insert(0, {str(ROOT)!r})
from daifu_bc.recovery.turns import turns
def wait_for(count):
    while len(turns.places()) < count: time.sleep(0.005)
    return "come: " + str(count)
def divide(state, name):
    result = 10 // len(state)
    print(f"{{name}} has {{result}}", flush=True)
def look_up(table):
    wait_for(1)
    value = table["key"]
    print(f"second has {{value}}", flush=True)
def linger(state):
    while not state:
        time.sleep(0.01)
    return "lin" + "gered"
counted = 0
running = True
def count():
    global counted
    while running:
        counted += 1
        time.sleep(0.001)
threads = [
    threading.Thread(target=divide, args=([], "first"), name="worker-1"),
    threading.Thread(target=look_up, args=({{}},), name="worker-2"),
]
counter = threading.Thread(target=count, name="counter", daemon=True)
for thread in (*threads, counter): thread.start()
def main(state):
    wait_for(2)
    divide(state, "main")
    for thread in threads: thread.join()
main([])
running = False
counter.join()
print("all have", "ended", flush=True)
"""


@pytest.mark.terminal
def test_the_prompt_goes_from_one_to_the_next(start: Start) -> None:
    child = start(THREE)
    told = prompt(child, "`help` lists")
    assert "hold 1, thread worker-1" in told
    told += say(child, "wait_for(3)", "come: 3")
    assert "hold 2 waits: thread worker-2, KeyError at program.py:13; `hold 2` goes to it" in told
    assert "hold 3 waits: thread MainThread, ZeroDivisionError at program.py:9; `hold 3` goes to it" in told
    listed = say(child, "holds", "worker-2")
    assert re.findall(r"([> ]) hold (\d)  thread (\S+) +(\S+), in (\S+) +(\w+): .*   \(for ", listed) == [
        (">", "1", "worker-1", "program.py:9", "divide", "ZeroDivisionError"),
        (" ", "2", "worker-2", "program.py:13", "look_up", "KeyError"),
        (" ", "3", "MainThread", "program.py:9", "divide", "ZeroDivisionError"),
    ]
    assert "KeyError: key   (for " in listed
    # What is not held runs on.
    say(child, "before = counted; time.sleep(0.3); print('more', counted > before)", "more True")
    told = say(child, "hold 3", "`help` lists")
    assert "going to hold 3; hold 1 waits" in told
    assert "hold 3, thread MainThread" in told
    say(child, "p name", "'main'")
    told = say(child, "hold 2", "`help` lists")
    assert "hold 2, thread worker-2" in told
    say(child, "table['key'] = 5", "Next")
    told = say(child, "pass", "`help` lists")
    assert "hold 1, thread worker-1" in told
    text = told + say(child, "return", "`help` lists")
    assert "hold 3, thread MainThread" in text
    text += say(child, "state.append(1)", "Next")
    child.sendline("pass")
    text += end(child)
    assert "second has 5" in text
    assert "main has 10" in text
    assert "all have ended" in text
    assert child.exitstatus == 0


@pytest.mark.terminal
def test_numbers_that_lead_nowhere(start: Start) -> None:
    child = start(THREE)
    prompt(child, "`help` lists")
    say(child, "wait_for(3)", "come: 3")
    say(child, "hold 1", "this is hold 1. `holds` lists the others.")
    say(child, "hold 17", "there is no hold 17. `holds` lists those that are there.")
    say(child, "hold", "`hold` needs the number of a hold; `holds` lists them")
    say(child, "hold first", "`hold` needs the number of a hold, not 'first'")
    assert "hold 2, thread worker-2" in say(child, "return", "`help` lists")
    say(child, "hold 1", "hold 1 is over")
    say(child, "hold = 3", "Next")  # Python, as ever
    say(child, "p hold", "3")
    say(child, "return", "`help` lists")
    child.sendline("return")
    assert "all have ended" in end(child)


@pytest.mark.terminal
def test_a_pause_in_an_action_takes_its_threads_place(start: Start) -> None:
    child = start(THREE)
    prompt(child, "`help` lists")
    say(child, "wait_for(3)", "come: 3")
    assert "hold 4, thread worker-1" in say(
        child,
        "import daifu_bc; daifu_bc.pause(threading.current_thread()); print(linger([]))",
        "`help` lists",
    )
    say(child, "hold 1", "Decide about this one first.")
    listed = say(child, "holds", "waits for hold 4, which has come of an action here")
    assert re.findall(r"([> ]) hold (\d)  thread", listed) == [(" ", "1"), (">", "4"), (" ", "2"), (" ", "3")]
    say(child, "hold 3", "`help` lists")
    say(child, "hold 1", "`hold 4` goes to that one.")
    say(child, "state.append(1)", "Next")
    assert "hold 4, thread worker-1" in say(child, "hold 4", "`help` lists")
    say(child, "state.append(1)", "Next")
    say(child, "pass", "lingered")  # and the action ends at its own prompt
    say(child, "p name", "'first'")
    assert "hold 2, thread worker-2" in say(child, "return", "`help` lists")
    assert "hold 3, thread MainThread" in say(child, "return", "`help` lists")
    child.sendline("pass")
    assert "all have ended" in end(child)


@pytest.mark.terminal
def test_an_action_that_waits_for_another_held_thread(start: Start) -> None:
    """It cannot be interrupted; the other hold can be decided all the same, and then it ends."""
    child = start(THREE)
    prompt(child, "`help` lists")
    say(child, "wait_for(3)", "come: 3")
    child.sendline("sys.__stderr__.write('r' + 'uns'); threads[1].join(); print('join' + 'ed')")
    child.expect_exact("runs")
    child.sendcontrol("c")
    child.sendcontrol("c")
    assert "hold 2, thread worker-2" in prompt(child, "`help` lists")
    say(child, "p table", "{}")
    child.sendline("return")
    prompt(child, "The action raised KeyboardInterrupt; the hold stays.")
    say(child, "p name", "'first'")
    assert "hold 3, thread MainThread" in say(child, "return", "`help` lists")
    child.sendline("return")
    assert "all have ended" in end(child)


@pytest.mark.terminal
def test_exit_ends_all_that_are_held(start: Start) -> None:
    """They end properly, each in its own thread, and nobody is asked about them."""
    child = start(THREE)
    prompt(child, "`help` lists")
    say(child, "wait_for(3)", "come: 3")
    child.sendline("exit 7")
    text = end(child)
    assert "leaving with exit code 7; holds 2, 3 too" in text
    assert "daifu: hold" not in text
    assert "all have ended" not in text
    assert child.exitstatus == 7


ENDS = """
import sys, threading, time
sys.path.insert(0, {root!r})
from daifu_bc.recovery.turns import turns
def wait_for(count):
    while len(turns.places()) < count: time.sleep(0.005)
    return "come: " + str(count)
def divide(state, before):
    wait_for(before)
    try:
        return 10 // len(state)
    finally:
        print(f"left {{before}}", flush=True)
go = threading.Event()
threads = [threading.Thread(target=divide, args=([], before), daemon={daemon}) for before in (0, 1)]
for thread in threads: thread.start()
"""


@pytest.mark.terminal
def test_exit_where_the_main_thread_is_not_held(start: Start) -> None:
    program = ENDS.format(root=str(ROOT), daemon=False)
    child = start(program + "for thread in threads: thread.join()\nprint('main', 'ends')\n")
    prompt(child, "`help` lists")
    say(child, "wait_for(2)", "come: 2")
    child.sendline("exit")
    text = end(child)
    assert "leaving with exit code 1; hold 2 too; the main thread is not held, and runs on" in text
    assert sorted(re.findall(r"left \d", text)) == ["left 0", "left 1"], text
    assert "main ends" in text
    assert child.exitstatus == 0


@pytest.mark.terminal
def test_the_main_thread_ends_while_daemon_threads_are_held(start: Start) -> None:
    child = start(ENDS.format(root=str(ROOT), daemon=True) + "go.wait()\n")
    prompt(child, "`help` lists")
    say(child, "wait_for(2)", "come: 2")
    child.sendline("go.set(); threads[1].join()")
    text = end(child)
    assert "was still held, and 1 more: a daemon thread ends with the process." in text
    assert child.exitstatus == 0


@pytest.mark.terminal
def test_the_terminal_is_closed(start: Start, tmp_path: Path) -> None:
    """All that is held goes on with its exception, and the program comes to its end."""
    child = start(f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{THREE}")
    prompt(child, "`help` lists")
    say(child, "wait_for(3)", "come: 3")
    child.ptyproc.fileobj.close()
    assert child.ptyproc.wait() == 1
    child.close()
    ways = [json.loads(line)["event"] for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert sorted(way for way in ways if way != "action") == ["held"] * 3 + ["raise"] * 3


LATE = """
import os, signal, sys, threading, time
sys.path.insert(0, {root!r})
from daifu_bc.recovery.turns import turns
class TimeLimit(Exception): pass
def limit(number, frame): raise TimeLimit("too long")
signal.signal(signal.SIGALRM, limit)
def wait_for(count):
    while len(turns.places()) < count: time.sleep(0.005)
    return "come: " + str(count)
def divide(state):
    return 10 // len(state)
def alarm():
    os.kill(os.getpid(), signal.SIGALRM)
    return "rung"
looping = threading.Event()
thread = threading.Thread(target=lambda: print(f"thread has {{divide([])}}", flush=True), daemon=True)
thread.start()
def main(state):
    for step in range(10 ** 6):
        looping.set()
        {crash}
        if state: return step
        time.sleep(0.005)
wait_for(1)
{before}
print("main has", main([]), signal.getsignal(signal.SIGALRM) is limit, flush=True)
thread.join()
"""


@pytest.mark.terminal
@pytest.mark.parametrize("how", ["crash", "pause"])
def test_a_time_limit_of_the_main_thread_that_waits_for_its_turn(start: Start, how: str) -> None:
    """It does not end the waiting, and is told when the turn has come."""
    crash, before = ("10 // len(state)", "") if how == "crash" else ("", "import daifu_bc")
    child = start(LATE.format(root=str(ROOT), crash=crash, before=before))
    prompt(child, "`help` lists")
    if how == "pause":
        say(
            child,
            "import daifu_bc; print('it', looping.wait(20) and daifu_bc.pause().held.wait(20))",
            "it True",
        )
    say(child, "wait_for(2)", "come: 2")
    say(child, "alarm()", "rung")
    say(child, "state.append(1)", "Next")
    child.sendline("pass")
    told = prompt(child, "`raise TimeLimit` lets it go on, any other way on drops it.")
    assert "hold 2, thread MainThread" in told
    told += say(child, "state.append(1)", "Next")
    child.sendline("pass")
    told += end(child)
    assert "thread has 10" in told
    assert re.search(r"main has \d+ True", told)
    assert child.exitstatus == 0


FORKS = """
import os, pty, sys, threading, time
sys.path.insert(0, {root!r})
from daifu_bc.recovery.turns import turns
def wait_for(count):
    while len(turns.places()) < count: time.sleep(0.005)
    return "come: " + str(count)
def divide(state):
    return 10 // len(state)
fork = threading.Event()
threads = [threading.Thread(target=lambda: print(f"thread has {{divide([])}}", flush=True)) for _ in "ab"]
for thread in threads: thread.start()
wait_for(2)
fork.wait()
child, terminal = pty.fork()
if not child:
    os.environ["TERM"] = "dumb"
    print("child has", divide([]), flush=True)
    os._exit(0)
seen = b""
for words in (b"holds", b"return 5"):
    while not seen.endswith(b"daifu> "): seen += os.read(terminal, 4096)
    seen += b"\\n"
    os.write(terminal, words + b"\\n")
while b"child has 5" not in seen: seen += os.read(terminal, 4096)
os.waitpid(child, 0)
print("child has", "ended", seen.count(b"daifu: hold"), seen.count(b"hold 3  thread"), b"hold 1" in seen, flush=True)
for thread in threads: thread.join()
"""


@pytest.mark.terminal
def test_a_forked_child_has_its_own_turn(start: Start) -> None:
    """Where another thread of the parent is at the prompt, and one waits."""
    child = start(FORKS.format(root=str(ROOT)))
    prompt(child, "`help` lists")
    say(child, "wait_for(2)", "come: 2")
    child.sendline("fork.set()")
    child.expect_exact("child has ended 1 1 False")
    child.sendline("return 1")
    prompt(child, "`help` lists")
    child.sendline("return 2")
    text = end(child)
    assert "thread has 2" in text
    assert child.exitstatus == 0


MANY = f"""
import sys, threading, time
sys.path.insert(0, {str(ROOT)!r})
from daifu_bc.recovery.turns import turns
count = 20
together = threading.Barrier(count)
results = []
def divide(state, number):
    together.wait()
    results.append(100 // len(state) + number)
threads = [threading.Thread(target=divide, args=([], number)) for number in range(1, count)]
for thread in threads: thread.start()
divide([], 0)
for thread in threads: thread.join()
print("results", sorted(results) == [100 + number for number in range(count)], flush=True)
"""


@pytest.mark.terminal
def test_twenty_threads_crash_at_once(start: Start) -> None:
    """The prompt is taken from one to another at every second of them."""
    child = start(MANY)
    told = prompt(child, "`help` lists")
    say(child, "[time.sleep(0.005) for _ in iter(lambda: len(turns.places()), 20)]", "[")
    (present,) = map(int, re.findall(r"daifu: hold (\d+),", told))
    left = set(range(1, 21))
    while len(left) > 1:
        if len(left) % 2:
            present = max(left - {present})
            assert f"daifu: hold {present}," in say(child, f"hold {present}", "`help` lists")
        child.sendline("holds")
        listed = prompt(child, f"> hold {present} ")
        child.sendline("state.append(1)")
        listed += prompt(child, "Next")
        # What is typed before the prompt is there stands in front of it, and the list behind it.
        rows = re.findall(r"^(?:daifu> )?[> ] hold (\d+) +thread", listed, re.MULTILINE)
        assert set(map(int, rows)) == left
        told = say(child, "pass", "`help` lists")
        left.remove(present)
        present = min(left)
        assert f"daifu: hold {present}," in told
    say(child, "state.append(1)", "Next")
    child.sendline("pass")
    assert "results True" in end(child)


def test_twenty_threads_crash_at_once_under_a_playbook(tmp_path: Path) -> None:
    ended = play(tmp_path, MANY, "repeat\nholds\nstate.append(1)\npass")
    assert ended.stdout == "results True\n", ended.stderr
    assert ended.stderr.count("> hold ") == 20


def test_a_playbook_cannot_go_elsewhere() -> None:
    with pytest.raises(PlaybookError) as caught:
        parse_playbook("holds\nhold 2\npass\n", "f")
    assert str(caught.value) == (
        "f:2: `hold 2` is for a person; a playbook answers each hold in the order of their arrival"
    )


def test_the_words_where_nobody_is_at_a_prompt() -> None:
    hold = make()
    with turns.entered(hold, asks=False):
        assert policy.run_words(hold, "holds").startswith("> hold 1  thread MainThread")
        text = policy.run_words(hold, "hold 2")
        assert text.startswith("there is no prompt that could go to another hold, because nobody sits at it")
        assert complete(hold, "hold ") == (0, ["1"])
        assert complete(hold, "hol") == (3, ["holds", "hold"])
    assert policy.run_words(hold, "holds") == "No hold waits."
    assert turns.places() == []
