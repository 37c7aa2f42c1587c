"""A held run is reached from elsewhere: real processes, real sockets."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pexpect
import pytest

from daifu_bc.frontends import rendezvous
from daifu_bc.frontends.connection import Connection
from daifu_bc.frontends.conversation import Conversation
from daifu_bc.frontends.service import Service
from daifu_bc.frontends.station import Station
from daifu_bc.recovery import meeting
from tests.at_terminal import spawning
from tests.attaching import CRASHES, INVITATION, ROOT, Programs
from tests.training import environment

pytestmark = [
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

#: What Python itself says of the crash, at the end; not the same on all versions.
try:
    10 // 0
except ZeroDivisionError as zero:
    ERROR = f"ZeroDivisionError: {zero}"


def test_words_from_elsewhere_repair_the_run(programs: Programs) -> None:
    run = programs.start()
    pid = run.held()
    assert pid == run.process.pid
    assert stat.S_IMODE(os.stat(programs.directory).st_mode) == 0o700
    assert stat.S_IMODE(os.lstat(programs.directory / f"{pid}.sock").st_mode) == 0o600
    done = programs.daifu("do", str(pid), "action print('for the client'); state.append(5)", "p state")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "for the client"
    assert "[5]" in done.stdout
    done = programs.daifu("do", str(pid), "pass")
    assert (done.returncode, done.stderr) == (0, "")
    out, err, code = run.end()
    assert (out, code) == ("result 10\nends\n", 0)
    assert ERROR in err  # the report
    assert "Traceback" not in err
    assert programs.sockets() == []


def test_the_option(programs: Programs) -> None:
    run = programs.start(CRASHES, "--attach", "--hold-timeout", "none", DAIFU_ATTACH="")
    pid = run.held()
    assert programs.client(pid).call("status")["result"]["seconds_left"] is None
    assert programs.daifu("do", str(pid), "raise").returncode == 0
    assert run.end()[2] == 1


def test_the_projects_file(programs: Programs) -> None:
    (programs.folder / "pyproject.toml").write_text("[tool.daifu]\nattach = true\nhold-timeout = 5000\n")
    run = programs.start(DAIFU_ATTACH="")
    client = programs.client(run.held())
    assert 0 < client.call("status")["result"]["seconds_left"] <= 5000
    assert client.call("do", words="return")["result"]["decided"] is True
    assert run.end()[::2] == ("ends\n", 0)


def test_nothing_was_said(programs: Programs) -> None:
    run = programs.start(DAIFU_ATTACH="")
    assert programs.daifu("do", str(run.held()), "state.append(1)", "pass").returncode == 0
    assert run.end()[::2] == ("result 10\nends\n", 0)


NOT_WANTED: dict[str, tuple[list[str], str]] = {
    "option": (["--no-attach"], ""),
    "option before variable": (["--no-attach"], "1"),
    "variable": ([], "0"),
}


@pytest.mark.parametrize(("options", "variable"), NOT_WANTED.values(), ids=NOT_WANTED)
def test_nobody_is_to_attach(options: list[str], variable: str, programs: Programs) -> None:
    out, err, code = programs.start(CRASHES, *options, DAIFU_ATTACH=variable).end()
    assert (out, code) == ("", 1)
    assert err.endswith(f"{ERROR}\n")
    assert "Held" not in err
    assert os.listdir(programs.runtime) == []


def test_nobody_can_attach(programs: Programs) -> None:
    """The exception goes on as without daifu_bc, and nothing is said to somebody who has not asked for it."""
    programs.directory.touch()
    out, err, code = programs.start(DAIFU_ATTACH="").end()
    assert (out, code) == ("", 1)
    assert err.startswith("Traceback (most recent call last):\n")
    assert err.endswith(f"{ERROR}\n")
    assert os.listdir(programs.runtime) == ["daifu_bc"]


WORKERS = """
import multiprocessing, sys
def divide(state):
    print("daifu_bc.recovery.hold" in sys.modules)
    print(10 // len(state), flush=True)
if __name__ == "__main__":
    child = multiprocessing.get_context("METHOD").Process(target=divide, args=([],))
    child.start()
    child.join()
    print("ended with", child.exitcode)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_worker(method: str, programs: Programs) -> None:
    path = environment(programs.folder)["PYTHONPATH"]
    run = programs.start(WORKERS.replace("METHOD", method), DAIFU_ATTACH="", PYTHONPATH=path)
    pid = run.held()
    assert pid != run.process.pid
    states = {found["pid"]: found["state"] for found in programs.listed()}
    assert states == {pid: "held", run.process.pid: "running"}
    assert programs.daifu("do", str(pid), "state.append(1)", "pass").returncode == 0
    # A new process loads what a hold needs when it is held; a forked one has it from its parent.
    assert run.end()[::2] == (f"{method == 'fork'}\n10\nended with 0\n", 0)
    assert programs.left() == []


def test_a_child_process_without_code_of_the_program(programs: Programs) -> None:
    """It starts as fast as without us, and nobody sees it."""
    looks = "import os, sys; print(sorted(name for name in sys.modules if name.startswith('daifu_bc.recovery.hold')))"
    folder = "print(os.listdir(os.environ['XDG_RUNTIME_DIR']))"
    path = environment(programs.folder)["PYTHONPATH"]
    process = programs.spawn(
        [sys.executable, "-c", f"{looks}; {folder}; import daifu_bc; print(daifu_bc.__name__)"],
        DAIFU_ATTACH="",
        DAIFU="1",
        PYTHONPATH=path,
    )
    assert process.communicate() == ("[]\n[]\ndaifu_bc\n", "")


SHOWS = """
import os, threading
print(len(os.listdir("/dev/fd")), threading.active_count())
found = [(folder, files) for folder, _, files in os.walk(os.environ["XDG_RUNTIME_DIR"])]
print(found == [] if "0" == os.environ["DAIFU_ATTACH"] else found[1:] == [(found[0][0] + "/daifu_bc", [f"{os.getpid()}.json"])])
"""


def test_before_a_hold_there_is_a_file_and_nothing_else(programs: Programs) -> None:
    with_it, without = (programs.start(SHOWS, DAIFU_ATTACH=value).end() for value in ("1", "0"))
    descriptors, _, right = with_it[0].partition(" 1\n")
    assert right == "True\n"
    assert without[0].startswith(f"{descriptors} 1\n")
    assert programs.left() == []


def test_words_that_fail(programs: Programs) -> None:
    pid = str(programs.start().held())
    done = programs.daifu("do", pid, "action missing", "pass")
    assert done.returncode == 1
    assert "NameError" in done.stdout
    assert done.stdout.endswith("1 more not run.\n")
    assert programs.daifu("do", pid, "goto x").returncode == 1
    assert programs.daifu("do", pid, "surgery f <<END").returncode == 1
    other = programs.daifu("do", "1", "pass")
    assert (other.returncode, other.stdout) == (1, "")
    assert "process 1 is not held" in other.stderr
    assert programs.daifu("do", pid, "return").returncode == 0


def test_the_list(programs: Programs) -> None:
    assert programs.daifu("ps").stdout == "There is no run.\n"
    run = programs.start()
    pid = run.held()
    heading, row = programs.daifu("ps").stdout.splitlines()
    assert heading.split() == ["PID", "STATE", "HELD", "AT", "SINCE", "COMMAND"]
    assert row.startswith(f"{pid}  held   {ERROR} at program.py:3, in divide  20")
    assert row.endswith("-m daifu_bc run program.py")
    run.signal(signal.SIGKILL)
    run.end()
    assert programs.sockets() == [f"{pid}.sock"]
    assert programs.daifu("ps").stdout == "There is no run.\n"
    assert programs.sockets() == []


def test_a_socket_of_a_process_that_had_the_same_number(programs: Programs) -> None:
    """Here the program leaves it itself, before it crashes."""
    leaves = """
import os, socket
left = socket.socket(socket.AF_UNIX)
os.makedirs(os.environ["XDG_RUNTIME_DIR"] + "/daifu_bc", 0o700, exist_ok=True)
left.bind(os.environ["XDG_RUNTIME_DIR"] + f"/daifu_bc/{os.getpid()}.sock")
left.close()
"""
    run = programs.start(leaves + CRASHES)
    assert programs.daifu("do", str(run.held()), "return").returncode == 0
    assert run.end()[0] == "ends\n"


# -- clients that do no good ---------------------------------------------------------------------------------------


def test_a_client_is_killed_in_the_middle(programs: Programs) -> None:
    run = programs.start()
    pid = run.held()
    pipe = programs.folder / "pipe"
    os.mkfifo(pipe)
    client = programs.spawn(
        [
            sys.executable,
            "-m",
            "daifu_bc",
            "do",
            str(pid),
            "action state.append(len(open('pipe').read()))",
            "pass",
        ]
    )
    with open(pipe, "w") as file:  # it is opened when the action has opened it too
        client.kill()
        client.wait()
        busy = programs.daifu("ps").stdout.splitlines()[1]
        assert busy.split()[:2] == [str(pid), "held"]
        assert busy.endswith("-m daifu_bc run program.py")
        file.write("four")
    # What it had sent is done: the words are a whole, and it was not yet known to be gone.
    assert run.end()[::2] == ("result 10\nends\n", 0)


def test_a_client_goes_before_it_has_said_all(programs: Programs) -> None:
    run = programs.start()
    pid = run.held()
    client = programs.client(pid)
    client.send(b'{"jsonrpc": "2.0", "id": 1, "method": "do", "params": {"words": "return"}}')
    client.close()
    assert programs.client(pid).call("status")["result"]["state"] == "held"
    assert programs.daifu("do", str(pid), "return").returncode == 0
    assert run.end()[0] == "ends\n"


def test_a_client_that_does_not_read(programs: Programs) -> None:
    run = programs.start()
    pid = run.held()
    hangs = programs.client(pid)
    for _ in range(4):
        hangs.ask("do", words="print('x' * 10_000_000)")
    other = programs.client(pid)
    result = other.call("do", words="state.append(1)\npass", take=True)["result"]
    assert result["decided"] is True
    assert run.end()[::2] == ("result 10\nends\n", 0)
    hangs.close()


def test_one_acts_and_more_look(programs: Programs) -> None:
    run = programs.start()
    pid = run.held()
    first, second = programs.client(pid), programs.client(pid)
    assert first.call("status")["result"]["acts"] == "nobody"
    assert first.call("do", words="state.append(1)")["result"]["failed"] == ""
    refused = second.call("do", words="return")["error"]
    assert refused == {"code": -32000, "message": "another client acts; `take` takes over"}
    assert programs.daifu("do", str(pid), "return").returncode == 1
    assert second.call("status")["result"]["acts"] == "another"
    assert "state = [1]" in second.call("report")["result"]["text"]
    assert second.call("complete", text="sta")["result"] == {"length": 3, "names": ["state", "staticmethod"]}
    assert second.call("take")["result"] == {}
    assert first.next() == {"jsonrpc": "2.0", "method": "taken", "params": {}}
    assert first.call("do", words="return")["error"]["code"] == -32000
    second.close()
    assert first.call("do", words="pass")["result"]["decided"] is True
    assert run.end()[0] == "result 10\nends\n"
    assert first.next()["method"] == "over"
    assert first.next() == {}


def test_take_over_by_the_command(programs: Programs) -> None:
    run = programs.start()
    pid = run.held()
    first = programs.client(pid)
    first.call("do", words="p 1")
    assert programs.daifu("do", "--take", str(pid), "return").returncode == 0
    assert run.end()[0] == "ends\n"


KEEPS = """
import weakref
class Weight: pass
def divide(state):
    weight = Weight()
    references.append(weakref.ref(weight))
    return 10 // len(state)
references = []
print(divide([]), [reference() for reference in references])
"""


def test_nothing_of_the_program_is_kept(programs: Programs) -> None:
    run = programs.start(KEEPS)
    pid = run.held()
    assert programs.daifu("do", str(pid), "state.append(1)", "p weight", "pass").returncode == 0
    assert run.end()[0] == "10 [None]\n"


# -- nobody comes --------------------------------------------------------------------------------------------------


def test_nobody_comes(programs: Programs) -> None:
    out, err, code = programs.start(CRASHES, "--hold-timeout", "0.2", "--on-timeout=raise").end()
    assert (out, code) == ("", 1)
    assert INVITATION.search(err)
    assert "If nobody does for 200 ms, the exception goes on." in err
    assert "hold 1: nobody has come for 0.2 s; ZeroDivisionError goes on." in err
    assert re.search(r'line 6, in <module>\n.*divide\(\[\]\)\n(.*\n)?  File ".*", line 3, in divide\n', err)
    assert err.endswith(f"{ERROR}\n")
    assert programs.sockets() == []


def test_a_client_that_only_sits_there_does_not_keep_it(programs: Programs) -> None:
    run = programs.start(CRASHES, "--hold-timeout", "5")
    client = programs.client(run.held())
    assert client.next() == {"jsonrpc": "2.0", "method": "over", "params": {"hold": 1}}
    assert client.next() == {}
    assert run.end()[2] == 1


def test_the_time_counts_from_what_was_typed_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAIFU_HOLD_TIMEOUT", "1000")
    service, now = Service(), time.monotonic()
    service.active = now - 700
    left = service.left(now - 1200)
    assert left is not None
    assert left == pytest.approx(300, abs=60)
    left = service.left(now - 400)
    assert left is not None
    assert left == pytest.approx(600, abs=60)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--hold-timeout", "soon"], "'soon' is no time that a hold waits"),
        (["--hold-timeout=0"], "'0' is no time that a hold waits"),
        (["--hold-timeout=nan"], "'nan' is no time that a hold waits"),
        (["--on-timeout", "skip"], "'skip' cannot be done with a hold for which nobody comes"),
    ],
)
def test_what_cannot_be_asked_for(options: list[str], text: str, programs: Programs) -> None:
    out, err, code = programs.start(CRASHES, *options).end()
    assert (out, code) == ("", 2)
    assert text in err


