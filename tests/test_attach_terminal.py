"""A run that is held at a terminal can be reached from another one: real terminals, real sockets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pexpect
import pytest

from tests.at_terminal import Start as Spawn
from tests.at_terminal import spawning
from tests.attaching import CRASHES, Client, Programs

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture(params=["xterm", "dumb"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def at_terminal(kind: str, programs: Programs) -> Iterator[Spawn]:
    with spawning() as spawn:

        def start(*words: str, **variables: str) -> pexpect.spawn[str]:
            return spawn(
                ["-X", "faulthandler", "-m", "daifu_bc", *words],
                programs.folder,
                {"PATH": "", "TERM": kind, "NO_COLOR": "1", **programs.environment, **variables},
                timeout=30,
            )

        yield start


def run(
    at_terminal: Spawn, programs: Programs, program: str = CRASHES, **variables: str
) -> pexpect.spawn[str]:
    """Start a program, and wait until it is held at its terminal."""
    (programs.folder / "program.py").write_text(program)
    child = at_terminal("run", "program.py", **variables)
    child.expect_exact("ZeroDivisionError")
    child.expect_exact("daifu>")
    return child


SHOWS_MODES = """
import termios
print("before", termios.tcgetattr(0) == BEFORE)
"""


def test_words_from_elsewhere_decide(at_terminal: Spawn, programs: Programs) -> None:
    program = f"import termios\nBEFORE = termios.tcgetattr(0)\n{CRASHES}{SHOWS_MODES}"
    child = run(at_terminal, programs, program)
    child.send("p 1")  # it is not finished
    done = programs.daifu("do", str(child.pid), "print('for the client')\nstate.append(5)", "pass")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("for the client\n")
    child.expect_exact("Decided from another terminal: print('for the client') ...")
    child.expect_exact("result 10")
    # The terminal is as it was, and nothing of what was begun is left for the program.
    child.expect_exact("before True")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0
    assert programs.sockets() == []


def test_what_is_half_typed_stays(at_terminal: Spawn, programs: Programs) -> None:
    child = run(at_terminal, programs)
    child.send("state.append")
    child.expect_exact("state.append")
    client = programs.client(child.pid)
    assert client.call("do", words="state.append(1)")["result"]["failed"] == ""
    child.expect_exact("From another terminal: state.append(1)")
    child.expect_exact("daifu>")
    client.close()
    # The one at the terminal acts as soon as the client has gone.
    assert programs.client(child.pid).call("status")["result"]["acts"] == "nobody"
    child.sendline("(2)")
    child.expect_exact("Next: `pass` goes on")
    child.expect_exact("daifu>")
    child.sendline("pass")
    child.expect_exact("result 5")
    child.expect(pexpect.EOF)


def test_a_statement_that_is_half_typed_stays(at_terminal: Spawn, programs: Programs) -> None:
    child = run(at_terminal, programs)
    child.sendline("for number in (1, 2):")
    child.expect_exact("...")
    programs.daifu("do", str(child.pid), "p 1")
    child.expect_exact("From another terminal: p 1")
    child.expect_exact("...")
    child.sendline("    state.append(number)")
    child.expect_exact("...")
    child.sendline("")
    child.expect_exact("Next: `pass` goes on")
    child.expect_exact("daifu>")
    child.sendline("pass")
    child.expect_exact("result 5")


def test_one_acts(at_terminal: Spawn, programs: Programs) -> None:
    child = run(at_terminal, programs)
    client = programs.client(child.pid)
    assert client.call("status")["result"]["seconds_left"] is None
    assert client.call("do", words="p 6 * 7")["result"]["text"] == "42"
    child.expect_exact("From another terminal: p 6 * 7")
    child.expect_exact("daifu>")
    child.sendline("pass")
    child.expect_exact("Another terminal acts; `take` takes over.")
    child.expect_exact("daifu>")
    child.sendline("take")
    child.expect_exact("You act now.")
    child.expect_exact("daifu>")
    assert client.call("do", words="pass")["error"]["code"] == -32000
    assert client.call("take")["result"] == {}
    child.expect_exact("Another terminal has taken over; `take` takes it back.")
    assert client.call("do", words="state.append(1)\npass")["result"]["decided"] is True
    child.expect_exact("Decided from another terminal: state.append(1) ...")
    child.expect_exact("result 10")
    child.expect(pexpect.EOF)


def test_take_is_a_name_where_nobody_else_acts(at_terminal: Spawn, programs: Programs) -> None:
    child = run(at_terminal, programs, CRASHES.replace("state", "take"))
    child.sendline("take")
    child.expect_exact("[]")
    child.sendline("raise")
    child.expect(pexpect.EOF)


def test_looking_around_does_not_disturb(at_terminal: Spawn, programs: Programs) -> None:
    child = run(at_terminal, programs)
    client = programs.client(child.pid)
    assert client.call("status")["result"]["acts"] == "nobody"
    assert client.call("complete", text="sta")["result"]["names"] == ["state", "staticmethod"]
    assert "state = []" in client.call("report")["result"]["text"]
    child.sendline("p 40 + 2")
    child.expect_exact("42")
    assert "another" not in str(child.before)
    assert client.call("status")["result"]["acts"] == "another"
    child.expect_exact("daifu>")
    child.sendline("return")
    child.expect_exact("ends")
    assert client.next() == {"jsonrpc": "2.0", "method": "over", "params": {"hold": 1}}
    assert client.next() == {}


def test_ctrl_c_at_the_terminal_interrupts_what_a_client_has_typed(
    at_terminal: Spawn, programs: Programs
) -> None:
    child = run(at_terminal, programs)
    os.mkfifo(programs.folder / "pipe")
    client = programs.client(child.pid)
    client.ask("do", words="open('pipe').read()")
    with open(programs.folder / "pipe", "w"):
        child.sendintr()
        assert client.next()["result"]["failed"] == "the action raised KeyboardInterrupt"
    child.expect_exact("From another terminal: open('pipe').read()")
    child.expect_exact("daifu>")
    client.close()


@pytest.mark.parametrize("kind", ["dumb"], indirect=True)
def test_a_client_is_told_that_the_terminal_has_decided(at_terminal: Spawn, programs: Programs) -> None:
    child = run(at_terminal, programs)
    client = programs.client(child.pid)
    client.call("status")
    assert client.call("do", words="p 1", hold=7)["error"]["code"] == -32001
    child.sendline("state.append(1)")
    child.expect_exact("daifu>")
    child.sendline("pass")
    child.expect_exact("result 10")
    assert client.next()["method"] == "over"


NO_PLACE = [{"DAIFU_ATTACH": "0"}, {"XDG_RUNTIME_DIR": "/proc/self"}]


@pytest.mark.parametrize("variables", NO_PLACE, ids=["not wanted", "no directory"])
@pytest.mark.parametrize("kind", ["dumb"], indirect=True)
def test_where_nobody_can_attach_the_prompt_is_as_ever(
    variables: dict[str, str], at_terminal: Spawn, programs: Programs
) -> None:
    child = run(at_terminal, programs, **variables)
    assert programs.sockets() == []
    child.sendline("state.append(2)")
    child.expect_exact("daifu>")
    child.sendline("pass")
    child.expect_exact("result 10")


THREAD = """
import threading
def divide(state):
    result = 10 // len(state)
    print("result", result, flush=True)
