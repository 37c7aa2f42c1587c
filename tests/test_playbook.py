from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from daifu_bc import frontends
from daifu_bc.errors import UsageError
from daifu_bc.frontends.playbook import PlaybookError, from_file, load, parse_playbook
from daifu_bc.recovery import policy
from daifu_bc.recovery.interface import HoldLike
from tests.fake_hold import FakeHold, make


@pytest.fixture
def err(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "__stderr__", stream)
    return stream


@pytest.fixture(autouse=True)
def fresh_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "_factories", {})
    monkeypatch.setattr(policy, "_playbook", None)
    monkeypatch.setattr(policy, "_playbook_file", None)
    frontends.register()


def acted(hold: FakeHold) -> list[object]:
    return [call[1] for call in hold.calls if call[0] == "act"]


def test_one_block_for_each_hold(err: io.StringIO) -> None:
    playbook = parse_playbook(
        "# the first\nx = 1\npass\n---\naction <<END\nfor i in []:\n  pass\nEND\nskip\n"
    )
    first, second, third = make(), make(), make()
    playbook.responder(first)
    assert acted(first) == ["x = 1"]
    assert first.decision == ("retry",)
    playbook.responder(second)
    assert acted(second) == ["for i in []:\n  pass\n"]
    assert second.decision == ("skip",)
    assert "has no block" not in err.getvalue()
    playbook.responder(third)
    assert third.decision == ("let_go", None, False)
    assert "The playbook <playbook> has no block for this hold (2 in all)." in err.getvalue()


def test_words_and_answers_are_echoed(err: io.StringIO) -> None:
    parse_playbook("p count\naction <<END\nprint('a')\nEND\nreturn 1").responder(make())
    lines = err.getvalue().splitlines()
    start = lines.index("daifu> p count")
    assert lines[start : start + 5] == [
        "daifu> p count",
        "0",
        "daifu> action <<END",
        "...    print('a')",
        "...    END",
    ]
    assert lines[start + 5] == "a"
    assert lines[-2:] == ["daifu> return 1", "(give, 1)"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\np nothing\npass", "<playbook>:2: nothing raised NameError. The exception goes on."),
        ("\n\n1 / 0\npass", "<playbook>:3: the action raised ZeroDivisionError. The exception goes on."),
        ("x = 1\nup 7\npass", "<playbook>:2: this is the outermost frame. The exception goes on."),
        ("x = 1\np count", "<playbook>:2: the block ends without a decision. The exception goes on."),
    ],
)
def test_a_block_that_fails_lets_the_exception_go_on(err: io.StringIO, text: str, message: str) -> None:
    hold = make()
    parse_playbook(text).responder(hold)
    assert hold.decision == ("let_go", None, False)
    assert message in err.getvalue().splitlines()


def test_a_verb_that_is_refused(err: io.StringIO) -> None:
    hold = make()
    real_let_go = hold.let_go

    def let_go(expression: str | None = None, always: bool = False) -> str:
        hold.refuse = ""
        return real_let_go(expression, always)

    hold.let_go = let_go  # type: ignore[method-assign]
    hold.refuse = "line 3 is in another block. Choose another line."
    parse_playbook("goto 3").responder(hold)
    assert hold.calls == [("goto", 3), ("let_go", None, False)]
    message = "<playbook>:1: line 3 is in another block. Choose another line. The exception goes on."
    assert message in err.getvalue()


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("goto here", ["f:1: `goto` needs the number of a line, not 'here'"]),
        ("pass\n---\nx = (", ["f:3: this is no Python ('(' was never closed): x = ("]),
        ("action <<END\nx = 1\n  y = 2\nEND\npass", ["f:3: this is no Python (unexpected indent): y = 2"]),
        ("pass\naction <<END\nx = 1", ["f:2: the here-document has no closing line END"]),
        ("pass\n# then\nskip", ["f:3: this is never reached, `pass` in line 1 ends the hold"]),
        ("repeat -1\npass", ["f:1: `repeat` takes how many holds the block answers, not '-1'; alone, it"]),
        ("repeat five\npass", ["f:1: `repeat` takes how many holds the block answers, not 'five'"]),
        ("pass\n---\nrepeat 1.5\npass", ["f:3: `repeat` takes how many holds the block answers, not '1.5'"]),
        ("pass\n---\n---\nskip", ["f:1: the block after this line is empty"]),
        ("goto\n---\nexit 999\n", ["f:1: `goto` needs", "f:3: `exit` needs an exit code"]),
        (
            "for x in y:\n    print(x)\n",
            [
                "f:1: this is no Python",
            ],
        ),
    ],
)
def test_mistakes_are_told_at_once_with_their_lines(text: str, mistakes: list[str]) -> None:
    with pytest.raises(PlaybookError) as caught:
        parse_playbook(text, "f")
    lines = str(caught.value).splitlines()
    assert len(lines) == len(mistakes)
    for line, mistake in zip(lines, mistakes, strict=True):
        assert line.startswith(mistake)