# -- the directory -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: (path.mkdir(), path.chmod(0o755)), "others may enter it (its mode is 0755, not 0700)"),
        (lambda path: (path.mkdir(), path.chmod(0o710)), "others may enter it (its mode is 0710, not 0700)"),
        (lambda path: path.symlink_to(path.parent), "it is a symbolic link"),
        (lambda path: path.symlink_to("nowhere"), "it is a symbolic link"),
        (lambda path: path.touch(), "it is no directory"),
    ],
    ids=["0755", "0710", "link", "dead link", "file"],
)
def test_a_directory_that_is_not_the_users_alone(make: object, reason: str, programs: Programs) -> None:
    make(programs.directory)  # type: ignore[operator]
    before = os.listdir(programs.runtime)
    out, err, code = programs.start().end()
    assert (out, code) == ("", 1)
    said = f"daifu_bc: nobody can attach: {programs.directory} is not used, because {reason}. "
    assert said in err
    assert err.endswith(f"{ERROR}\n")
    assert os.listdir(programs.runtime) == before
    listed = programs.daifu("ps")
    assert listed.stdout == "There is no run.\n"
    assert reason in listed.stderr


def test_a_directory_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    meeting.check(str(tmp_path))
    monkeypatch.setattr(os, "getuid", lambda own=os.getuid(): own + 1)
    with pytest.raises(meeting.AttachError, match="it belongs to another user"):
        meeting.check(str(tmp_path))


