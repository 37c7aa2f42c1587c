"""The word `debug`, and a debugger that comes to a run which waits at a prompt or for `daifu attach`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.at_terminal import Start, starting
from tests.dap_client import DapClient
from tests.debugged import Debugged, started
from tests.playing import play
from tests.test_terminal import end, prompt

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

CRASHES = """\
def divide(state):
    return 10 // len(state)

print("result", divide([]), flush=True)
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with starting(tmp_path, "comfortable") as spawn:
        yield spawn


def client_of(child: pexpect.spawn[str]) -> DapClient:
    """Type the word at a prompt, and attach where it says."""
    child.sendline("debug")
    child.expect(r"Debugger listens at 127\.0\.0\.1:(\d+)\.")
    assert child.match is not None
    client = DapClient(int(child.match[1]))
    client.attach(justMyCode=False)
    return client


@pytest.mark.terminal
def test_a_prompt_gives_way_to_a_debugger_and_comes_back(start: Start) -> None:
    child = start(CRASHES)
    prompt(child)
    client = client_of(child)
    thread = client.stopped()
    assert client.places(thread) == [("divide", 2), ("<module>", 4)]
    child.expect("hold 1 is shown in the debugger")
    client.set(client.stack(thread)[0], "state", "[1]")
    client.ask("disconnect")
    client.close()
    prompt(child)
    child.sendline("len(state)")
    prompt(child, "1\r\n")
    child.sendline("pass")
    assert "result 10" in end(child)
    assert child.exitstatus == 0


def daifu(folder: Path, *words: str) -> tuple[str, str, int]:
    with started(folder, [sys.executable, "-m", "daifu_bc", *words]) as run:
        return run.end()


def wait_until_held(run: Debugged) -> None:
    assert run.process.stderr is not None
    while "Held. Type" not in (line := run.process.stderr.readline()):
        run.err += line
        assert line, run.err


def test_a_run_that_waits_is_debugged_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(CRASHES)
    command = [sys.executable, "-m", "daifu_bc", "run", "program.py"]
    with started(tmp_path, command) as run:
        wait_until_held(run)
        pid = str(run.process.pid)
        out, err, code = daifu(tmp_path, "debug", pid)
        assert code == 0, err
        host, _, port = out.removesuffix("\n").partition(":")
        assert host == "127.0.0.1"
        # Whoever asks again is told the same.
        assert daifu(tmp_path, "debug", pid)[0] == out
        run.port = int(port)
        client = run.attach()
        thread = client.stopped()
        client.set(client.stack(thread)[0], "state", "[1, 2]")
        # While the debugger shows it, words from elsewhere are run all the same.
        out, err, code = daifu(tmp_path, "do", pid, "len(state)", "state.append(3)")
        assert (out.splitlines()[0], code) == ("2", 0), err
        thread = client.stopped()
        assert client.variables(client.stack(thread)[0])["state"] == "[1, 2, 3]"
        client.ask("disconnect")
        client.close()
        out, err, code = daifu(tmp_path, "do", pid, "len(state)", "pass")
        assert (out.splitlines()[0], code) == ("3", 0), err
        assert run.end()[0] == "result 3\n"


BLOCKED = "import sys\nsys.modules['debugpy'] = None\n"


def test_where_it_is_missing_the_word_says_so(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(BLOCKED + CRASHES)
    command = [sys.executable, "-m", "daifu_bc", "run", "program.py"]
    with started(tmp_path, command) as run:
        wait_until_held(run)
        out, err, code = daifu(tmp_path, "debug", str(run.process.pid))
        assert (out, code) == ("", 1)
        assert "debugpy is not installed" in err
        assert "pip install" in err
        assert daifu(tmp_path, "do", str(run.process.pid), "return 3")[2] == 0
        assert run.end()[0] == "result 3\n"


UNKNOWN = """\
import debugpy, debugpy.server.api, pydevd
del pydevd.PyDB.do_wait_suspend
import sys
sys.argv = ["daifu", "run", "program.py"]
from daifu_bc.cli import main
sys.exit(main())
"""


def test_an_unknown_version_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(CRASHES)
    with started(tmp_path, [sys.executable, "-c", UNKNOWN]) as run:
        wait_until_held(run)
        assert "this version of debugpy is not known (pydevd has no PyDB.do_wait_suspend)" in run.err
        out, err, code = daifu(tmp_path, "debug", str(run.process.pid))
        assert (out, code) == ("", 1)
        assert "a hold cannot be shown in this version of debugpy" in err
        assert daifu(tmp_path, "do", str(run.process.pid), "return 3")[2] == 0
        assert run.end()[0] == "result 3\n"


def test_a_playbook_is_not_debugged(tmp_path: Path) -> None:
    found = play(tmp_path, CRASHES, "debug\nreturn 3\n")
    assert found.stdout == ""
    assert "nobody is asked here who could look into a debugger" in found.stderr
    assert found.returncode == 1


@pytest.mark.parametrize(
    ("address", "told"),
    [
        (
            "0.0.0.0:0",
            "can be reached from other machines. Give --debugpy-allow-remote, too, if that is meant.",
        ),
        ("here", "'here' is no address for a debugger. Write a port, or HOST:PORT: 5678, 127.0.0.1:0."),
    ],
)
def test_an_address_that_cannot_be_is_refused(tmp_path: Path, address: str, told: str) -> None:
    (tmp_path / "program.py").write_text(CRASHES)
    out, err, code = daifu(tmp_path, "run", "--debugpy", address, "program.py")
    assert told in err
    assert (out, code) == ("", 2)
