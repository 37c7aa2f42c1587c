from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daifu_bc.frontends.commands import (
    NAMES,
    TABLE,
    check,
    documentation,
    overview,
    read,
    run_command,
    run_words,
)
from daifu_bc.frontends.completion import complete
from daifu_bc.frontends.script import Command, ScriptError, parse, parse_blocks
from tests.fake_hold import FakeHold, make
from tests.playing import play


@pytest.fixture
def hold() -> FakeHold:
    return make()


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("pass", ("retry",)),
        ("retry", ("retry",)),
        ("c", ("retry",)),
        ("  pass  ", ("retry",)),
        ("skip", ("skip",)),
        ("goto 17", ("goto", 17)),
        ("return", ("give", None)),
        ("return total + 1", ("give", "total + 1")),
        ("return (1, 2)", ("give", "(1, 2)")),
        ("raise", ("let_go", None, False)),
        ("raise KeyError('x')", ("let_go", "KeyError('x')", False)),
        ("raise KeyError('x') from None", ("let_go", "KeyError('x') from None", False)),
        ("raise --always", ("let_go", None, True)),
        ("exit", ("leave", 1)),
        ("exit 0", ("leave", 0)),
        ("exit 255", ("leave", 255)),
        ("exit()", ("leave", 1)),
        ("exit(3)", ("leave", 3)),
    ],
)
def test_words_that_decide(hold: FakeHold, text: str, call: tuple[object, ...]) -> None:
    answer = run_words(hold, text)
    assert hold.calls == [call]
    assert hold.decision == call
    assert answer == f"({', '.join(str(part) for part in call)})"


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("surgery", ("surgery", True, None, None, None, False)),
        ("surgery --check", ("surgery", True, None, None, None, True)),
        (
            "surgery f <<END\ndef f():\n    return 1\nEND",
            ("surgery", False, None, "f", "def f():\n    return 1\n", False),
        ),
        (
            "surgery --check C.m <<E\n    def m(self):\n        return 1\nE",
            ("surgery", False, None, "C.m", "def m(self):\n    return 1\n", True),
        ),
        (
            "surgery --at 12 --check <<END\n    return 1\nEND",
            ("surgery", False, None, None, "return 1\n", True, 12),
        ),
    ],
)
def test_surgery(hold: FakeHold, text: str, call: tuple[object, ...]) -> None:
    answer = run_words(hold, text)
    assert hold.calls == [call]
    assert hold.decision is None
    assert answer.endswith(f"Next: pass would run line {hold.frames[-1].line} again")


def test_what_comes_next_is_told_where_it_helps(hold: FakeHold) -> None:
    crashed = len(hold.frames) - 1
    assert run_words(hold, "up").endswith("again")
    assert run_words(hold, f"frame {crashed}").endswith("again")
    assert "Next:" not in run_words(hold, "frame 99")
    assert "Next:" not in run_words(hold, "surgery /none")


def test_surgery_from_a_file(hold: FakeHold, tmp_path: Path) -> None:
    file = tmp_path / "edited copy.py"
    file.write_text("x = 1\n")
    run_words(hold, f"surgery '{file}'")
    run_words(hold, f"surgery --check '{file}'")
    assert hold.calls == [
        ("surgery", False, str(file), None, None, False),
        ("surgery", False, str(file), None, None, True),
    ]


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("action x = 1", "x = 1"),
        ("x = 1", "x = 1"),
        ("p = 3", "p = 3"),
        ("c += 1", "c += 1"),
        ("c **= 2", "c **= 2"),
        ("list(batches)", "list(batches)"),
        ("frame.f_back", "frame.f_back"),
        ("c", None),
        ("where: int = 1", "where: int = 1"),
        ("p == 3", "p == 3"),
        ("passed", "passed"),
        ("p1", "p1"),
        ("!c + 1", "c + 1"),
        ("! pass", "pass"),
        ("action pass", "pass"),
        ("x << END", "x << END"),
        ("action <<END\nif count:\n    x = 1\nEND", "if count:\n    x = 1\n"),
        ("action <<END\n  x = 1\n  y = 2\nEND", "x = 1\ny = 2\n"),
        ("action <<'END'\n---\nEND", None),
        ("action <<END\n# pass\n\nx = 1\nEND", "# pass\n\nx = 1\n"),
        ("action <<END\r\nx = 1\r\nEND\r\n", "x = 1\n"),
        ("action <<END\nx = 'a\u2028b\x0c'\nEND", "x = 'a\u2028b\x0c'\n"),
    ],
)
def test_what_is_an_action(hold: FakeHold, text: str, source: str | None) -> None:
    run_words(hold, text)
    acted = [call[1] for call in hold.calls if call[0] == "act"]
    assert acted == ([] if source is None else [source])


