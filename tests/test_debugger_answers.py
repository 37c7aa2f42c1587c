"""What a debugger's client asks just as a hold ends is answered, and the client hears that it has ended."""

from __future__ import annotations

from pathlib import Path

from tests.debugged import debugged

#: It runs on after the hold, so that its end does not answer what was asked.
HALVES = """
import os, time

def halve(number):
    return number // two

print(halve(14))
while not os.path.exists("go"):
    time.sleep(0.05)
"""


def test_what_is_asked_while_a_word_decides_is_answered(tmp_path: Path) -> None:
    with debugged(tmp_path, HALVES) as run:
        client = run.attach()
        frame = client.stack(client.stopped())[0]
        locals_of = client.scope(frame)
        # The held thread is busy while the other two come, and then it goes on.
        words = "action global two; two = 2; time.sleep(0.5)\npass"
        decided = client.send("evaluate", expression=words, context="daifu")
        again = client.send("evaluate", expression="pass", context="daifu")
        looked = client.send("variables", variablesReference=locals_of)
        assert client.answer(decided)["body"]["daifu"]["decided"] is True
        assert client.answer(again)["message"] == "the hold is over"
        assert client.answer(looked)["command"] == "variables"
        assert client.event("daifuResumed")["word"] == "pass"
        (tmp_path / "go").touch()
        assert run.end()[::2] == ("7\n", 0)