def test_a_runtime_directory_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    common = [f"/tmp/daifu_bc-{os.getuid()}"]
    for value in ("", "relative", str(tmp_path / "gone")):
        monkeypatch.setenv("XDG_RUNTIME_DIR", value)
        assert meeting.directories() == common
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert meeting.directories() == [str(tmp_path / "daifu_bc"), *common]
    monkeypatch.setattr(os, "getuid", lambda: 4321)
    assert meeting.directories() == ["/tmp/daifu_bc-4321"]


def test_the_rights_of_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda own=os.getuid(): own + 1)
    with pytest.raises(meeting.AttachError, match="runs with another user's rights"):
        rendezvous.listen()


def test_a_client_of_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="daifu") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        station = Station()
        station.enter()
        try:
            client = socket.socket(socket.AF_UNIX)
            client.connect(station._path)
            assert rendezvous.user_of(client) == os.getuid()
            monkeypatch.setattr(rendezvous, "user_of", lambda _connection: os.getuid() + 1)
            assert station._listener is not None
            station._accept(station._listener)
            assert b"this run is another user's" in client.recv(1000)
            assert client.recv(1000) == b""
            assert station._visitors == []
            client.close()
        finally:
            station.leave()
        assert os.listdir(os.path.join(runtime, "daifu_bc")) == []