def test_an_expression_shows_its_value(hold: FakeHold) -> None:
    assert run_words(hold, "batches") == "[12, 0]"
    assert run_words(hold, "name") == "'mean'"
    assert run_words(hold, "None") == ""
    assert hold.decision is None


def test_an_action_that_prints_and_changes(hold: FakeHold) -> None:
    line = hold.frames[-1].line
    assert run_words(hold, "print('a', 1)") == f"a 1\nNext: pass would run line {line} again"
    assert run_words(hold, "x = 1") == f"Next: pass would run line {line} again"


def test_an_action_that_raises(hold: FakeHold) -> None:
    answer = run_words(hold, "action <<END\nprint('before')\n1 / 0\nEND")
    assert answer.splitlines() == [
        "before",
        "ZeroDivisionError: division by zero",
        "The action raised ZeroDivisionError; the hold stays.",
    ]
    assert hold.decision is None


def test_an_action_from_a_file(hold: FakeHold, tmp_path: Path) -> None:
    file = tmp_path / "fix it.py"
    file.write_bytes("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"))
    run_words(hold, f"action @{file}")
    assert hold.calls == [("act", "# -*- coding: latin-1 -*-\nx = 'é'\n", str(file))]
    answer = run_words(hold, f"action @{tmp_path}/none.py")
    assert "cannot be read" in answer
    assert "none.py" in answer
    assert len(hold.calls) == 1


@pytest.mark.parametrize("words", ["action @{}", "surgery {}", "surgery --check {}"])
def test_a_named_pipe_is_not_waited_for(tmp_path: Path, words: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    ended = play(tmp_path, "print(1 // 0)\n", words.format("pipe"))
    assert ended.stderr.count("pipe cannot be read, because it is no regular file") == 2
    assert ended.returncode == 1


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("goto", "`goto` needs the number of a line, not ''"),
        ("goto abc", "`goto` needs the number of a line, not 'abc'"),
        ("goto 0", "not '0'"),
        ("goto -3", "not '-3'"),
        ("pass now", "`pass` takes nothing after it"),
        ("c + 1", "`c` takes nothing after it"),
        ("exit 256", "from 0 to 255, not 256"),
        ("exit now", "an exit code from 0 to 255, not 'now'"),
        ("return 1 +", "this is no Python (invalid syntax)"),
        ("return x = 1", "this is no Python"),
        ("raise raise", "this is no Python"),
        ("action", "`action` needs code"),
        ("action x = ", "this is no Python (invalid syntax): x ="),
        ("x = (", "this is no Python ('(' was never closed)"),
        ("p", "`p` needs an expression"),
        ("p x = 1", "this is no Python"),
        ("up two", "`up` needs a number of frames"),
        ("up 9", "this is the outermost frame"),
        ("down", "this is the innermost frame"),
        ("frame nowhere", "there is no frame nowhere"),
        ("list x", "`list` needs LINE"),
        ("help retyr", "there is no word `retyr`; did you mean `retry`?"),
        ("surgery no/such/file.py", "there is no file no/such/file.py"),
        ("surgery a b", "takes one FILE or NAME, not 2"),
        ("surgery --at 3", "needs the new statement"),
        ("surgery --at x <<END\nx\nEND", "needs the number of a line, not 'x'"),
        ("surgery --at 3 f <<END\nx\nEND", "no FILE or NAME beside --at LINE"),
        ("surgery --of f", "does not know --of"),
        ("surgery 'a", "No closing quotation"),
        ("surgery <<END\nx\nEND", "needs a name before it"),
        ("surgery f <<END\ndef f(:\nEND", "this is no Python"),
        ("action <<END\nx = 1\n", "the here-document has no closing line END"),
        ("pass\n---\npass", "separates the blocks of a playbook"),
        ("x\0y", "this is no Python"),
        ("(" * 5000, "this is no Python"),
    ],
)
def test_what_cannot_be_done_says_why(hold: FakeHold, text: str, part: str) -> None:
    assert part in run_words(hold, text)
    assert hold.decision is None
    assert hold.calls == []