thread = threading.Thread(target=divide, args=([],), name="worker")
thread.start()
thread.join()
print("ends", flush=True)
"""


def test_a_thread(at_terminal: Spawn, programs: Programs) -> None:
    child = run(at_terminal, programs, THREAD)
    client = programs.client(child.pid)
    assert client.call("do", words="state.append(1)")["result"]["failed"] == ""
    child.expect_exact("From another terminal: state.append(1)")
    child.expect_exact("daifu>")
    client.close()
    child.sendline("state.append(2)")
    child.expect(re.escape("Next: `pass` goes on"))
    done = programs.daifu("do", "--take", str(child.pid), "pass")
    assert (done.returncode, done.stderr) == (0, "")
    child.expect_exact("Decided from another terminal: pass")
    child.expect_exact("result 5")
    child.expect_exact("ends")


CALLS = """
import sys, threading
sys.path.insert(0, {root!r})
from daifu_bc.frontends.calls import calls
from daifu_bc.recovery.turns import turns
print("nobody is asked:", calls.put(print), flush=True)
def divide(state):
    result = 10 // len(state)
    print("result", result, flush=True)
def fails(hold):
    raise ValueError("for nothing")
def decides(hold):
    assert threading.current_thread() is threading.main_thread()
    hold.act("state.append(1)")
    hold.retry()
def watch():
    open("pipe").read()
    calls.put(fails)
    calls.put(decides)
