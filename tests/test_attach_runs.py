"""Which runs there are, held or not, and stopping one: `daifu ps` and `daifu pause`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from daifu_bc.frontends import pausing, roster
from daifu_bc.frontends.roster import Run
from daifu_bc.recovery import meeting, processes
from daifu_bc.recovery.meeting import AttachError
from daifu_bc.recovery.run_file import name_in
from tests.attaching import CRASHES, Held, Programs

#: It runs until it is told to end.
RUNS = """
print("runs", flush=True)
def loop(going):
    count = 0
    while going:
        count += 1
    return "stopped"
going = [1]
print(loop(going), flush=True)
"""


def running(programs: Programs, *options: str, program: str = RUNS, **variables: str) -> Held:
    """Start a program, and wait until it runs."""
    run = programs.start(program, *options, **variables)
    assert run.process.stdout is not None
    assert run.process.stdout.readline() == "runs\n"
    return run


def test_a_run_that_is_not_held(programs: Programs) -> None:
    before = time.time()
    run = running(programs)
    pid = run.process.pid
    assert programs.left() == [f"{pid}.json"]
    assert (programs.directory / f"{pid}.json").stat().st_mode & 0o777 == 0o600
    (found,) = programs.listed()
    assert {name: found[name] for name in ("pid", "state", "hold", "socket", "debugger", "pause_signal")} == {
        "pid": pid,
        "state": "running",
        "hold": None,
        "socket": None,
        "debugger": None,
        "pause_signal": "SIGUSR1",
    }
    assert found["command"][-4:] == ["-m", "daifu_bc", "run", "program.py"]
    assert found["folder"] == str(programs.folder)
    assert found["python"] == sys.version.split()[0]
    assert before <= found["started"] <= time.time()
    heading, row = programs.daifu("ps").stdout.splitlines()
    assert heading.split() == ["PID", "STATE", "HELD", "AT", "SINCE", "COMMAND"]
    assert row.split()[:2] == [str(pid), "running"]
    refused = programs.daifu("attach", str(pid))
    assert refused.returncode == 1
    assert f"process {pid} runs, and is not held" in refused.stderr
    assert programs.daifu("attach").stderr == "daifu: no run is held\n"
    run.signal(signal.SIGKILL)
    run.end()
    assert programs.left() == [f"{pid}.json"]
    assert programs.listed() == []
    assert programs.left() == []


def test_a_hold_is_told_as_long_as_it_lasts(programs: Programs) -> None:
    program = (
        CRASHES + "os = __import__('os'); print(os.listdir(os.environ['XDG_RUNTIME_DIR'] + '/daifu_bc'))\n"
    )
    run = programs.start(program)
    pid = run.held()
    (found,) = programs.listed()
    assert found["state"] == "held"
    assert found["socket"] == str(programs.directory / f"{pid}.sock")
    hold = found["hold"]
    assert (hold["number"], hold["thread"], hold["line"], hold["function"]) == (1, "MainThread", 3, "divide")
    assert hold["error"]["type"] == "ZeroDivisionError"
    assert programs.daifu("do", str(pid), "state.append(1)", "pass").returncode == 0
    assert run.end()[0] == f"result 10\nends\n['{pid}.json']\n"
    assert programs.left() == []


def test_a_list_does_not_wait_for_a_run_that_is_busy(programs: Programs) -> None:
    run = programs.start()
    pid = run.held()
    os.mkfifo(programs.folder / "pipe")
    client = programs.client(pid)
    client.ask("do", words="open('pipe').read()")
    with open(programs.folder / "pipe", "w"):
        run.signal(signal.SIGSTOP)  # nothing of it answers
        (found,) = programs.listed()
        assert (found["pid"], found["state"]) == (pid, "held")
        run.signal(signal.SIGCONT)
    assert "result" in client.next()


def test_not_to_be_attached_to(programs: Programs) -> None:
    run = running(programs, "--no-attach", DAIFU_ATTACH="")
    assert programs.left() == []
    run.signal(signal.SIGKILL)
    (programs.folder / "pyproject.toml").write_text("[tool.daifu]\nattach = false\n")
    running(programs, DAIFU_ATTACH="")
    assert programs.left() == []


# -- whose number it is --------------------------------------------------------------------------------------------


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="daifu") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        # What runs may be in the other directory is nobody's business here.
        monkeypatch.setattr(meeting, "directories", lambda: [f"{runtime}/daifu_bc"])
        yield Path(meeting.place())


def write(directory: Path, stem: str, **more: object) -> Path:
    """Write the file of a run."""
    facts = {
        "pid": os.getpid(),
        "identity": processes.identity(os.getpid()),
        "host": os.uname().nodename,
        "namespace": processes.namespace(),
        "command": ["train.py"],
        "state": "running",
        "hold": None,
        **more,
    }
    path = directory / f"{stem}.json"
    path.write_text(json.dumps(facts))
    return path


def found() -> list[int]:
    runs, problems = roster.runs()
    assert problems == []
    return [run.pid for run in runs]


def test_a_number_that_was_given_again(directory: Path) -> None:
    write(directory, str(os.getpid()))
    assert found() == [os.getpid()]
    own = processes.identity(os.getpid())
    boot, _, ticks = own.rpartition(":")
    for other in (f"{boot}:{int(ticks) - 1}", f"another-boot:{ticks}", ""):
        path = write(directory, str(os.getpid()), identity=other)
        (directory / f"{os.getpid()}.sock").touch()
        assert found() == []
        assert not path.exists()
        assert os.listdir(directory) == []


def test_a_process_that_has_ended_and_is_not_waited_for() -> None:
    with subprocess.Popen(["/bin/true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert processes.identity(child.pid) == ""
    assert processes.identity(child.pid) == ""
    assert processes.identity(os.getpid()) != ""


def test_another_machine_shares_the_directory(directory: Path) -> None:
    """Nobody here can tell whether it is there; it is not ours to be removed."""
    path = write(directory, str(os.getpid()), identity="another-boot:77", host="elsewhere")
    assert found() == []
    assert path.exists()


def test_a_container_shares_the_directory(directory: Path) -> None:
    plain = str(directory / str(os.getpid()))
    assert name_in(str(directory)) == plain
    path = write(directory, str(os.getpid()), namespace="pid:[7]")
    assert found() == []
    assert path.exists()
    own = "".join(filter(str.isdigit, processes.namespace()))
    assert name_in(str(directory)) == f"{plain}-{own}"
    write(directory, f"{os.getpid()}-{own}")
    assert found() == [os.getpid()]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', "[" * 100_000], ids=str)
def test_a_file_that_is_no_run(text: str, directory: Path) -> None:
    (directory / "77.json").write_text(text)
    (directory / "notes.txt").write_text("mine")
    assert found() == []
    assert sorted(os.listdir(directory)) == ["77.json", "notes.txt"]


HOLD = {
    "number": 1,
    "thread": "MainThread",
    "file": "train.py",
    "line": 3,
    "function": "f",
    "error": {"type": "ValueError", "text": ""},
    "since": 1.0,
}
#: As they might be told by another version.
OTHERWISE = [
    {"hold": {}},
    {"hold": "train.py:3"},
    {"hold": HOLD | {"since": "yesterday"}},
    {"hold": HOLD | {"since": 1e300}},
    {"hold": HOLD | {"file": None}},
    {"hold": HOLD | {"error": "ValueError"}},
    {"command": "train.py"},
    {"command": [None]},
    {"started": "yesterday"},
    {"pause_signal": 10},
    {"ranks": 5},
    {"ranks": {"rank": "0", "size": 2, "group": ""}},
    {"debugger": {"host": "127.0.0.1"}},
    {"state": None},
]


@pytest.mark.parametrize("more", OTHERWISE, ids=str)
def test_a_file_of_another_form(more: dict[str, object], directory: Path) -> None:
    path = write(directory, str(os.getpid()), hold=HOLD, state="held", ranks=None)
    assert found() == [os.getpid()]
    write(directory, str(os.getpid()), **more)
    assert found() == []
    assert path.exists()


def test_what_was_not_put_into_its_place(directory: Path) -> None:
    with subprocess.Popen(["/bin/true"]) as child:
        pass
    (directory / f"{child.pid}.json.{child.pid}.new").touch()
    (directory / f"{child.pid}.new").touch()
    (directory / f"{child.pid}-77.new").touch()
    (directory / f"1.json.{os.getpid()}.new").touch()
    assert found() == []
    assert os.listdir(directory) == [f"1.json.{os.getpid()}.new"]


# -- stopping one --------------------------------------------------------------------------------------------------


def test_pause(programs: Programs) -> None:
    run = running(programs)
    pid = str(run.process.pid)
    done = programs.daifu("pause", pid)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Held: Paused")
    assert done.stdout.endswith(", in loop.\n")
    again = programs.daifu("pause", pid)
    assert again.stdout.startswith("It is held already: Paused")
    assert "If nobody does for 30 min 00 s, the run goes on." in run.wait_until()[0] + str(run.err)
    done = programs.daifu("do", pid, "going.clear()", "pass")
    assert (done.returncode, done.stderr) == (0, "")
    assert run.end()[::2] == ("stopped\n", 0)


def test_a_pause_that_takes_long(programs: Programs) -> None:
    waits = "print('runs', flush=True)\nimport time\ntime.sleep(60)\n"
    run = running(programs, program=waits)
    done = programs.daifu("pause", "--wait", "0.1", str(run.process.pid))
    assert done.returncode == 1
    assert f"process {run.process.pid} has not come to a statement in 0.1 s" in done.stderr
    assert run.process.poll() is None


@pytest.mark.parametrize("option", ["none", "SIGUSR2"])
def test_another_signal(option: str, programs: Programs) -> None:
    run = running(programs, "--pause-signal", option)
    pid = str(run.process.pid)
    done = programs.daifu("pause", pid)
    if option == "none":
        assert done.returncode == 1
        assert f"process {pid} cannot be paused, because no signal is free for it" in done.stderr
    else:
        assert done.returncode == 0
    assert run.process.poll() is None


RESETS = """
import ctypes
def loop():
    while True:
        pass