def test_python_that_begins_like_repeat_is_python() -> None:
    for text in ("repeat = -1", "repeat(5)", "repeat - 1", "repeat [1]"):
        (block,) = parse_playbook(f"{text}\npass").blocks
        assert [command.text for command in block] == [text, "pass"]


def test_separators_at_the_ends_make_no_blocks() -> None:
    playbook = parse_playbook("# what this is for\n---\npass\n---\n")
    assert [[command.text for command in block] for block in playbook.blocks] == [["pass"]]
    assert parse_playbook("").blocks == []


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "book"
    file.write_bytes("\ufeffaction x = 'é'\r\npass\r\n".encode())
    assert [command.text for command in load(str(file)).blocks[0]] == ["action x = 'é'", "pass"]
    with pytest.raises(PlaybookError, match="cannot read the playbook .*none: No such file"):
        from_file(str(tmp_path / "none"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PlaybookError, match="cannot read"):
        load(str(tmp_path / "binary"))


# --------------------------------------------------------------------- policy


def test_the_environment_names_the_playbook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, err: io.StringIO
) -> None:
    file = tmp_path / "book"
    file.write_text("return 1\n---\nreturn 2\n")
    monkeypatch.setenv("DAIFU_PLAYBOOK", str(file))
    policy.prepare()
    file.unlink()
    decisions = []
    for _ in range(3):
        hold = make()
        assert policy.somebody_answers()
        policy.respond(hold)
        decisions.append(hold.decision)
    assert decisions == [("give", "1"), ("give", "2"), ("let_go", None, False)]


def test_a_playbook_with_a_mistake_is_known_before_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, err: io.StringIO
) -> None:
    file = tmp_path / "book"
    file.write_text("pass\ngoto x\n")
    monkeypatch.setenv("DAIFU_PLAYBOOK", str(file))
    with pytest.raises(PlaybookError, match="book:2: "):
        policy.prepare()
    hold = make()
    policy.respond(hold)
    assert hold.decision == ("let_go", None, False)
    assert "book:2: " in err.getvalue()


def test_nobody_answers_a_batch_job(err: io.StringIO) -> None:
    assert not policy.somebody_answers()
    hold = make()
    policy.respond(hold)
    assert hold.calls == [("let_go", None, False)]
    assert err.getvalue() == ""


def test_the_program_sets_the_playbook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, err: io.StringIO
) -> None:
    file = tmp_path / "book"
    file.write_text("return 'from the file'\n")
    monkeypatch.setenv("DAIFU_PLAYBOOK", str(file))
    policy.set_playbook(parse_playbook("skip").responder)
    hold = make()
    policy.respond(hold)
    assert hold.decision == ("skip",)
    policy.set_playbook(None)
    hold = make()
    policy.respond(hold)
    assert hold.decision == ("give", "'from the file'")


def test_a_responder_that_fails_lets_the_exception_go_on(err: io.StringIO) -> None:
    def fail(hold: object) -> None:
        raise RuntimeError("broken")

    policy.set_playbook(fail)
    hold = make()
    policy.respond(hold)
    assert hold.decision == ("let_go", None, False)
    assert "the hold could not be answered (RuntimeError: broken). The exception goes on." in err.getvalue()


def test_the_terminal_is_named_not_imported() -> None:
    factory = policy._factories["terminal"]
    assert factory == "daifu_bc.frontends.terminal:responder"


def test_words_are_run_through_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert policy.run_words(make(), "p count + 1") == "1"
    monkeypatch.setattr(policy, "_interpreter", None)
    with pytest.raises(UsageError, match="Import daifu_bc first"):
        policy.run_words(make(), "pass")


def test_a_terminal_is_asked_if_there_is_no_playbook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "at_terminal", lambda: True)

    def person(hold: HoldLike) -> None:
        hold.give("7")

    policy.set_responder_factory("terminal", lambda: person)
    assert policy.somebody_answers()
    hold = make()
    policy.respond(hold)
    assert hold.decision == ("give", "7")


def test_closed_streams_are_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "__stdin__", closed)
    assert not policy.at_terminal()
    monkeypatch.setattr(sys, "__stdin__", None)
    assert not policy.at_terminal()