def test_a_path_that_is_too_long(programs: Programs) -> None:
    deep = programs.runtime / ("d" * 100)
    deep.mkdir()
    out, err, code = programs.start(XDG_RUNTIME_DIR=str(deep)).end()
    assert (out, code) == ("", 1)
    assert "nobody can attach: no socket can be made at" in err
    assert err.endswith(f"{ERROR}\n")


def test_the_socket_is_tidied_away(programs: Programs) -> None:
    run = programs.start()
    pid = run.held()
    client = programs.client(pid)
    client.call("status")
    (programs.directory / f"{pid}.sock").unlink()
    client.call("status")  # somebody stirs; else it is looked after every few seconds
    assert run.held() == pid
    assert programs.daifu("do", str(pid), "return").returncode == 0
    assert run.end()[0] == "ends\n"
    assert programs.sockets() == []


# -- more than one hold --------------------------------------------------------------------------------------------

TWO = """
import threading
def divide(state, name):
    result = 10 // len(state)
    print(name, result, flush=True)
threads = [threading.Thread(target=divide, args=([], name), name=name) for name in ("one", "two")]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("ends")
"""


def test_two_threads(programs: Programs) -> None:
    run = programs.start(TWO)
    pid = run.held()
    run.held()
    client = programs.client(pid)
    status = client.call("status")["result"]
    # The turn is the first one's; which of the two threads that is, is chance.
    first = status["hold"]
    second = 3 - first
    names = {hold["number"]: hold["thread"] for hold in status["holds"]}
    assert set(names.values()) == {"one", "two"}
    assert f"> hold {first}" in client.call("do", words="holds")["result"]["text"]
    moved = client.call("do", words=f"hold {second}\nstate.append(1)")["result"]
    assert (moved["over"], moved["decided"]) == (True, False)
    assert moved["text"].endswith("1 more not run.")
    assert client.next() == {"jsonrpc": "2.0", "method": "held", "params": {"hold": second}}
    assert client.call("do", words="pass", hold=first)["error"]["code"] == -32001
    done = client.call("do", words="state += [1, 2]\npass", hold=second)["result"]
    assert done["decided"] is True
    assert client.next()["method"] == "over"
    assert client.next() == {"jsonrpc": "2.0", "method": "held", "params": {"hold": first}}
    assert client.call("do", words="state.append(1)\npass", hold=first)["result"]["decided"] is True
    out, err, code = run.end()
    # What a thread prints after its hold may come later than the next decision.
    assert sorted(out.splitlines()) == sorted([f"{names[second]} 5", f"{names[first]} 10", "ends"]), err
    assert code == 0


