"""The command behaves: at narrow terminals, with wide letters, with nobody who reads, without a home, where nothing may be written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from daifu_bc import run_options
from daifu_bc.frontends import exit_codes, switching
from daifu_bc.frontends.width import cut, padded, table, width
from daifu_bc.install.options import OPTIONS
from tests.at_terminal import Start, spawning
from tests.attaching import Programs
from tests.playing import ROOT, play
from tests.test_terminal import CONTROL

CRASHES = """
def divide(by):
    return 1 // by

print(divide(0))
"""

WIDE = """
def 計算する(値):
    return 1 // 値

def outer():
    return 計算する(0)

print(outer())
"""

# -- the width of texts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("abc", 3),
        ("計算する", 8),
        ("ｆｕｌｌ", 8),
        ("한글", 4),
        ("e\N{COMBINING ACUTE ACCENT}", 1),
        ("é", 1),
        ("😀!", 3),
        ("→", 1),
    ],
)
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns


#: Latin, Greek, Cyrillic and what goes with them; accents; kana and Chinese; Korean syllables; faces.
LETTERS = st.sampled_from(
    [
        chr(number)
        for first, last in [
            (0x20, 0x7E),
            (0xC0, 0x17F),
            (0x300, 0x34E),
            (0x391, 0x44F),
            (0x3041, 0x3096),
            (0x4E00, 0x4E80),
            (0xAC00, 0xAC40),
            (0x1F600, 0x1F640),
        ]
        for number in range(first, last + 1)
    ]
)


@given(st.text(LETTERS, max_size=12))
def test_width_is_as_others_have_it(text: str) -> None:
    assert width(text) == wcswidth(text)


@given(st.text(LETTERS, max_size=12), st.integers(3, 12))
def test_cut_texts_fit(text: str, columns: int) -> None:
    shown = cut(text, columns)
    assert wcswidth(shown) <= columns
    assert shown == text or (shown.endswith("...") and text.startswith(shown[:-3]))
    assert wcswidth(padded(shown, columns)) == columns


def test_a_table_is_in_columns() -> None:
    rows = [("PID", "HELD AT", "COMMAND"), ("1", "計算", "a"), ("22", "x", "")]
    assert table(rows) == "PID  HELD AT  COMMAND\n1    計算     a\n22   x"
    assert table(rows, 21, heading=True) == table(rows)
    assert table(rows, 20, heading=True) == "1\n  計算\n  a\n22\n  x"
    assert table(rows[1:], 8) == "1\n  計算\n  a\n22\n  x"


def test_an_exception_is_told_of_in_a_few_columns() -> None:
    assert switching.described("Error", "計" * 40) == f"Error: {'計' * 23}..."


pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

# -- terminals ---------------------------------------------------------------------------------------------------


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    with spawning() as spawn:

        def begin(*words: str, columns: int, **environment: str) -> pexpect.spawn[str]:
            variables = {**inherited, "TERM": "xterm", "COLUMNS": "", "LINES": "", **environment}
            return spawn(["-m", "daifu_bc", *words], tmp_path, variables, columns=columns)

        yield begin


def text_of(child: pexpect.spawn[str]) -> str:
    return CONTROL.sub("", child.before or "").replace("\r", "")


def report(child: pexpect.spawn[str]) -> list[str]:
    """Return the lines before the prompt."""
    child.expect_exact("exception go on.")
    text = text_of(child)
    child.expect(r"daifu>")
    return text.split("\n")


@pytest.mark.terminal
@pytest.mark.parametrize("kind", ["xterm", "dumb"])
def test_a_narrow_terminal(start: Start, tmp_path: Path, kind: str) -> None:
    (tmp_path / "program.py").write_text(WIDE)
    child = start("run", "program.py", columns=20, TERM=kind)
    lines = report(child)
    # The title is not wider than it has to be, and each frame's place stands on a line of its own.
    title = next(line for line in lines if line.startswith("-- daifu: hold 1"))
    assert wcswidth(title) == len("-- daifu: hold 1, thread MainThread ")
    frames = lines[lines.index("Frames:") + 1 :][:6]
    assert frames == [
        "  0  <module>",
        "     program.py:8",
        "  1  outer",
        "     program.py:6",
        "> 2  計算する",
        "     program.py:3   <- held",
    ]
    child.sendline("'日本語' + ' 😀 ' + 'e\N{COMBINING ACUTE ACCENT}'")
    child.expect_exact("'日本語 😀 e\N{COMBINING ACUTE ACCENT}'")
    child.expect_exact("daifu>")
    child.sendline("holds")
    child.expect_exact("> hold 1")
    child.expect_exact("  thread MainThread")
    child.expect_exact("daifu>")
    child.sendline("return 7")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0
    assert text_of(child).rstrip().endswith("7")


@pytest.mark.terminal
def test_a_wide_terminal_shows_frames_in_columns(start: Start, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(WIDE)
    child = start("run", "program.py", columns=120)
    lines = report(child)
    frames = lines[lines.index("Frames:") + 1 :][:3]
    assert frames == [
        "  0  <module>  program.py:8",
        "  1  outer     program.py:6",
        "> 2  計算する  program.py:3   <- held",
    ]
    assert {wcswidth(line.partition("program.py")[0]) for line in frames} == {len("  0  <module>  ")}
    child.sendline("raise")
    child.expect(pexpect.EOF)


@pytest.mark.terminal
def test_the_list_of_runs(programs: Programs, start: Start) -> None:
    pid = programs.start(WIDE).held()
    rows = {}
    for columns in (20, 200):
        child = start("ps", columns=columns, XDG_RUNTIME_DIR=str(programs.runtime))
        child.expect(pexpect.EOF)
        rows[columns] = text_of(child).rstrip("\n").split("\n")
    assert rows[20][:3] == [
        str(pid),
        "  held",
        "  ZeroDivisionError: integer division or modulo by zero at program.py:3, in 計算する",
    ] or (rows[20][:2] == [str(pid), "  held"] and "計算する" in rows[20][2])
    heading, row = rows[200]
    assert heading.split()[:2] == ["PID", "STATE"]
    assert wcswidth(row[: row.index(sys.executable)]) == wcswidth(heading[: heading.index("COMMAND")])


# -- nobody reads ------------------------------------------------------------------------------------------------


@pytest.fixture
def long_journal(tmp_path: Path) -> str:
    line = json.dumps(
        {"event": "held", "time": "2026-01-01T00:00:00+00:00", "pid": 1, "file": "a", "line": 1}
    )
    (tmp_path / "long").write_text(f"{line}\n" * 5000)
    return str(tmp_path / "long")


def daifu(
    *words: str, stdout: int, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "daifu_bc", *words],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=env,
        text=True,
    )


def test_who_reads_has_enough(long_journal: str) -> None:
    process = daifu("log", long_journal, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert "[1] held at a:1" in process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 141


COMMANDS = [["--help"], ["run", "--help"], ["ps"], ["log", "journal"], ["log", "--help"], ["--version"]]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("where", ["closed pipe", "full disk"])
def test_nothing_can_be_written(words: list[str], where: str, tmp_path: Path) -> None:
    (tmp_path / "journal").write_text('{"event": "held"}\n')
    if where == "full disk":
        descriptor = os.open("/dev/full", os.O_WRONLY)
    else:
        other, descriptor = os.pipe()
        os.close(other)
    process = daifu(*words, stdout=descriptor, cwd=tmp_path)
    os.close(descriptor)
    _, err = process.communicate()
    expected = ("daifu: [Errno 28] No space left on device\n", 1) if where == "full disk" else ("", 141)
    assert (err, process.returncode) == expected


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_streams(closed: str, tmp_path: Path) -> None:
    for words, code in (("ps", 0), ("nothing", 2)):
        command = ["/bin/sh", "-c", f'"$@" {closed}', "sh", sys.executable, "-m", "daifu_bc", words]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == code
        assert "Traceback" not in ended.stderr
        assert ended.stdout == ("" if "1>" in closed or code else "There is no run.\n")


def test_letters_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text('{"event": "held", "what": "計\\ud800"}\n')
    ended = subprocess.run(
        [sys.executable, "-m", "daifu_bc", "log", str(tmp_path / "journal")],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("(no time) [?] held \\u8a08\\ud800\n", "", 0)


# -- exit codes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 0),
        (["--help"], 0),
        (["--version"], 0),
        (["nonsense"], 2),
        (["run"], 2),
        (["run", "--nonsense", "x.py"], 2),
        (["run", "no such file.py"], 2),
        (["run", "exits.py"], 7),
        (["run", "raises.py"], 1),
        (["run", "ends.py"], 0),
        (["run", "--playbook", "no such file", "ends.py"], 2),
        (["log", "no such file"], 2),
        (["log", "a", "b"], 2),
        (["ps"], 0),
        (["ps", "x"], 2),
        (["attach", "1"], 1),
        (["attach", "x"], 2),
        (["ps", "--json"], 0),
        (["pause", "1"], 1),
        (["pause"], 2),
        (["debug", "1"], 1),
        (["debug"], 2),
        (["completion", "tcsh"], 2),
        (["help", "nonsense"], 2),
        (["do", "1", "pass"], 1),
        (["do", "1"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_exit_codes(words: list[str], code: int, tmp_path: Path) -> None:
    for name, text in {"exits": "raise SystemExit(7)", "raises": "1 / 0", "ends": ""}.items():
        (tmp_path / f"{name}.py").write_text(text)
    environment = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)}
    ended = daifu(*words, stdout=subprocess.PIPE, cwd=tmp_path, env=environment)
    ended.communicate()
    assert ended.returncode == code


def test_the_reference_has_the_exit_codes() -> None:
    text = (ROOT / "docs" / "reference.md").read_text()
    section = text.partition("## Exit codes")[2].partition("\n## ")[0]
    codes = set(re.findall(r"^\| (\d+) \|", section, re.MULTILINE))
    assert codes == {
        "0",
        *map(str, (exit_codes.FAILED, exit_codes.USAGE, exit_codes.INTERRUPTED, exit_codes.BROKEN_PIPE)),
    }


# -- help --------------------------------------------------------------------------------------------------------


def test_help_names_each_option() -> None:
    reference = (ROOT / "docs" / "reference.md").read_text()
    for option in OPTIONS:
        assert len(re.findall(rf"^  --{option.name}(?: |$)", run_options.help_text(), re.MULTILINE)) == 1
        assert f"`--{option.name}" in reference, option.name
        assert option.variable in reference, option.variable
    assert max(map(len, run_options.help_text().splitlines())) <= 120


# -- where nothing may be written --------------------------------------------------------------------------------

#: Root may write anywhere, if it is not taken away.
AS_ANYBODY = """
import ctypes, os, sys
if os.geteuid() == 0:
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def read_only(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    for path in [*folder.rglob("*"), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        return subprocess.run(
            [sys.executable, "-c", AS_ANYBODY, "-m", "daifu_bc", *words],
            cwd=folder,
            env={"PYTHONPATH": str(ROOT), "PATH": ""} | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_nothing_may_be_written(tmp_path: Path) -> None:
    """Neither vaccinated code, nor the journal; what is done is done all the same."""
    folder = tmp_path / "read only"
    (folder / "home").mkdir(parents=True)
    (folder / "program.py").write_text("import helper\n" + CRASHES)
    (folder / "helper.py").write_text("print('helper')\n")
    (folder / "playbook").write_text("return 7\n")
    ended = read_only(folder, "run", "--playbook", "playbook", "program.py", HOME=str(folder / "home"))
    assert (ended.stdout, ended.returncode) == ("helper\n7\n", 0)
    assert ended.stderr.count("daifu_bc: cannot write the journal") == 1
    assert "Permission denied" in ended.stderr
    assert "the program is not affected" in ended.stderr
    assert sorted(path.name for path in folder.rglob("*")) == ["helper.py", "home", "playbook", "program.py"]


def test_no_socket_may_be_made(tmp_path: Path) -> None:
    folder = tmp_path / "read only"
    (folder / "run").mkdir(parents=True)
    (folder / "program.py").write_text(CRASHES)
    variables = {"XDG_RUNTIME_DIR": str(folder / "run"), "DAIFU_JOURNAL": str(tmp_path / "journal")}
    ended = read_only(folder, "run", "--attach", "program.py", **variables)
    assert (ended.stdout, ended.returncode) == ("", 1)
    assert "Permission denied" in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("ZeroDivisionError: ")


@pytest.mark.parametrize("home", ["/no/such/home", "", "relative"])
def test_no_home(tmp_path: Path, home: str) -> None:
    ended = play(
        tmp_path, CRASHES, "return 7", HOME=home, DAIFU_JOURNAL="journal", PYTHONDONTWRITEBYTECODE="1"
    )
    assert (ended.stdout, ended.returncode) == ("7\n", 0)
    assert "journal" not in ended.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal", "playbook", "program.py"]


# -- clocks ------------------------------------------------------------------------------------------------------


def test_the_clock_is_set_back(tmp_path: Path) -> None:
    """What lasts is measured by a clock that nobody sets."""
    words = "action import time\naction time.time = lambda: 1e9\nholds\naction 1\nreturn 7"
    ended = play(tmp_path, CRASHES, words, DAIFU_JOURNAL="journal")
    assert (ended.stdout, ended.returncode) == ("7\n", 0)
    assert re.search(r"> hold 1 .*\(for \d[\d.]* m?s\)", ended.stderr)
    entries = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    times = [entry[name] for entry in entries for name in ("seconds", "held") if name in entry]
    assert len(times) == 6
    assert all(0 < time < 60 for time in times)
