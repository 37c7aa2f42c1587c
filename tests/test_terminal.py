"""A person at a real pseudo-terminal, with and without the libraries that make it comfortable."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from daifu_bc.frontends import terminal
from daifu_bc.frontends.reader import TerminalGoneError
from daifu_bc.frontends.terminal import style
from daifu_bc.frontends.typed import parse_typed, unfinished
from tests.at_terminal import Start, spawning
from tests.fake_hold import make

START = """
import asyncio, os, signal, sys, threading, time
from tests.fake_hold import make
from daifu_bc import frontends
from daifu_bc.recovery import policy
frontends.register()
hold = make()
def respond():
    policy.respond(hold)
    print("decision", hold.decision, flush=True)
    print("acted", [call[1] for call in hold.calls if call[0] == "act"], flush=True)
"""
RESPOND = START + "respond()\n"
IN_THREAD = (
    START + "thread = threading.Thread(target=respond)\nthread.start()\nthread.join()\nprint('joined')\n"
)
IN_LOOP = START + "async def main():\n    respond()\nasyncio.run(main())\nprint('loop ended')\n"
PLAIN = "import sys\nfor name in ('prompt_toolkit', 'rich'): sys.modules[name] = None\n"

#: What moves the cursor, colours, asks or sets something: all that is not text.
CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[>=]|\x1b\][^\x07]*\x07")

pytestmark = [
    pytest.mark.terminal,
    # The pseudo-terminal's child is replaced by a new interpreter at once.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture
def start() -> Iterator[Start]:
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM")}
    with spawning() as spawn:

        def begin(program: str, **environment: str) -> pexpect.spawn[str]:
            variables = {**inherited, "TERM": "xterm", **environment}
            return spawn(["-c", program], Path.cwd(), variables, columns=120)

        yield begin


def prompt(child: pexpect.spawn[str], after: str = "") -> str:
    """Wait for a text and for the prompt after it; return all the text before the prompt.

    The text must not be part of what was typed: the comfortable prompt writes that, and itself, more than once.
    """
    seen = ""
    if after:
        child.expect_exact(after)
        seen = text_of(child) + after
    child.expect(r"daifu>")
    return seen + text_of(child)


def end(child: pexpect.spawn[str]) -> str:
    """Wait for the end of the program; return the text before it."""
    child.expect(pexpect.EOF)
    child.wait()
    return text_of(child)


def text_of(child: pexpect.spawn[str]) -> str:
    return CONTROL.sub("", child.before or "").replace("\r", "")


@pytest.fixture(params=["comfortable", "without libraries", "dumb"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def begin(start: Start, kind: str, program: str = RESPOND) -> pexpect.spawn[str]:
    if kind == "without libraries":
        return start(PLAIN + program)
    return start(program, TERM="dumb" if kind == "dumb" else "xterm")


def test_a_hold_is_reported_and_answered(start: Start, kind: str) -> None:
    child = begin(start, kind)
    report = prompt(child, "`help` lists")
    assert "ZeroDivisionError: division by zero" in report
    assert "share = batches[0] / count" in report
    assert "batches = [12, 0]" in report
    child.sendline("p count + 6 * 7")
    prompt(child, "42")
    child.sendline("goto x")
    prompt(child, "needs the number of a line")
    child.sendline("return 5")
    assert "decision ('give', '5')" in end(child)
    assert child.exitstatus == 0


def test_a_here_document(start: Start, kind: str) -> None:
    child = begin(start, kind)
    prompt(child)
    child.sendline("action <<END")
    child.expect(r"\.\.\.")
    child.sendline("if count == 0:")
    child.expect(r"\.\.\.")
    child.sendline("  print('found', 'it')")
    child.expect(r"\.\.\.")
    child.sendline("END")
    prompt(child, "found it")
    child.sendline("pass")
    text = end(child)
    assert "decision ('retry',)" in text
    assert repr(["if count == 0:\n  print('found', 'it')\n"]) in text


def test_a_statement_over_several_lines(start: Start, kind: str) -> None:
    child = begin(start, kind)
    prompt(child)
    child.sendline("for n in range(2):")
    child.expect(r"\.\.\.")
    child.sendline("  print('n', n)")
    child.expect(r"\.\.\.")
    child.sendline("")
    prompt(child, "n 0\r\nn 1")
    child.sendline("raise")
    assert "decision ('let_go', None, False)" in end(child)


def test_ctrl_c_clears_the_line(start: Start, kind: str) -> None:
    child = begin(start, kind)
    prompt(child)
    child.send("skip")
    child.sendcontrol("c")
    prompt(child)
    child.sendline("action <<END")
    child.expect(r"\.\.\.")
    child.sendcontrol("c")
    prompt(child)
    child.sendline("return 1")
    assert "decision ('give', '1')" in end(child)


def test_ctrl_d_keeps_the_hold(start: Start, kind: str) -> None:
    child = begin(start, kind)
    prompt(child)
    for _ in range(3):
        child.sendcontrol("d")
        prompt(child, "Type `raise` to let the exception go on, or `exit`")
    child.sendline("exit 3")
    assert "decision ('leave', 3)" in end(child)


def test_from_another_thread(start: Start, kind: str) -> None:
    child = begin(start, kind, IN_THREAD)
    prompt(child)
    child.send("skip")
    child.sendcontrol("c")
    prompt(child)
    child.sendline("pass")
    text = end(child)
    assert "decision ('retry',)" in text
    assert "joined" in text
    assert "Traceback" not in text


def test_inside_an_event_loop(start: Start, kind: str) -> None:
    child = begin(start, kind, IN_LOOP)
    prompt(child)
    child.sendline("p name")
    prompt(child, "'mean'")
    child.sendline("pass")
    assert "loop ended" in end(child)


def test_a_signal_from_outside_is_like_ctrl_c(start: Start, kind: str) -> None:
    child = begin(start, kind)
    prompt(child)
    child.kill(signal.SIGINT)
    prompt(child)
    child.sendline("pass")
    assert "decision ('retry',)" in end(child)


def test_a_handler_that_raises_leaves_the_hold_and_the_terminal_in_order(start: Start, kind: str) -> None:
    program = START + (
        "import termios\n"
        "def stop(number, frame): raise SystemExit('terminated')\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "before = termios.tcgetattr(0)\n"
        "respond()\n"
        "print('left', before == termios.tcgetattr(0), signal.getsignal(signal.SIGTERM) is stop)\n"
        "print('threads', [thread.name for thread in threading.enumerate()])\n"
    )
    child = begin(start, kind, program)
    prompt(child)
    child.kill(signal.SIGTERM)
    prompt(child, "SIGTERM has raised SystemExit")
    child.sendline("pass")
    text = end(child)
    assert "decision ('retry',)" in text
    assert "left True True" in text
    assert "threads ['MainThread']" in text


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("change", [1, 2])
def test_a_handler_that_raises_while_the_terminal_changes(start: Start, change: int, moment: str) -> None:
    program = START + (
        "import termios\n"
        "def stop(number, frame): raise SystemExit('terminated')\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "before = termios.tcgetattr(0)\n"
        "real, calls = termios.tcsetattr, []\n"
        "def change(*arguments):\n"
        "    calls.append(arguments)\n"
        f"    if len(calls) == {change} and {moment == 'before'}: signal.raise_signal(signal.SIGTERM)\n"
        "    real(*arguments)\n"
        f"    if len(calls) == {change} and {moment == 'after'}: signal.raise_signal(signal.SIGTERM)\n"
        "termios.tcsetattr = change\n"
        "respond()\n"
        "print('left', before == termios.tcgetattr(0), len(calls) > 2)\n"
    )
    child = begin(start, "without libraries", program)
    if change == 2:
        prompt(child)
        child.sendline("p 1")
    prompt(child, "SIGTERM has raised SystemExit")
    child.sendline("pass")
    text = end(child)
    assert "decision ('retry',)" in text
    assert "left True True" in text


def test_a_terminal_that_is_closed_lets_the_exception_go_on(start: Start, kind: str, tmp_path: Path) -> None:
    told = tmp_path / "told"
    program = START + (
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "policy.respond(hold)\n"
        f"open({str(told)!r}, 'w').write(repr(hold.decision))\n"
    )
    child = begin(start, kind, program)
    prompt(child)
    child.ptyproc.fileobj.close()
    os.waitpid(child.pid, 0)
    child.closed = child.ptyproc.closed = child.terminated = child.ptyproc.terminated = True
    assert told.read_text() == repr(("let_go", None, False))


def test_colours_and_history_and_completion(start: Start, tmp_path: Path) -> None:
    child = start(RESPOND)
    child.expect("daifu>")
    assert "\x1b[1;31mZeroDivisionError: division by zero" in (child.before or "")
    child.send("loc\t")
    child.expect("locals")
    child.sendline("")
    prompt(child, "name = 'mean'")
    child.send("p batc\t")
    child.expect("batches")
    child.sendline("")
    prompt(child, "[12, 0]")
    child.sendline("pass")
    end(child)
    history = tmp_path / "state" / "daifu_bc" / "history"
    assert history.stat().st_mode & 0o777 == 0o600
    assert "+p batches" in history.read_text()
    child = start(RESPOND)
    prompt(child)
    child.send("\x1b[A\x1b[A")
    child.expect("p batches")
    child.sendline("")
    prompt(child, "[12, 0]")
    child.sendline("pass")
    end(child)


def test_no_color(start: Start) -> None:
    child = start(RESPOND, NO_COLOR="1")
    child.expect("daifu>")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", child.before or "")
    child.sendline("pass")
    end(child)


@pytest.mark.parametrize("program", [RESPOND, PLAIN + RESPOND])
def test_a_dumb_terminal_gets_plain_text(start: Start, program: str) -> None:
    child = start(program, TERM="dumb")
    child.expect("daifu>")
    child.sendline("pass")
    child.expect(pexpect.EOF)
    assert "\x1b" not in (child.before or "")


def test_history_that_cannot_be_written(start: Start) -> None:
    child = start(RESPOND, XDG_STATE_HOME="/proc/none")
    prompt(child)
    child.sendline("p count")
    prompt(child)
    child.sendline("pass")
    assert "decision ('retry',)" in end(child)


def test_output_that_is_piped_does_not_matter(start: Start, tmp_path: Path) -> None:
    program = START + (
        f"sys.stdout = open({str(tmp_path / 'out')!r}, 'w')\nsys.stderr = open(os.devnull, 'w')\nrespond()\n"
    )
    child = start(program)
    prompt(child)
    child.sendline("pass")
    end(child)
    assert "decision ('retry',)" in (tmp_path / "out").read_text()


def test_without_a_terminal_nobody_is_asked() -> None:
    import subprocess

    result = subprocess.run(
        [sys.executable, "-c", RESPOND + "print('toolkit', 'prompt_toolkit' in sys.modules)"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.splitlines() == ["decision ('let_go', None, False)", "acted []", "toolkit False"]
    assert result.stderr == ""


def test_nothing_of_the_hold_stays_alive(start: Start, kind: str) -> None:
    program = START + (
        "import gc, weakref\ngc.disable()\n"
        "class Precious: pass\n"
        "def crashing():\n    precious = Precious()\n    box.append(weakref.ref(precious))\n    1 / 0\n"
        "from tests.fake_hold import FakeHold, crash\n"
        "box = []\n"
        "hold = FakeHold(crash(crashing), with_source=False)\n"
        "policy.respond(hold)\n"
        "del hold\n"
        "print('alive', box[0]() is not None)\n"
    )
    child = begin(start, kind, program)
    prompt(child)
    for line, answer in (
        ("p precious", "Precious object at"),
        ("precious", "Precious object at"),
        ("p 1 / 0", "division by zero"),
        ("1 / 0", "the hold stays"),
        ("locals", "precious = <"),
        ("where", "<- held"),
        ("exc", "division by zero"),
    ):
        child.sendline(line)
        prompt(child, answer)
    child.sendcontrol("c")
    prompt(child)
    child.sendline("pass")
    assert "alive False" in end(child)


# ------------------------------------------------------------- without a terminal


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("pass", False),
        ("x = 1", False),
        ("x = (", True),
        ("x = (\n1)", False),
        ("if x:", True),
        ("if x:\n  y", True),
        ("if x:\n  y\n", False),
        ("action if x:", True),
        ("action <<END", True),
        ("action <<END\nx", True),
        ("action <<END\nx\nEND", False),
        ("surgery f <<END", True),
        ("x << END", False),
        ("return (", False),
        ("# if x:", False),
        ("", False),
        ("x = = 1", False),
        ("@file", False),
    ],
)
def test_unfinished(text: str, more: bool) -> None:
    assert unfinished(text) == more


def test_a_here_document_is_what_was_typed() -> None:
    (command,) = parse_typed("action <<END\nif x:\n  y\nEND")
    assert (command.text, command.body) == ("action <<END", "if x:\n  y\n")


def test_what_was_typed_over_several_lines_is_one_action() -> None:
    (command,) = parse_typed("if x:\n  y = 1\n")
    assert (command.text, command.body) == ("action", "if x:\n  y = 1\n\n")
    assert [command.text for command in parse_typed("x = 1\npass")] == ["x = 1", "pass"]


def test_styles() -> None:
    assert style("ZeroDivisionError: division by zero") == "bold red"
    assert style("torch.OutOfMemoryError: no") == "bold red"
    assert style("> 12  x = 1") == "bold yellow"
    assert style("    x = 1") == ""


class Keys:
    """A reader that gives what is in a list."""

    def __init__(self, *keys: str | type[BaseException]) -> None:
        self.keys = list(keys)
        self.closed = False

    def read(self, prompt: str) -> str:
        key = self.keys.pop(0)
        if isinstance(key, str):
            return key
        raise key

    def close(self) -> None:
        self.closed = True


def test_a_comfortable_prompt_that_fails_gives_way_to_the_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    broken, plain = Keys("x = 1", RuntimeError), Keys(KeyboardInterrupt, "", "pass")
    monkeypatch.setattr(terminal, "make_reader", lambda *_: broken)
    monkeypatch.setattr(terminal, "PlainReader", lambda _wait: plain)
    monkeypatch.setattr(terminal, "writer", lambda: lambda text, ours: None)
    hold = make()
    terminal.answer(hold)
    assert hold.calls == [("act", "x = 1", "<action>"), ("retry",)]
    assert broken.closed
    assert plain.closed


def test_a_terminal_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "make_reader", lambda *_: Keys(EOFError, TerminalGoneError))
    monkeypatch.setattr(terminal, "writer", lambda: lambda text, ours: None)
    hold = make()
    terminal.answer(hold)
    assert hold.decision == ("let_go", None, False)