def test_a_hold_that_was_chosen_does_not_wait(programs: Programs) -> None:
    run = programs.start(TWO)
    pid = run.held()
    run.held()
    client = programs.client(pid)
    first = client.call("status")["result"]["hold"]
    moved = client.call("do", words=f"hold {3 - first}")["result"]
    assert moved["text"] == f"going to hold {3 - first}; hold {first} waits"


def test_leaving_ends_all(programs: Programs) -> None:
    run = programs.start(TWO)
    pid = run.held()
    run.held()
    done = programs.daifu("do", str(pid), "exit 3")
    assert done.returncode == 0
    assert run.end()[0] == "ends\n"  # they were threads beside the main one
    assert programs.sockets() == []


def test_what_was_typed_is_held_in_its_turn(programs: Programs) -> None:
    run = programs.start()
    client = programs.client(run.held())
    pauses = "import daifu_bc, threading; daifu_bc.pause(threading.current_thread()); divide([5, 5])"
    first = client.call("do", words=pauses)["result"]
    assert first["failed"] == "held in its turn"
    assert first["text"] == "What was typed is held in its turn: hold 2."
    assert client.next() == {"jsonrpc": "2.0", "method": "held", "params": {"hold": 2}}
    assert client.call("do", words="state.append(5)\npass", hold=2)["result"]["decided"] is True
    assert client.next() == {"jsonrpc": "2.0", "method": "over", "params": {"hold": 2}}
    answer = client.next()
    assert answer["method"] == "answer"
    assert answer["params"]["text"].splitlines()[0] == "result 3"
    assert answer["params"]["hold"] == 1
    assert client.call("do", words="return", hold=1)["result"]["decided"] is True
    assert run.end()[0] == "ends\n"


FORKS = """
import os
state = []
def divide(name):
    result = 10 // len(state)
    print(name, result, flush=True)
child = os.fork()
divide("parent" if child else "child")
if child:
    os.waitpid(child, 0)
    print("ends")
"""


