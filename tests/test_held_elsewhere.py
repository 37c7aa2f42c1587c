"""A function is replaced while another thread is held in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.playing import play

#: The thread named "second" crashes first, and is asked when the main one has done all that it was told.
PROGRAM = r"""
import threading
import daifu_bc
from daifu_bc.recovery import policy
held, told = threading.Event(), threading.Event()
def answer(hold):
    if hold.thread_name == "second":
        held.set()
        told.wait(20)
        for word in {second!r}: print(f"{{hold.do(word)}}\n", end="", flush=True)
    else:
        held.wait(20)
        for word in {first!r}: hold.do(word)
        told.set()
        hold.do("return")
policy.set_playbook(answer)
def work(state):
    part = "a"
    try:
        part += "b" * (6 // len(state))
    finally:
        part += "c"
    return part
def run(name, before):
    before()
    print(f"{{name}} {{work([])}}\n", end="", flush=True)
thread = threading.Thread(target=run, args=("second", int), name="second")
thread.start()
main = threading.Thread(target=run, args=("main", held.wait), name="main")
main.start()
main.join()
thread.join()
"""

CHANGED = """surgery work <<END
def work(state):
    part = "a"
    try:
        part += "b" * (6 // (len(state) or 2))
    finally:
        part += "c"
    return part
END
"""
INSERTED = CHANGED.replace("(len(state) or 2)", "len(state)").replace(
    '        part += "b"', '        state = state or [1, 2, 3]\n        part += "b"'
)
PARAMETER = CHANGED.replace("(state):", "(state, least=6):").replace(
    "(len(state) or 2)", "max(len(state), least)"
)
TWICE = CHANGED.replace("or 2", "or 6")
GENERATOR = "\n".join(CHANGED.replace("    return part", "    yield part").splitlines()[1:-1])
IN_A_THREAD = "action other = threading.Thread({}); other.start(); other.join()"


@pytest.mark.parametrize(
    ("first", "second", "printed"),
    [
        ([CHANGED], ["pass"], "abbbc"),
        ([INSERTED], ["pass"], "abbc"),
        ([PARAMETER], ["pass"], "abc"),
        ([CHANGED, TWICE], ["pass"], "abc"),
        # A word of its own has its own text.
        ([CHANGED], [TWICE, "pass"], "abc"),
        ([CHANGED], ["goto 20"], "abbbc"),
        ([CHANGED], ["return 'own'"], "own"),
    ],
    ids=["changed", "inserted", "parameter", "twice", "its own too", "goto", "return"],
)
def test_it_goes_on_in_the_new_text(
    tmp_path: Path, first: list[str], second: list[str], printed: str
) -> None:
    ended = play(tmp_path, PROGRAM.format(first=first, second=second), None)
    assert f"second {printed}" in ended.stdout.splitlines(), ended.stdout + ended.stderr


@pytest.mark.parametrize("word", ["pass", "p 1"])
def test_the_report_says_so(tmp_path: Path, word: str) -> None:
    ended = play(tmp_path, PROGRAM.format(first=[CHANGED], second=["action part = 'A'", word, "pass"]), None)
    assert "`pass` goes on at line 20 of the new code: part += " in ended.stdout
    assert "second Abbbc" in ended.stdout.splitlines()


def test_what_was_taken_back_is_not_gone_on_in(tmp_path: Path) -> None:
    """Neither elsewhere, before or after it was seen, nor here."""
    for first, second in (
        ([CHANGED, "undo"], ["len(state)"]),
        ([CHANGED], ["action part = 'A'", "undo"]),
        ([CHANGED], ["action part = 'A'", IN_A_THREAD.format("target=daifu_bc.undo"), "action part = 'A'"]),
    ):
        ended = play(
            tmp_path, PROGRAM.format(first=first, second=[*second, "action state.append(1)", "pass"]), None
        )
        assert "\ngoing on at line 20: part += " in f"\n{ended.stdout}", ended.stdout + ended.stderr
        assert "second abbbbbbc" in ended.stdout.lower().splitlines()


def test_what_cannot_be_gone_on_in_is_said(tmp_path: Path) -> None:
    ended = play(
        tmp_path,
        PROGRAM.format(
            first=[IN_A_THREAD.format(f"target=daifu_bc.surgery, args=(work, {GENERATOR!r})")],
            second=["action state.append(1)", "pass"],
        ),
        None,
    )
    said = "(work was replaced, and goes on here as it was: work has become a function of another kind"
    assert said in ended.stdout, ended.stdout + ended.stderr
    assert "second abbbbbbc" in ended.stdout.splitlines()