ctypes.CDLL(None).signal(10, 0)
print("runs", flush=True)
loop()
"""


def test_nobody_is_ended_by_it(programs: Programs) -> None:
    """The program has given the signal its default action back, past Python: it would end the process."""
    run = running(programs, program=RESETS)
    pid = run.process.pid
    done = programs.daifu("pause", str(pid))
    assert done.returncode == 1
    assert f"process {pid} cannot be paused, because it has no handler for SIGUSR1 any more" in done.stderr
    assert run.process.poll() is None


def test_another_process_has_the_number_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(os, "kill", lambda *_: sent.append(1))
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda *_: sent.append(1), raising=False)
    facts = {
        "pid": os.getpid(),
        "identity": "another",
        "namespace": processes.namespace(),
        "pause_signal": "SIGUSR1",
    }
    with pytest.raises(AttachError, match="it is not there"):
        pausing._send(Run(os.getpid(), "", facts, None))
    assert sent == []


def test_what_pause_does_not_take(programs: Programs) -> None:
    for words in ([], ["x"], ["1", "2"], ["--wait", "soon", "1"], ["--wait"]):
        assert programs.daifu("pause", *words).returncode == 2
    done = programs.daifu("pause", "1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "process 1 is none of your runs" in done.stderr
    assert programs.daifu("pause", "--help").stdout.startswith("usage: daifu pause")
    assert programs.daifu("ps", "--jason").returncode == 2