def test_a_forked_child_has_its_own(programs: Programs) -> None:
    run = programs.start(FORKS)
    pids = {run.held(), run.held()}
    assert run.process.pid in pids
    (child,) = pids - {run.process.pid}
    assert programs.sockets() == sorted(f"{pid}.sock" for pid in pids)
    assert len(programs.daifu("ps").stdout.splitlines()) == 3
    several = programs.daifu("attach")
    assert (several.returncode, several.stdout) == (1, "")
    assert "several runs are held" in several.stderr
    assert programs.daifu("do", str(child), "state.append(1)", "pass").returncode == 0
    assert programs.daifu("do", str(run.process.pid), "state += [1, 2]", "pass").returncode == 0
    assert run.end()[::2] == ("child 10\nparent 5\nends\n", 0)
    assert programs.sockets() == []


def test_a_child_that_is_forked_while_it_is_held(programs: Programs) -> None:
    """What is typed forks: the parent's clients stay the parent's, and the child is held on its own."""
    run = programs.start()
    pid = run.held()
    client = programs.client(pid)
    text = client.call("do", words="import os; child = os.fork(); print('child', child)")["result"]["text"]
    child = int(text.splitlines()[0].removeprefix("child "))
    assert child
    assert run.held() == child
    assert programs.daifu("do", str(child), "state.append(1)", "pass").returncode == 0
    assert client.call("status")["result"]["pid"] == pid
    assert client.call("do", words="state += [1, 2]\npass")["result"]["decided"] is True
    out, _, code = run.end()
    assert (sorted(out.splitlines()), code) == (["ends", "ends", "result 10", "result 5"], 0)
    assert programs.sockets() == []


# -- signals and the end -------------------------------------------------------------------------------------------


def test_a_signal_asks_the_program_to_end(programs: Programs) -> None:
    handles = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
    run = programs.start(handles + CRASHES)
    run.held()
    run.signal(signal.SIGTERM)
    out, err, code = run.end()
    assert (out, code) == ("", 9), err
    assert "a signal asks the program to end; SystemExit goes on instead." in err
    assert programs.sockets() == []


def test_a_signal_that_only_fails_is_told(programs: Programs) -> None:
    handles = "import signal\nsignal.signal(signal.SIGUSR2, lambda *_: 1 / 0)\n"
    run = programs.start(handles + CRASHES)
    client = programs.client(run.held())
    client.call("status")
    run.signal(signal.SIGUSR2)
    while "handler of SIGUSR2" not in (text := client.call("do", words="p 1")["result"]["text"]):
        pass
    assert "has raised ZeroDivisionError while the run is held" in text
    assert client.call("do", words="return")["result"]["decided"] is True
    assert run.end()[0] == "ends\n"


def test_a_daemon_thread_is_held_when_the_program_ends(programs: Programs) -> None:
    program = """
import os, sys, threading
def divide(state):
    10 // len(state)
threading.Thread(target=divide, args=([],), daemon=True).start()
open("pipe").read()
"""
    os.mkfifo(programs.folder / "pipe")
    run = programs.start(program)
    run.held()
    (programs.folder / "pipe").write_text("go on")
    _, err, code = run.end()
    assert code == 0
    assert "the program has ended while a thread was still held" in err
    assert programs.sockets() == []


# -- a person ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["xterm", "dumb"])
def person(request: pytest.FixtureRequest, programs: Programs) -> Iterator[object]:
    variables = {**os.environ, **programs.environment, "TERM": request.param, "NO_COLOR": "1"}
    with spawning() as spawn:
        yield lambda *words: spawn(programs.command("attach", *words), ROOT, variables, timeout=30)


@pytest.mark.terminal
def test_a_person(person: object, programs: Programs) -> None:
    run = programs.start()
    pid = run.held()
    first = person()  # type: ignore[operator]
    first.expect_exact("ZeroDivisionError")
    first.expect_exact("`detach` leaves it held.")
    first.expect_exact("daifu>")
    first.sendline("state.append(1)")
    first.expect_exact("Next: `pass` goes on")
    first.expect_exact("daifu>")
    first.sendline("detach")
    first.expect_exact("Detached.")
    first.expect(pexpect.EOF)
    second = person(str(pid))  # type: ignore[operator]
    second.expect_exact("state = [1]")
    second.expect_exact("daifu>")
    second.sendline("for i in range(2):")
    second.expect_exact("...")
    second.sendline("    state.append(i)")
    second.expect_exact("...")
    second.sendline("")
    second.expect_exact("daifu>")
    second.sendline("pass")
    second.expect_exact("The run goes on.")
    second.expect(pexpect.EOF)
    second.close()
    assert second.exitstatus == 0
    assert run.end()[::2] == ("result 3\nends\n", 0)


