from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from daifu_bc.errors import UsageError
from daifu_bc.frontends import log
from daifu_bc.frontends.commands import run_words
from daifu_bc.recovery import journal
from tests.fake_hold import FakeHold, crash, make
from tests.playing import play


@pytest.fixture(autouse=True)
def fresh_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_chosen", None)
    monkeypatch.setattr(journal, "_told", False)


@pytest.fixture
def err(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "__stderr__", stream)
    return stream


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


INNER = """
def outer():
    n = 0
    return inner(n)

def inner(n):
    return 1 // n

print(outer())
"""


def test_words_about_another_frame_say_which(tmp_path: Path) -> None:
    play(tmp_path, INNER, "n = 5\nframe outer\nn = 1\npass", DAIFU_JOURNAL=str(tmp_path / "journal"))
    written = entries(tmp_path / "journal")
    assert {(entry["line"], entry["function"]) for entry in written} == {(7, "inner")}
    assert [(entry["event"], entry.get("frame")) for entry in written] == [
        ("held", None),
        ("action", None),
        ("action", f"outer at {tmp_path / 'program.py'}:4"),
        ("pass", f"outer at {tmp_path / 'program.py'}:4"),
        ("running again", None),
    ]


def test_what_is_written(tmp_path: Path) -> None:
    hold = make()
    hold.began = time.monotonic() - 90
    journal.held(hold)
    journal.done(hold, "action", code="x = 1\ny = 2\n", seconds=0.25)
    journal.done(hold, "goto", code="12", outcome="refused")
    journal.done(hold, "pass")
    path = tmp_path / "state" / "daifu_bc" / "journal.jsonl"
    held, action, refused, decided = entries(path)
    frame = hold.frames[-1]
    common = {
        "pid": os.getpid(),
        "hold": 1,
        "thread": "MainThread",
        "what": "ZeroDivisionError",
        "file": frame.filename,
        "line": frame.line,
        "function": "inner",
    }
    assert held.pop("time").startswith("20")
    assert held == {"event": "held", **common}
    assert action.pop("time").endswith("+00:00")
    assert action == {
        "event": "action",
        **common,
        "code": "x = 1\ny = 2\n",
        "seconds": 0.25,
        "outcome": "done",
    }
    assert (refused["event"], refused["code"], refused["outcome"]) == ("goto", "12", "refused")
    assert 90 <= decided["seconds"] < 95
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_words_are_journalled(tmp_path: Path) -> None:
    hold = make()
    file = tmp_path / "fix.py"
    file.write_text("y = 2\n")
    words = (
        "p count",
        "x = 1",
        "action <<END\n1 / 0\nEND",
        f"action @{file}",
        "goto x",
        "return nothing",
        "surgery f <<END\ndef f(): pass\nEND",
        "where",
        "return count + 1",
    )
    for text in words:
        run_words(hold, text)
    assert [(entry["event"], entry["code"], entry["outcome"]) for entry in entries(Path(journal.path()))] == [
        ("action", "x = 1", "done"),
        ("action", "1 / 0\n", "the action raised ZeroDivisionError"),
        ("action", "y = 2\n", "done"),
        ("goto", "x", "`goto` needs the number of a line, not 'x'"),
        ("return", "nothing", "nothing raised NameError"),
        ("surgery", "f\ndef f(): pass\n", "done"),
        ("return", "count + 1", "done"),
    ]


def test_no_values_are_written(tmp_path: Path) -> None:
    secret = "a patient's name"

    def crash_with() -> None:
        name = secret
        raise ValueError(name)

    journal.held(FakeHold(crash(crash_with)))
    assert secret not in Path(journal.path()).read_text()


def test_which_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert journal.path() == str(tmp_path / "state" / "daifu_bc" / "journal.jsonl")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert journal.path() == f"{tmp_path}/.local/state/daifu_bc/journal.jsonl"
    for none in ("", "~", "relative", str(tmp_path / "nowhere")):
        monkeypatch.setenv("HOME", none)
        assert journal.path() == f"/tmp/daifu_bc-{os.getuid()}/journal.jsonl"
    monkeypatch.setenv("DAIFU_JOURNAL", "/a/b")
    assert journal.path() == "/a/b"
    journal.set_file("/c/d")
    assert journal.path() == "/c/d"
    started_in = os.getcwd()
    journal.set_file("here")
    with contextlib.chdir(tmp_path):
        assert journal.path() == os.path.join(started_in, "here")


@pytest.mark.parametrize("name", ["/proc/none/journal", "/dev/full", "/dev/null/x", "a\0b", "/"])
def test_a_journal_that_cannot_be_written_is_told_once(name: str, err: io.StringIO) -> None:
    journal.set_file(name)
    journal.held(make())
    journal.held(make())
    assert err.getvalue().count("daifu_bc: cannot write the journal") == 1
    assert err.getvalue().count("\n") == 1


@pytest.mark.parametrize("name", ["/proc/none/journal", "/", "file/journal", "\0"])
def test_what_cannot_be_written_there_is_written_to_the_users_own(
    name: str, tmp_path: Path, err: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(journal, "_STARTED_IN", str(tmp_path))
    journal.set_file(name)
    for event in ("one", "two"):
        journal.record(event)
    own = tmp_path / "state" / "daifu_bc" / "journal.jsonl"
    if name != "\0":  # no name of a file
        assert [entry["event"] for entry in entries(own)] == ["one", "two"]
        assert f"It is written to {own} instead; the program is not affected." in err.getvalue()
    assert err.getvalue().count("cannot write the journal") == 1
    assert err.getvalue().endswith(f"Name another file with --journal or {journal.VARIABLE}.\n")


def test_a_pipe_that_nobody_reads(tmp_path: Path, err: io.StringIO) -> None:
    os.mkfifo(tmp_path / "pipe")
    journal.set_file(str(tmp_path / "pipe"))
    journal.held(make())
    assert "cannot write the journal" in err.getvalue()


def test_nobody_to_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "__stderr__", closed)
    journal.set_file("/proc/none/journal")
    journal.held(make())


