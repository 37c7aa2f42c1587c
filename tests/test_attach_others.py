"""Who may attach beside the user, and what becomes of a hold where the program has left nothing to open a socket with."""

from __future__ import annotations

import os
import socket
import struct
import sys
from pathlib import Path

import pytest

from daifu_bc.frontends import rendezvous
from daifu_bc.recovery import attaching
from tests.attaching import Programs

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


def test_who_may_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert [attaching.may_come(user) for user in (1000, 0, 1001, None)] == [True, False, False, False]
    monkeypatch.setenv("DAIFU_ATTACH_ROOT", "1")
    assert [attaching.may_come(user) for user in (1000, 0, 1001, None)] == [True, True, False, False]


class Told:
    """A connection of which macOS tells what is given here."""

    def __init__(self, told: bytes | OSError) -> None:
        self.told = told
        self.asked: list[tuple[int, int, int]] = []

    def getsockopt(self, *arguments: int) -> bytes:
        self.asked.append(arguments)  # type: ignore[arg-type]
        if isinstance(self.told, OSError):
            raise self.told
        return self.told


#: `struct xucred`: version, user, how many groups, sixteen groups.
XUCRED = struct.pack("=IIh2x16I", 0, 501, 1, 20, *[0] * 15)


@pytest.mark.parametrize(
    ("told", "user"),
    [
        (XUCRED, 501),
        (struct.pack("=I", 1) + XUCRED[4:], None),
        (b"", None),
        (OSError("no"), None),
    ],
    ids=["told", "another version", "nothing", "refused"],
)
def test_macos_tells_the_user(
    told: bytes | OSError, user: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(socket, "SO_PEERCRED")
    connection = Told(told)
    assert rendezvous.user_of(connection) is None  # type: ignore[arg-type]
    assert connection.asked == []
    names = os.uname_result(("Darwin", *tuple(os.uname())[1:]))
    monkeypatch.setattr(os, "uname", lambda: names)
    assert len(XUCRED) == 76
    assert rendezvous.user_of(connection) == user  # type: ignore[arg-type]
    assert connection.asked == [(0, 1, 76)]


COMES = """
import os, socket, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
connection = socket.socket(socket.AF_UNIX)
try:
    connection.connect(sys.argv[1])
    print(connection.recv(1000).decode(), connection.recv(1000))
except PermissionError:
    print("not let in")
"""


@as_root
def test_another_user_comes(programs: Programs) -> None:
    pid = programs.start().held()
    path = programs.directory / f"{pid}.sock"
    come = [sys.executable, "-c", COMES, str(path)]
    assert programs.spawn(come).communicate() == ("not let in\n", "")
    # Even if somebody has opened the way, the run asks who it is.
    for opened in (programs.runtime, programs.directory, path):
        opened.chmod(0o777)
    out, err = programs.spawn(come).communicate()
    assert "this run is another user's" in out
    assert out.endswith(" b''\n")
    assert err == ""
    assert programs.client(pid).call("status")["result"]["state"] == "held"


#: The other user may not be able to read the interpreter's own files: all is loaded before.
BECOMES = """
import contextlib, importlib, os, pkgutil, sys
import daifu_bc, daifu_bc.cli
for found in pkgutil.walk_packages(daifu_bc.__path__, "daifu_bc.", onerror=lambda _: None):
    if found.name.split(".")[1] not in ("__main__", "demo"):
        with contextlib.suppress(ImportError):
            importlib.import_module(found.name)
daifu_bc._load_engine()
os.chdir(sys.argv[1])
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
sys.argv = ["daifu", "run", *sys.argv[2:]]
sys.exit(daifu_bc.cli.main())
"""


@as_root
@pytest.mark.parametrize("option", ["--attach-root", "--no-attach-root"])
def test_root_comes(option: str, programs: Programs, tmp_path: Path) -> None:
    home = Path(programs.runtime)
    (home / "program.py").write_text("def divide(state):\n    print(1 // len(state))\ndivide([])\n")
    os.chown(home, NOBODY, NOBODY)
    variables = programs.environment | {"HOME": str(home), "DAIFU_JOURNAL": str(home / "journal.jsonl")}
    words = [str(home), "--attach", option, "program.py"]
    process = programs.spawn([sys.executable, "-c", BECOMES, *words], **variables)
    assert process.stderr is not None
    while "Held. Type" not in (line := process.stderr.readline()):
        assert line
    done = programs.daifu("do", str(process.pid), "state.append(1)", "pass", XDG_RUNTIME_DIR=str(tmp_path))
    if option == "--attach-root":
        assert (done.returncode, done.stderr) == (0, "")
        assert process.communicate()[0] == "1\n"
    else:
        assert done.returncode == 1
        assert "this run is another user's" in done.stderr
        attached = programs.daifu("attach", str(process.pid), XDG_RUNTIME_DIR=str(tmp_path))
        assert attached.returncode == 1
        assert "this run is another user's" in attached.stderr
        assert "Traceback" not in attached.stderr


FILLS = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, MOST))
def fill(files):
    while True:
        files.append(open("/dev/null"))
fill(files := [])
print("goes on", len(files), resource.getrlimit(resource.RLIMIT_NOFILE), flush=True)
"""


def test_no_file_descriptors_are_left(programs: Programs) -> None:
    run = programs.start(FILLS.replace("MOST", "256"))
    pid = str(run.held())
    done = programs.daifu("do", pid, "len(files) > 40", "files.clear()", "return")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("True\n")
    assert run.end()[::2] == ("goes on 0 (64, 256)\n", 0)


def test_no_file_descriptors_are_left_and_none_can_be_had(programs: Programs) -> None:
    run = programs.start(FILLS.replace("MOST", "64"))
    out, err, code = run.end()
    assert (out, code) == ("", 1)
    assert "Too many open files" in err
    assert err.splitlines()[-1].startswith("OSError: [Errno 24] Too many open files")


def test_a_limit_that_is_set_meanwhile_stays(programs: Programs) -> None:
    run = programs.start(FILLS.replace("MOST", "256"))
    words = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 256))"
    assert programs.daifu("do", str(run.held()), words, "files.clear()", "return").returncode == 0
    assert run.end()[0] == "goes on 0 (200, 256)\n"