@pytest.mark.terminal
def test_ctrl_c_interrupts_what_was_typed(person: object, programs: Programs) -> None:
    run = programs.start()
    run.held()
    os.mkfifo(programs.folder / "pipe")
    client = person()  # type: ignore[operator]
    client.expect_exact("daifu>")
    # Not a single long wait: a signal that comes just before that would be seen only behind it.
    client.sendline(
        "state.append(1); open('pipe').close(); [__import__('time').sleep(0.01) for _ in iter(int, 1)]"
    )
    with open(programs.folder / "pipe", "w"):  # the action runs
        client.sendintr()
        client.expect_exact("The action raised KeyboardInterrupt; the hold stays.")
    client.expect_exact("daifu>")
    client.sendline("pass")
    client.expect_exact("The run goes on.")
    assert run.end()[::2] == ("result 10\nends\n", 0)


class Stubborn:
    """A connection to a run that cannot be interrupted."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def interruptible(self) -> contextlib.nullcontext[None]:
        return contextlib.nullcontext()

    def send(self, method: str, **_: object) -> int:
        self.sent.append(method)
        return 1

    def result(self, _number: int, **_: object) -> object:
        raise KeyboardInterrupt


def test_the_third_ctrl_c_leaves_it_alone() -> None:
    connection = Stubborn()
    with pytest.raises(KeyboardInterrupt):
        Conversation(cast("Connection", connection))._do("wait()")
    assert connection.sent == ["do", "interrupt", "interrupt"]


@pytest.mark.terminal
@pytest.mark.parametrize("person", ["xterm"], indirect=True)
def test_the_tab_key(person: object, programs: Programs) -> None:
    run = programs.start(CRASHES.replace("state", "unmistakable"))
    run.held()
    client = person()  # type: ignore[operator]
    client.expect_exact("daifu>")
    client.send("unmis\t")
    client.expect_exact("takable")
    client.send(".app\t")
    client.expect_exact("end")
    client.send("(7)\r")
    client.expect_exact("Next: `pass` goes on")
    client.expect_exact("daifu>")
    client.sendline("pass")
    client.expect_exact("The run goes on.")
    assert run.end()[0] == "result 10\nends\n"


def test_words_from_a_pipe(programs: Programs) -> None:
    run = programs.start()
    pid = run.held()
    (programs.folder / "words").write_text("state.append(1)\n\npass\n")
    command = f"exec {sys.executable} -m daifu_bc attach {pid} < words"
    client = programs.spawn(["/bin/sh", "-c", command])
    _, err = client.communicate()
    assert (client.returncode, err.splitlines()[-1]) == (0, "The run goes on.")
    assert run.end()[::2] == ("result 10\nends\n", 0)


@pytest.mark.terminal
def test_the_run_dies_under_a_person(person: object, programs: Programs) -> None:
    run = programs.start()
    run.held()
    client = person()  # type: ignore[operator]
    client.expect_exact("daifu>")
    run.signal(signal.SIGKILL)
    run.end()
    client.sendline("pass")
    client.expect_exact("The run is not there any more.")
    client.expect(pexpect.EOF)
    client.close()
    assert client.exitstatus == 1


def test_nothing_to_attach_to(programs: Programs) -> None:
    for words, text in ((["attach"], "no run is held"), (["attach", "77"], "process 77 is not held")):
        ended = programs.daifu(*words)
        assert (ended.returncode, ended.stdout) == (1, "")
        assert text in ended.stderr
    for words in (["attach", "x"], ["attach", "1", "2"], ["do"], ["do", "1"], ["ps", "x"]):
        assert programs.daifu(*words).returncode == 2
    for word in ("ps", "attach", "do"):
        ended = programs.daifu(word, "--help")
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout.startswith(f"usage: daifu {word}")