threading.Thread(target=watch).start()
divide([])
"""


def test_something_else_wants_the_held_thread(at_terminal: Spawn, programs: Programs) -> None:
    os.mkfifo(programs.folder / "pipe")
    root = programs.environment["PYTHONPATH"]
    child = run(at_terminal, programs, CALLS.replace("{root!r}", repr(root)), DAIFU_ATTACH="0")
    (programs.folder / "pipe").write_text("go on")
    child.expect_exact("daifu_bc failed inside (ValueError: for nothing); the hold stays.")
    child.expect_exact("Decided elsewhere.")
    child.expect_exact("result 10")
    child.expect(pexpect.EOF)


def test_output_comes_while_it_is_printed(programs: Programs) -> None:
    """No terminal is needed for this one."""
    started = programs.start(CRASHES)
    client: Client = programs.client(started.held())
    os.mkfifo(programs.folder / "pipe")
    words = "print('first'); print('sec', end=''); print('ond', end='', flush=True); text = open('pipe').read(); print(text)"
    client.ask("do", words=f"{words}\np len(text)", stream=True)
    first, second = client.next(), client.next()
    assert first == {"jsonrpc": "2.0", "method": "output", "params": {"id": 1, "text": "first\n"}}
    assert second["params"] == {"id": 1, "text": "second"}
    other = programs.client(started.process.pid)
    assert other.call("status")["result"]["busy"] is True
    assert other.call("interrupt")["error"]["code"] == -32000
    (programs.folder / "pipe").write_text("third")
    assert client.next()["params"]["text"] == "third\n"
    assert client.next()["result"]["text"].splitlines()[-1] == "5"
    assert other.call("status")["result"]["busy"] is False
    assert client.call("interrupt")["result"] == {"interrupted": False}
    assert programs.daifu("do", "--take", str(started.process.pid), "return").returncode == 0
    assert started.end()[0] == "ends\n"


def test_another_client_interrupts_when_it_acts(programs: Programs) -> None:
    started = programs.start(CRASHES)
    pid = started.held()
    client, other = programs.client(pid), programs.client(pid)
    os.mkfifo(programs.folder / "pipe")
    client.ask("do", words="open('pipe').read()\npass")
    with open(programs.folder / "pipe", "w"):
        assert other.call("take")["result"] == {}
        assert client.next()["method"] == "taken"
        assert other.call("interrupt")["result"] == {"interrupted": True}
        result = client.next()["result"]
    assert result["failed"] == "the action raised KeyboardInterrupt"
    assert result["text"].endswith("1 more not run.")
    assert other.call("do", words="return")["result"]["decided"] is True
    assert started.end()[0] == "ends\n"


PRINTS = "import os; [print('x' * 10_000) for _ in range(3000)]; os.mkfifo('done'); open('done', 'w').close()"


@pytest.mark.parametrize("goes", [False, True], ids=["hangs", "goes"])
def test_a_client_that_does_not_read_what_is_printed(goes: bool, programs: Programs) -> None:
    """The action runs to its end, however much it prints, and the hold is there for others."""
    started = programs.start(CRASHES)
    pid = started.held()
    client = programs.client(pid)
    client.ask("do", words=PRINTS, stream=True)
    if goes:
        client.next()
        client.close()
    other = programs.client(pid)
    while not (programs.folder / "done").exists():
        assert other.call("status")["result"]["state"] == "held"
    (programs.folder / "done").read_text()
    done = programs.daifu("do", "--take", str(pid), "state.append(1)", "pass")
    assert (done.returncode, done.stderr) == (0, "")
    assert started.end()[::2] == ("result 10\nends\n", 0)
    client.close()


FILLS = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 256))
def fill(files):
    while True:
        files.append(open("/dev/null"))
fill(files := [])
print("goes on", len(files), flush=True)
"""


def test_a_hold_at_a_terminal_for_want_of_file_descriptors(at_terminal: Spawn, programs: Programs) -> None:
    (programs.folder / "program.py").write_text(FILLS)
    child = at_terminal("run", "program.py")
    child.expect_exact("Too many open files")
    child.expect_exact("daifu>")
    assert programs.client(child.pid).call("status")["result"]["state"] == "held"
    child.sendline("files.clear()")
    child.expect_exact("Next: `pass` goes on")
    child.expect_exact("daifu>")
    child.sendline("return")
    child.expect_exact("goes on 0")