def test_a_refusal_says_why_and_the_hold_stays(hold: FakeHold) -> None:
    hold.refuse = "line 3 lies inside a `with` that is not running"
    assert run_words(hold, "goto 3") == hold.refuse
    assert hold.decision is None


def test_a_fault_of_ours_is_an_answer(hold: FakeHold, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise RuntimeError("inside")

    monkeypatch.setattr(hold, "retry", fail)
    assert run_words(hold, "pass") == (
        "daifu_bc failed inside (RuntimeError: inside); the hold stays. Please report it."
    )

    def interrupted() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(hold, "retry", interrupted)
    assert run_words(hold, "pass") == "Interrupted; the hold stays."


def test_a_value_that_cannot_be_worked_out_is_the_answer(hold: FakeHold) -> None:
    assert run_words(hold, "return nothing") == "NameError: name 'nothing' is not defined"
    assert hold.decision is None


def test_the_held_exception_is_no_context_of_what_is_typed(hold: FakeHold) -> None:
    try:
        raise hold.exception
    except ZeroDivisionError:
        assert run_words(hold, "p nothing") == "NameError: name 'nothing' is not defined"
        assert run_words(hold, "return nothing") == "NameError: name 'nothing' is not defined"


def test_where_it_goes_on_is_said_once(hold: FakeHold, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "surgery", lambda **options: f"replaced f\n{hold.where_next()}")
    assert run_words(hold, "surgery") == f"replaced f\n{hold.where_next()}"


def test_a_slip_of_the_fingers_is_recognised(hold: FakeHold) -> None:
    assert run_words(hold, "retyr").endswith("Did you mean the word `retry`?")
    assert "Did you mean the word" not in run_words(hold, "batch_number")


def test_several_words_stop_at_the_first_that_fails(hold: FakeHold) -> None:
    answer = run_words(hold, "x = 1\np nothing\npass")
    assert hold.decision is None
    assert "NameError: name 'nothing' is not defined" in answer
    assert answer.endswith("Line 2 did not do what was asked; 1 more not run.")


def test_several_words_stop_when_one_has_decided(hold: FakeHold) -> None:
    answer = run_words(hold, "# repair\nx = 1\n\npass\nskip")
    assert hold.decision == ("retry",)
    assert answer.endswith("Line 4 has decided; 1 more not run.")


def test_looking(hold: FakeHold) -> None:
    line = hold.frames[-1].line
    assert "share = batches[0] / count" in run_words(hold, "list")
    assert run_words(hold, "locals").splitlines() == ["batches = [12, 0]", "count = 0", "name = 'mean'"]
    assert run_words(hold, "p count + 1") == "1"
    assert run_words(hold, "exc") == "ZeroDivisionError: division by zero"
    assert "no frame further out has a handler" in run_words(hold, "why")
    where = run_words(hold, "where").splitlines()
    assert len(where) == 2
    assert where[0].startswith("  0  outer")
    assert where[1].startswith("> 1  inner")
    assert where[1].endswith(f"tests/fake_hold.py:{line}   <- held")
    assert run_words(hold, f"list {line},{line}").splitlines()[1:] == [
        f"> {line}      share = batches[0] / count  # the line that crashes"
    ]
    assert len(run_words(hold, "list all").splitlines()) == 1 + 6
    assert hold.decision is None


def test_frames_are_selected(hold: FakeHold) -> None:
    assert "in outer" in run_words(hold, "up")
    assert run_words(hold, "p batches, total") == "([12, 0], 12)"
    assert run_words(hold, "locals").splitlines()[0] == "total = 12"
    assert "in inner" in run_words(hold, "down 1")
    assert "in outer" in run_words(hold, "frame 0")
    assert "in inner" in run_words(hold, "frame inner")
    assert "in inner" in run_words(hold, "frame")


def test_help_is_made_from_the_table(hold: FakeHold) -> None:
    text = run_words(hold, "help")
    assert text == overview()
    for word in TABLE:
        assert word.summary in text
        assert word.summary in documentation()
        for name in word.names:
            assert word.usage[0] in run_words(hold, f"help {name}")
    assert len(NAMES) == sum(len(word.names) for word in TABLE)


def test_pp_breaks_lines(hold: FakeHold) -> None:
    answer = run_words(hold, "pp {str(n): 'x' * 30 for n in range(6)}")
    assert answer.splitlines()[0] == "{'0': 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',"
    assert len(answer.splitlines()) == 6
    assert run_words(hold, "pp [1, name]") == "[1, 'mean']"
    assert run_words(hold, "pp list(range(10000))").endswith("... and 9600 lines more")
    assert run_words(hold, "pp type('Bad', (), {'__repr__': lambda self: 1 / 0})()") == (
        "<the repr of this Bad raised ZeroDivisionError>"
    )
    assert run_words(hold, "pp {'k': [type('Bad', (), {'__repr__': lambda self: 1 / 0})()]}") == (
        "{'k': [<the repr of this Bad raised ZeroDivisionError>]}"
    )


@given(st.text())
def test_no_input_ends_the_hold(text: str) -> None:
    hold = make()
    names = {name for name in NAMES if NAMES[name].decides}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        run_words(hold, text)
    if hold.decision is not None:
        assert any(name in text for name in names)


@given(st.sampled_from(sorted(NAMES)), st.text(max_size=20))
def test_every_word_with_any_argument_answers_with_text(name: str, argument: str) -> None:
    hold = make()
    hold.refuse = "no"
    # Code is run as it stands: keep to what cannot be a call. Some words write files.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        answer = run_command(hold, Command(1, f"{name} {argument.replace('(', '')}"))
    assert isinstance(answer.text, str)
    assert hold.decision is None


def test_blocks() -> None:
    text = "# first\naction x = 1\npass\n---\n\naction <<END\n---\n  a\nEND\n-----\nskip"
    assert parse_blocks(text) == [
        [Command(2, "action x = 1"), Command(3, "pass")],
        [Command(6, "action <<END", "---\n  a\n")],
        [Command(11, "skip")],
    ]
    assert str(parse_blocks(text)[1][0]) == "action <<END\n---\n  a\nEND"


def test_check_names_the_line_of_the_fault() -> None:
    (command,) = parse("action <<END\nx = 1\ny = (\nEND")
    with pytest.raises(ScriptError) as caught:
        check(command)
    assert caught.value.line == 3


def test_read_gives_words_their_arguments() -> None:
    word, request = read(Command(4, "goto   12 "))
    assert (word.name, request.argument, request.line, request.word) == ("goto", "12", 4, "goto")


class Trap:
    """Reading its property would change something."""

    touched = 0

    @property
    def value(self) -> int:
        self.touched += 1
        raise RuntimeError

    def method(self) -> None: ...


@pytest.mark.parametrize(
    ("text", "length", "names"),
    [
        ("ret", 3, ["retry", "return"]),
        ("help wh", 2, ["where", "why"]),
        ("frame in", 2, ["inner"]),
        ("p batc", 4, ["batches"]),
        ("p batches[cou", 3, ["count"]),
        ("p name.upp", 3, ["upper"]),
        ("action x = name.isd", 3, ["isdecimal", "isdigit"]),
        ("p nothing.x", 0, []),
        ("p 1 + ", 0, []),
    ],
)
def test_completion(hold: FakeHold, text: str, length: int, names: list[str]) -> None:
    found_length, found = complete(hold, text)
    assert found_length == length
    assert set(names) <= set(found) if names else found == []


def test_completion_reads_no_property(hold: FakeHold, monkeypatch: pytest.MonkeyPatch) -> None:
    trap = Trap()
    monkeypatch.setattr(hold.selected, "locals", lambda: {"trap": trap})
    assert complete(hold, "p trap.v") == (1, ["value"])
    assert complete(hold, "p trap.value.x") == (1, [])
    assert trap.touched == 0


def test_completion_of_files(hold: FakeHold, tmp_path: Path) -> None:
    (tmp_path / "edited.py").touch()
    text = f"surgery {tmp_path}/ed"
    assert complete(hold, text) == (len(f"{tmp_path}/ed"), [f"{tmp_path}/edited.py"])
