"""What others can reach of a run, and what is written down of it. See docs/security.md.

Who may come to the socket, in which directories it may be, and what becomes of messages that are too long or no messages
is in test_attach.py and test_attach_rubbish.py; that a webhook's address is shown nowhere is in test_notification.py.
"""

from __future__ import annotations

import ast
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daifu_bc.frontends import prompt as prompts
from daifu_bc.install import cache, vaccine
from daifu_bc.recovery import intercept, journal, private
from tests.attaching import Programs
from tests.playing import ROOT, play, python
from tests.running import run
from tests.test_journal import entries, fresh_journal  # noqa: F401 - a fixture
from tests.test_layers import MODULES
from tests.test_notification import lines

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files and rights to others")

CRASHES = """
def divide(by):
    return 1 // by

print(divide(0))
"""


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    """In place of the one that all have: here the runtime directory lies among the files that are looked at."""
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    held = Programs(tmp_path, runtime)
    yield held
    held.close()


# -- the network -------------------------------------------------------------------------------------------------


def sockets_of(pid: int) -> set[str]:
    """Return the numbers of a process's sockets, as the kernel's tables name them."""
    links = [os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")]
    return {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}


def on_the_network(pid: int) -> list[str]:
    """Return the lines of the kernel's tables that are about a process's sockets."""
    own = sockets_of(pid)
    tables = [Path(f"/proc/{pid}/net/{name}") for name in ("tcp", "tcp6", "udp", "udp6")]
    rows = [row for table in tables if table.exists() for row in table.read_text().splitlines()[1:]]
    return [row for row in rows if row.split()[9] in own]


def test_a_held_run_is_not_on_the_network(programs: Programs) -> None:
    pid = programs.start(CRASHES).held()
    assert sockets_of(pid)
    assert on_the_network(pid) == []


def test_the_look_at_the_network_sees_something(programs: Programs) -> None:
    listens = "import socket\nlistener = socket.create_server(('127.0.0.1', 0))\n"
    pid = programs.start(listens + CRASHES).held()
    (row,) = on_the_network(pid)
    assert row.split()[1].startswith("0100007F:")  # 127.0.0.1


# -- the rights of others ----------------------------------------------------------------------------------------

#: Starts a program with the rights of root, on behalf of somebody else, as a set-uid or a set-gid program is started.
BORROWS = """
import os, sys
if sys.argv[1] == "user":
    os.setresuid(65534, 0, 0)
else:
    os.setresgid(65534, 0, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


@as_root
@pytest.mark.parametrize("kind", ["user", "group"])
@pytest.mark.parametrize("by", ["variables", "command"])
def test_a_set_uid_program_heeds_no_variable(tmp_path: Path, kind: str, by: str) -> None:
    (tmp_path / "program.py").write_text(CRASHES)
    (tmp_path / "playbook").write_text("action open('was here', 'w')\nreturn 7\n")
    start = [] if by == "variables" else ["-m", "daifu_bc", "run", "--notify", "echo > 'was here'"]
    variables = {
        "DAIFU": "1",
        "DAIFU_PLAYBOOK": str(tmp_path / "playbook"),
        "DAIFU_NOTIFY": f"echo > '{tmp_path}/was here'",
        "DAIFU_JOURNAL": str(tmp_path / "journal"),
    }
    # Stands in for the line that an installation puts into site-packages.
    (tmp_path / "sitecustomize.py").write_text(f"exec(open({str(ROOT / 'daifu_bc.pth')!r}).read())\n")
    path = f"{tmp_path}:{ROOT}"
    ended = python(tmp_path, ["-c", BORROWS, kind, *start, "program.py"], **variables, PYTHONPATH=path)
    assert (ended.stdout, ended.returncode) == ("", 1)
    assert ended.stderr.splitlines()[-1].startswith("ZeroDivisionError: ")
    assert ended.stderr.count("this process has another user's rights") == 1
    assert not (tmp_path / "was here").exists()
    assert not (tmp_path / "journal").exists()
    # The same without the borrowed rights.
    ended = python(tmp_path, [*start, "program.py"], **variables, PYTHONPATH=path)
    assert (ended.stdout, ended.returncode) == ("7\n", 0)


def test_rights_are_looked_at_by_user_and_by_group(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not private.borrowed_rights()
    with monkeypatch.context() as changed:
        changed.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert private.borrowed_rights()
    with monkeypatch.context() as changed:
        changed.setattr(os, "getegid", lambda: os.getgid() + 1)
        assert private.borrowed_rights()
    monkeypatch.setattr(vaccine, "_BORROWED", True)
    assert not vaccine.available()


# -- a project's file ----------------------------------------------------------------------------------------------

NOTIFIES = '[tool.daifu]\nnotify = "echo > told"\nretry-limit = 7\n'
SHOWS = "import os\nprint(os.environ.get('DAIFU_RETRY_LIMIT'))\n"


@as_root
def test_a_file_of_another_user_above_the_program_does_not_count(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    project = tmp_path / "pyproject.toml"
    project.write_text(NOTIFIES)
    os.chown(project, NOBODY, NOBODY)
    ended = run(work, SHOWS)
    assert ended.stdout == "None\n"
    assert f"{project} is another user's, or all may write to it" in ended.stderr
    # Whoever runs another user's program trusts that user.
    os.chown(work / "program.py", NOBODY, NOBODY)
    (work / "trusted.py").write_text(SHOWS)
    os.chown(work / "trusted.py", NOBODY, NOBODY)
    ended = run(work, SHOWS, script="trusted.py")
    assert (ended.stdout, ended.stderr) == ("7\n", "")


@pytest.mark.parametrize(("mode", "shown"), [(0o666, "None"), (0o664, "7"), (0o600, "7")])
def test_a_file_that_all_may_write_to_does_not_count(tmp_path: Path, mode: int, shown: str) -> None:
    (tmp_path / "pyproject.toml").write_text(NOTIFIES)
    (tmp_path / "pyproject.toml").chmod(mode)
    assert run(tmp_path, SHOWS).stdout == f"{shown}\n"


# -- files and directories ---------------------------------------------------------------------------------------


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The directory of the journal and the history."""
    directory = tmp_path / "state" / "daifu_bc"
    directory.mkdir(parents=True, mode=0o700)
    return directory


def not_written(capfd: pytest.CaptureFixture[str]) -> str:
    """Try to write to the journal, and return what is said."""
    journal.record("event")
    err = capfd.readouterr().err
    assert err.startswith("daifu_bc: cannot write the journal")
    return err


def test_a_journal_that_is_a_link(state: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    (state / "journal.jsonl").symlink_to(victim)
    (state / "history").symlink_to(victim)
    not_written(capfd)
    assert type(prompts.history()).__name__ == "InMemoryHistory"
    assert victim.read_text() == "as it was"


@as_root
@pytest.mark.parametrize("what", ["directory", "link", "journal"])
def test_a_journal_of_another_user(
    state: Path, tmp_path: Path, what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    foreign = state / "journal.jsonl" if what == "journal" else state
    if what == "link":
        state.rmdir()
        (tmp_path / "mine").mkdir()
        state.symlink_to(tmp_path / "mine")
        os.lchown(state, NOBODY, NOBODY)
    else:
        (state / "journal.jsonl").touch()
        os.chown(foreign, NOBODY, NOBODY)
    assert f"{foreign} belongs to another user" in not_written(capfd)
    if what != "journal":
        assert type(prompts.history()).__name__ == "InMemoryHistory"
    assert not any(path.stat().st_size for path in state.iterdir())


def test_a_directory_that_others_may_write_to(state: Path, capfd: pytest.CaptureFixture[str]) -> None:
    state.chmod(0o777)
    assert f"others may write to {state}" in not_written(capfd)
    assert list(state.iterdir()) == []


def test_a_link_of_the_users_own_is_followed(state: Path, tmp_path: Path) -> None:
    state.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    state.symlink_to(tmp_path / "elsewhere")
    journal.record("event")
    assert [entry["event"] for entry in entries(tmp_path / "elsewhere" / "journal.jsonl")] == ["event"]


def test_what_is_made_is_the_users_alone(programs: Programs, tmp_path: Path) -> None:
    """Whatever the program's mask is."""
    (tmp_path / "program.py").write_text(CRASHES)
    command = [sys.executable, "-m", "daifu_bc", "run", "program.py"]
    process = programs.spawn(
        ["/bin/sh", "-c", 'umask 0; exec "$@"', "sh", *command],
        DAIFU_JOURNAL="",
        XDG_STATE_HOME=str(tmp_path / "own"),
    )
    assert process.stderr is not None
    while "Held. Type" not in process.stderr.readline():
        assert process.poll() is None
    made = {
        str(path.relative_to(tmp_path)): stat.filemode(path.lstat().st_mode)
        for path in [*tmp_path.rglob("own/**/*"), *programs.directory.rglob("*"), programs.directory]
    }
    sockets = [name for name in made if name.endswith(".sock")]
    assert [made.pop(name) for name in sockets] == ["srw-------"]
    assert made.pop("own/daifu_bc") == made.pop("runtime/daifu_bc") == "drwx------"
    assert set(made.values()) == {"-rw-------"}
    assert "own/daifu_bc/journal.jsonl" in made


def test_the_cache_writes_through_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may write there may do so to the interpreter's own cache: it is trusted as far as that."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    source = tmp_path / "module.py"
    source.write_text("a = 1\n")
    path = cache.path_of(str(source))
    found = cache.state_of(str(source))
    assert path is not None
    assert found is not None
    os.mkdir(os.path.dirname(path))
    os.symlink(victim, path)
    code = compile("a = 1\n", str(source), "exec")
    cache.store(path, found, cache.Entry(code, b""))
    assert victim.read_text() == "as it was"
    entry = cache.load(path, found, str(source))
    assert not os.path.islink(path)
    assert entry is not None
    assert entry.code == code


# -- what comes from outside -------------------------------------------------------------------------------------


def test_nothing_is_unpickled() -> None:
    names = {"pickle", "_pickle", "shelve", "dill", "cloudpickle"}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert names.isdisjoint(alias.name for alias in node.names), path
            elif isinstance(node, ast.ImportFrom):
                assert node.module not in names, path


# -- what is written down ----------------------------------------------------------------------------------------

SECRET = "Doe, 1970-01-01"

PATIENTS = f"""
def look(patients):
    name = patients[0]
    raise KeyError(name)

def fails(name):
    raise LookupError(name)

print(look([{SECRET!r}]))
"""

LOOKS = (
    "p name",
    "name",
    "locals",
    "pp patients",
    "action print(name)",
    "action fails(name)",
    "action raise KeyError(name)",
    "return fails(name)",
    "raise fails(name)",
    "raise name",
    "goto patients",
    "surgery look <<END\ndef look(patients): return [1\nEND",
    "surgery fails <<END\ndef fails(name): return name\nEND",
    "undo",
    "return name",
)


def test_no_value_is_written_down(programs: Programs, tmp_path: Path) -> None:
    held = programs.start(PATIENTS, DAIFU_NOTIFY='read -r line; echo "$line" >> told')
    client = programs.client(held.held())
    answers = [client.call("do", words=words)["result"] for words in LOOKS]
    assert answers[-1]["decided"]
    # A person sees it.
    assert sum(SECRET in answer["text"] for answer in answers) >= len(("p", "name", "locals", "pp", "print"))
    out, err, _ = held.end()
    assert out == f"{SECRET}\n"
    assert SECRET in err
    written = (tmp_path / "journal.jsonl").read_text()
    entries = [json.loads(line) for line in written.splitlines()]
    assert ("action", "the action raised KeyError") in [(one["event"], one.get("outcome")) for one in entries]
    told = lines(tmp_path / "told", len(("held", "resumed")))
    for text in (written, *told):
        assert "Doe" not in text


def test_values_are_written_down_if_that_is_asked_for(tmp_path: Path) -> None:
    odd = "class Odd:\n    def __repr__(self):\n        raise LookupError\n"
    program = odd + CRASHES.replace("by)", "by, odd)").replace("// by", "// (by + bool(odd) - 1)").replace(
        "(0)", "(0, Odd())"
    )
    ended = play(tmp_path, program, "return 7", DAIFU_JOURNAL="journal", DAIFU_JOURNAL_VALUES="1")
    assert (ended.stdout, ended.returncode) == ("7\n", 0)
    held, values, *_ = entries(tmp_path / "journal")
    assert held["text"].endswith("by zero")
    assert values["event"] == "values"
    assert values["values"] == "by = 0\nodd = <the repr of this Odd raised LookupError>"
    log = python(tmp_path, ["-m", "daifu_bc", "log", "journal"]).stdout.splitlines()
    assert log[2:4] == ["      | by = 0", "      | odd = <the repr of this Odd raised LookupError>"]


def test_an_internal_error_is_written_down_without_values(tmp_path: Path) -> None:
    for asked, outcome in ("0", "LookupError"), ("1", f"LookupError: {SECRET}"):
        os.environ["DAIFU_JOURNAL_VALUES"] = asked
        try:
            intercept.report(LookupError(SECRET, asked) if asked == "0" else LookupError(SECRET))
        finally:
            del os.environ["DAIFU_JOURNAL_VALUES"]
        assert entries(tmp_path / "state" / "daifu_bc" / "journal.jsonl")[-1]["outcome"] == outcome


def test_words_are_written_down_as_they_were_typed(tmp_path: Path) -> None:
    """What a person types is theirs to keep: it is needed to know what was done."""
    play(tmp_path, PATIENTS, "return 'typed'\n---\nskip", DAIFU_JOURNAL=str(tmp_path / "journal"))
    assert [entry.get("code") for entry in entries(tmp_path / "journal") if entry["event"] == "return"] == [
        "'typed'"
    ]


def until(condition: str) -> str:
    """Return the action that waits for something."""
    return f"action <<END\nimport os\nwhile not ({condition}): pass\nEND\nreturn 1"


def test_the_helper_does_not_hand_on_what_is_ours(tmp_path: Path) -> None:
    """The command of --notify gets the user's environment, without what would have it tell of itself, or the address."""
    address = "http://127.0.0.1:1/T0p"
    variables = {
        "DAIFU": "1",
        "DAIFU_WEBHOOK": address,
        "DAIFU_NOTIFY": "set > part; echo end >> part; echo > seen",
    }
    play(tmp_path, CRASHES, until("os.path.exists('seen')"), **variables, MINE="kept")
    text = (tmp_path / "part").read_text()
    assert "MINE='kept'" in text
    assert "T0p" not in text
    names = {line.partition("=")[0] for line in text.splitlines()}
    assert names.isdisjoint({"DAIFU", "DAIFU_WEBHOOK", "DAIFU_NOTIFY"})


def test_a_process_list_shows_nothing_of_it(tmp_path: Path) -> None:
    """The helper gets what it has to tell by a socket, not by its command line."""
    command = "tr '\\0' ' ' < /proc/$PPID/cmdline > helper; echo > seen"
    play(tmp_path, CRASHES, until("os.path.exists('seen')"), DAIFU_NOTIFY=command, PATH=os.environ["PATH"])
    line = (tmp_path / "helper").read_text()
    assert "daifu_bc.recovery.delivery" in line
    assert not any(text in line for text in ("program.py", "seen", "ZeroDivisionError", str(tmp_path)))