def test_nothing_can_be_opened_but_the_prompt(at_terminal: Spawn, programs: Programs, kind: str) -> None:
    """An action has taken the last file descriptor: the prompt goes on in plain text, without anybody else."""
    child = run(at_terminal, programs, THREAD)
    child.sendline("import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))")
    child.expect_exact("Next: `pass` goes on")
    child.expect_exact("daifu>")
    child.sendline("state.append(1)")
    child.expect_exact("Next: `pass` goes on")
    child.expect_exact("daifu>")
    child.sendline("pass")
    child.expect_exact("result 10")


SECOND = """
import threading
def divide(state):
    result = 10 // len(state)
    print("result", result, flush=True)
def later(state):
    open("pipe").read()
    divide(state)
threads = [threading.Thread(target=target, args=([],), name=target.__name__) for target in (divide, later)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_news_come_without_typing_at_an_attached_prompt(at_terminal: Spawn, programs: Programs) -> None:
    os.mkfifo(programs.folder / "pipe")
    started = programs.start(SECOND)
    pid = started.held()
    child = at_terminal("attach", str(pid))
    child.expect_exact("daifu>")
    child.sendline("p 6 * 7")
    child.expect_exact("42")
    child.expect_exact("daifu>")
    child.send("state.app")
    (programs.folder / "pipe").write_text("go on")
    child.expect_exact("hold 2 waits: thread later, ZeroDivisionError at program.py:4; `hold 2` goes to it")
    child.expect_exact("daifu>")
    child.sendline("end(1)")
    child.expect_exact("Next: `pass` goes on")
    child.expect_exact("daifu>")
    other = programs.client(pid)
    assert other.call("take")["result"] == {}
    child.expect_exact("Another client has taken over; `take` takes it back.")
    assert other.call("do", words="pass")["result"]["decided"] is True
    child.expect_exact("ZeroDivisionError")  # the report of the other hold
    child.expect_exact("daifu>")
    assert other.call("do", words="return")["result"]["decided"] is True
    child.expect_exact("The run goes on.")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0
    assert started.end()[0] == "result 10\n"


def test_news_come_without_typing_at_the_terminal(at_terminal: Spawn, programs: Programs) -> None:
    os.mkfifo(programs.folder / "pipe")
    child = run(at_terminal, programs, SECOND, DAIFU_ATTACH="0")
    child.send("p 6")
    (programs.folder / "pipe").write_text("go on")
    child.expect_exact("hold 2 waits: thread later, ZeroDivisionError at program.py:4; `hold 2` goes to it")
    child.expect_exact("daifu>")
    child.sendline(" * 7")
    child.expect_exact("42")


@pytest.mark.parametrize("kind", ["dumb"], indirect=True)
def test_clients_are_answered_while_something_runs_at_the_terminal(
    at_terminal: Spawn, programs: Programs
) -> None:
    child = run(at_terminal, programs)
    os.mkfifo(programs.folder / "pipe")
    client = programs.client(child.pid)
    client.call("status")
    child.sendline("state.append(len(open('pipe').read()))")
    with open(programs.folder / "pipe", "w") as file:
        assert client.call("status")["result"]["acts"] == "another"
        client.ask("complete", text="sta")  # that has to wait
        file.write("four")
    assert client.next()["result"]["names"] == ["state", "staticmethod"]
    child.expect_exact("Next: `pass` goes on")


STAYS = """
import signal
signal.signal(signal.SIGHUP, signal.SIG_IGN)
def divide(state):
    result = 10 // len(state)
    with open("result", "w") as file:
        file.write(str(result))
divide([])
"""


def test_the_terminal_goes_away(at_terminal: Spawn, programs: Programs) -> None:
    """The run is as one without a terminal from then on: it waits for somebody."""
    child = run(at_terminal, programs, STAYS)
    first = programs.client(child.pid)
    assert first.call("status")["result"]["seconds_left"] is None
    child.ptyproc.fileobj.close()
    while first.next():  # the terminal's own socket is closed
        pass
    while f"{child.pid}.sock" not in programs.sockets():
        pass
    client = programs.client(child.pid)
    assert client.call("status")["result"]["seconds_left"] > 0
    assert client.call("do", words="state.append(1)\npass")["result"]["decided"] is True
    assert client.next()["method"] == "over"
    assert client.next() == {}
    child.ptyproc.wait()
    assert (programs.folder / "result").read_text() == "10"
