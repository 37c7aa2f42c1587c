"""Programs that change what is around them, or close what is not theirs: they can still be attached to."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from daifu_bc.frontends import rendezvous, roster
from daifu_bc.recovery import meeting, processes
from daifu_bc.recovery.run_file import RunFile
from tests.attaching import CRASHES, Held, Programs


def repaired(programs: Programs, run: Held, pid: int) -> str:
    """What a run prints that is repaired from elsewhere."""
    done = programs.daifu("do", str(pid), "state.append(1)", "pass")
    assert done.returncode == 0, (done.stdout, done.stderr, run.err)
    out, err, code = run.end()
    assert code == 0, err
    return out


@pytest.mark.parametrize("change", ["os.environ.clear()", "os.environ['XDG_RUNTIME_DIR'] = os.getcwd()"])
def test_it_is_found_where_it_was_at_first(change: str, programs: Programs) -> None:
    # A forked child is held; it has no file of its own before.
    run = programs.start(f"import os\n{change}\nif os.fork():\n    os._exit(os.wait()[1] >> 8)\n{CRASHES}")
    pid = run.held()
    assert pid != run.process.pid
    assert {f"{pid}.json", f"{pid}.sock"} < set(programs.left())
    assert repaired(programs, run, pid) == "result 10\nends\n"
    assert not (programs.folder / "daifu_bc").exists()


def test_a_umask_takes_nothing_of_it(programs: Programs) -> None:
    run = programs.start(f"import os\nos.umask(0o777)\n{CRASHES}")
    pid = run.held()
    modes = {name: (programs.directory / name).stat().st_mode & 0o777 for name in programs.left()}
    assert modes == {f"{pid}.json": 0o600, f"{pid}.sock": 0o600}
    assert repaired(programs, run, pid) == "result 10\nends\n"


REOPENS = """
import os
kept = []
def reopen():
    os.closerange(3, 256)
    kept.extend(open(f"file{number}", "w+") for number in range(16))
"""
LOOKS = """
for file in kept:
    assert file.read() == ""
    file.write("its own")
    file.close()
print("kept", len(kept))
"""


def test_what_it_opens_in_the_place_of_ours_stays_its_own(programs: Programs) -> None:
    run = programs.start(REOPENS + CRASHES + LOOKS)
    pid = run.held()
    client = programs.client(pid)
    assert client.call("do", words="reopen()") == {}  # the connection is closed with all the rest
    run.wait_until()
    assert repaired(programs, run, pid) == "result 10\nends\nkept 16\n"


def test_a_socket_is_there_when_it_listens(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks for runs takes away what nobody listens at."""
    seen: list[bool] = []

    def change(path: str, mode: int) -> None:
        seen.append(os.path.lexists(directory / f"{os.getpid()}.sock"))
        os.chmod(path, mode, follow_symlinks=True)

    monkeypatch.setattr(rendezvous, "os", SimpleNamespace(**{**vars(os), "chmod": change}))
    listener, path = rendezvous.listen()
    with listener:
        assert seen == [False]
        assert os.listdir(directory) == [os.path.basename(path)]
        assert not rendezvous.is_dead(path)


# -- the file of a run -----------------------------------------------------------------------------------------------


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    monkeypatch.setattr(meeting, "directories", lambda: [str(tmp_path)])
    monkeypatch.setenv("DAIFU_ATTACH", "1")
    return tmp_path


def test_a_disk_that_takes_little_at_a_time(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda number, text: write(number, text[:100]))
    own = RunFile()
    own.install()
    facts = roster.read(str(directory / f"{os.getpid()}.json"))
    own._remove()
    assert facts is not None
    assert facts["identity"] == processes.identity(os.getpid())


def test_a_disk_that_is_full_from_then_on(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the file has told is not so any more."""
    own = RunFile()
    own.install()
    assert os.listdir(directory) == [f"{os.getpid()}.json"]

    def full(_number: int, _text: bytes) -> int:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patches:
        patches.setattr(os, "write", full)
        own.set_debugger("127.0.0.1", 5)
        assert os.listdir(directory) == []
    own.set_debugger("127.0.0.1", 6)
    facts = roster.read(str(directory / f"{os.getpid()}.json"))
    own._remove()
    assert facts is not None
    assert facts["debugger"] == {"host": "127.0.0.1", "port": 6}
    assert os.listdir(directory) == []