def test_odd_names_are_written(tmp_path: Path) -> None:
    hold = make()
    hold.thread_name = "ünïcode \udcff \n"
    journal.held(hold)
    journal.record("note", reason="x", number=3)
    first, second = entries(Path(journal.path()))
    assert first["thread"] == "ünïcode \udcff \n"
    assert {key: second[key] for key in ("event", "reason", "number")} == {
        "event": "note",
        "reason": "x",
        "number": 3,
    }


def test_a_broken_line_damages_itself_only(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    file.write_text('{"event": "held", "tim')
    journal.set_file(str(file))
    journal.held(make())
    broken, whole = file.read_text().splitlines()
    assert broken == '{"event": "held", "tim'
    assert json.loads(whole)["event"] == "held"


def test_several_processes_write_whole_lines(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    program = (
        "from daifu_bc.recovery import journal\n"
        "for number in range(200): journal.record('note', text='x' * 500, number=number)"
    )
    environment = {**os.environ, "DAIFU_JOURNAL": str(file)}
    children = [subprocess.Popen([sys.executable, "-c", program], env=environment) for _ in range(3)]
    assert [child.wait() for child in children] == [0, 0, 0]
    assert sorted(entry["number"] for entry in entries(file)) == sorted(list(range(200)) * 3)


AGAIN = """
import time
def inner():
    try:
        return 1 // zero
    finally:
        time.sleep(0.3)
def outer():
    return inner()
zero = 0
print(outer())
"""


@pytest.mark.parametrize(
    ("words", "decided", "slept"),
    [
        ("action import time; time.sleep(0.3)\nglobals()['zero'] = 1\npass", "pass", 0.3),
        ("globals()['zero'] = 1\nframe outer\npass", "pass", 0.3),
        ("action import time; time.sleep(0.3)\nraise", "raise", 0),
    ],
)
def test_when_the_run_goes_on(words: str, decided: str, slept: float, tmp_path: Path) -> None:
    """Also where blocks and frames are left first: then it goes on when that is done."""
    ended = play(tmp_path, AGAIN, words, DAIFU_JOURNAL="journal")
    assert ended.stdout == ("" if decided == "raise" else "1\n"), ended.stderr
    found = entries(tmp_path / "journal")
    (decision,) = [entry for entry in found if entry["event"] == decided]
    running = [entry for entry in found if entry["event"] == "running again"]
    if decided == "raise":
        assert not running
        return
    assert running == found[-1:]
    (again,) = running
    assert again["held"] >= slept
    assert again["held"] >= decision["seconds"]
    assert (again["seconds"] >= slept) == ("frame" in words)
    assert (again["hold"], again["function"], again["line"]) == (1, "inner", 5)


# ------------------------------------------------------------------ daifu log


def test_the_log_is_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    file = tmp_path / "journal"
    head = {"time": "2026-03-01T10:20:30.500+00:00", "pid": 7, "hold": 2, "thread": "MainThread"}
    place = {"what": "KeyError", "file": "/p/train.py", "line": 31, "function": "fit"}
    lines = [
        json.dumps(head | {"event": "held"} | place),
        json.dumps(head | {"event": "action"} | place | {"code": "x = 1\ny = 2", "seconds": 0.0215}),
        '{"event": "held", "time',
        "[1, 2]",
        "",
        json.dumps(
            head | {"event": "pass", "thread": "loader"} | place | {"seconds": 7321.0, "outcome": "done"}
        ),
        json.dumps({"event": "note", "time": "yesterday", "pid": 7, "reason": "\x1b[2J"}),
        json.dumps(head | {"event": "goto", "code": "3", "outcome": "refused"}),
        json.dumps(head | {"event": "running again", "seconds": 0.0035, "held": 61.2}),
    ]
    file.write_text("\n".join(lines) + "\n")
    with file.open("ab") as stream:
        stream.write(b"\xff\x00" + b"z" * 500 + b"\n")
    assert list(log.read(str(file))) == [
        "2026-03-01 10:20:30 [7] hold 2 held KeyError at /p/train.py:31 in fit",
        "2026-03-01 10:20:30 [7] hold 2 action at /p/train.py:31 in fit in 21.5 ms\n      | x = 1\n      | y = 2",
        '(line 3 is damaged: {"event": "held", "time)',
        "(line 4 is damaged: [1, 2])",
        "2026-03-01 10:20:30 [7] hold 2 pass at /p/train.py:31 in fit (thread loader) after 2 h 02 min",
        "(no time) [7] note reason=\\x1b[2J",
        "2026-03-01 10:20:30 [7] hold 2 goto - refused\n      | 3",
        "2026-03-01 10:20:30 [7] hold 2 running again 3.5 ms after the word, held for 1 min 01 s",
        "(line 10 is damaged: \\xff\\x00" + "z" * 112 + "...)",
    ]


def test_a_log_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no journal"):
        list(log.read(str(tmp_path / "none")))
    with pytest.raises(UsageError, match="cannot read"):
        list(log.read(str(tmp_path)))
