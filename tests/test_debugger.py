"""A hold is shown in a debugger; a small client talks to it through debugpy's own adapter."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.dap_client import Refused
from tests.debugged import debugged, started, under_debugpy

CRASHES = """\
import sys

FACTOR = 10

def divide(state, n):
    total = n
    out = [total]
    c = "a variable"
    for k in range(3):
        total = FACTOR // len(state)
        out.append(total)
        n += 1
    return out, n

def outer():
    state = []
    limit = 1
    def inner():
        return limit
    got = divide(state, 5)
    print("got", got, state, inner(), FACTOR, flush=True)
    return got

outer()
print("end", flush=True)
"""
CRASHED, AFTER, LOOP_END, CALLED = 10, 11, 12, 20
STACK = [("divide", CRASHED), ("outer", CALLED), ("<module>", 24)]


def test_shows_the_crashed_line_and_sets_what_the_frames_have(tmp_path: Path) -> None:
    with debugged(tmp_path, CRASHES) as run:
        client = run.attach()
        body = client.event("stopped")
        thread = body["threadId"]
        assert (body["reason"], body["text"]) == ("exception", "ZeroDivisionError")
        assert "by zero" in body["description"]
        assert client.places(thread) == STACK
        held, caller, module = client.stack(thread)
        assert held["source"]["path"] == run.path
        assert client.variables(held) == {
            "c": "'a variable'",
            "k": "0",
            "n": "5",
            "out": "[5]",
            "state": "[]",
            "total": "5",
        }
        info = client.ask("exceptionInfo", threadId=thread)
        assert (info["exceptionId"], info["description"]) == ("ZeroDivisionError", body["description"])
        assert "total = FACTOR // len(state)" in info["details"]["stackTrace"]
        assert "daifu_bc" not in info["details"]["stackTrace"]
        # A local of the running frame, a cell of the one around, a global.
        client.set(held, "state", "[1, 2]")
        client.set(held, "n", "40")
        client.set(caller, "limit", "7")
        client.set(module, "FACTOR", "20")
        assert client.console("n + 1", held) == "41"
        client.ask("continue", threadId=thread)
        client.event("terminated")
        out, err, code = run.end()
    assert (out, code) == ("got ([5, 10, 10, 10], 43) [] 7 20\nend\n", 0), err


def test_runs_words_in_the_console_and_says_what_it_refuses(tmp_path: Path) -> None:
    with debugged(tmp_path, CRASHES) as run:
        client = run.attach()
        thread = client.stopped()
        held = client.stack(thread)[0]
        with pytest.raises(Refused, match="no statement of divide begins on line 2"):
            client.console("goto 2", held)
        # `c` is a variable here, and no short form of `pass`.
        assert client.console("c", held) == "'a variable'"
        assert client.console("p len(out)", held) == "1"
        client.console("n = 8", held)
        assert client.console("n", held) == "8"
        with pytest.raises(Refused, match="by zero"):
            client.console("1 // 0", held)
        # The retry fails again, and is held again.
        client.console("daifu.pass_()", held)
        assert client.stopped() == thread
        assert client.places(thread) == STACK
        caller = client.stack(thread)[1]
        assert "outer returns str" in client.console(
            "daifu.return_('state')".replace("'state'", "str(8)"), caller
        )
        client.event("terminated")
        out, err, code = run.end()
    assert (out, code) == ("end\n", 0), err


def test_jumps_to_the_lines_that_can_be_reached(tmp_path: Path) -> None:
    with debugged(tmp_path, CRASHES) as run:
        client = run.attach()
        thread = client.stopped()
        source = {"path": run.path}
        with pytest.raises(Refused, match="no statement of divide begins on line 20"):
            client.ask("gotoTargets", source=source, line=CALLED)
        (target,) = client.ask("gotoTargets", source=source, line=AFTER)["targets"]
        assert target["line"] == AFTER
        client.ask("goto", threadId=thread, targetId=target["id"])
        assert client.stopped("goto") == thread
        assert client.places(thread)[0] == ("divide", AFTER)
        held = client.stack(thread)[0]
        assert client.variables(held)["out"] == "[5]"
        client.set(held, "state", "[0] * 5")
        client.ask("continue", threadId=thread)
        client.event("terminated")
        out, err, code = run.end()
    assert (out, code) == ("got ([5, 5, 2, 2], 8) [] 1 10\nend\n", 0), err


def test_surgery_takes_the_saved_file_and_breakpoints_work_in_the_new_body(tmp_path: Path) -> None:
    with debugged(tmp_path, CRASHES) as run:
        client = run.attach()
        thread = client.stopped()
        edited = CRASHES.replace("len(state)", "(len(state) or 5)").replace("    n += 1", "    n += 2")
        Path(run.path).write_text(edited)
        client.breakpoints(run.path, LOOP_END)
        answer = client.console("surgery", client.stack(thread)[0])
        assert "replaced divide" in answer
        assert client.stopped("goto") == thread
        assert client.places(thread) == STACK
        client.ask("continue", threadId=thread)
        for round_ in range(3):
            assert client.stopped("breakpoint") == thread
            assert client.places(thread) == [("divide", LOOP_END), *STACK[1:]]
            assert client.variables(client.stack(thread)[0])["n"] == str(5 + 2 * round_)
            client.ask("continue", threadId=thread)
        client.event("terminated")
        out, err, code = run.end()
    assert (out, code) == ("got ([5, 2, 2, 2], 11) [] 1 10\nend\n", 0), err


def test_steps_from_a_hold_into_the_continuation_and_out_of_it(tmp_path: Path) -> None:
    with debugged(tmp_path, CRASHES) as run:
        client = run.attach()
        thread = client.stopped()
        client.set(client.stack(thread)[0], "state", "[1]")
        for line in (AFTER, LOOP_END, 9, CRASHED):
            client.ask("next", threadId=thread)
            assert client.stopped("step") == thread
            assert client.places(thread) == [("divide", line), *STACK[1:]]
        client.ask("stepOut", threadId=thread)
        client.stopped("step")
        assert client.places(thread) == STACK[1:]
        client.ask("continue", threadId=thread)
        client.event("terminated")
        out, err, code = run.end()
    assert (out, code) == ("got ([5, 10, 10, 10], 8) [] 1 10\nend\n", 0), err


AT_THE_END = (
    CRASHES
    + """
import threading, time
deadline = time.monotonic() + 20
while sys.gettrace() and time.monotonic() < deadline:
    pass
hooks = []
thread = threading.Thread(target=lambda: hooks.append(sys.gettrace()))
thread.start()
thread.join()
print(sys.gettrace(), hooks)
if hasattr(sys, "monitoring"):
    print(sys.monitoring.get_tool(0))
    sys.monitoring.use_tool_id(0, "test")
    print(sys.monitoring.get_events(0), [sys.monitoring.get_local_events(0, f.__code__) for f in (divide, outer)])
"""
)


def test_disconnecting_leaves_the_hold_and_then_nothing_is_watched(tmp_path: Path) -> None:
    with debugged(tmp_path, AT_THE_END) as run:
        client = run.attach((AFTER, CALLED))
        client.set(client.stack(client.stopped())[0], "state", "[1]")
        client.ask("disconnect")
        client.close()
        client = run.attach((AFTER,))
        thread = client.stopped()
        assert client.places(thread) == STACK
        assert client.variables(client.stack(thread)[0])["state"] == "[1]"
        client.ask("continue", threadId=thread)
        client.stopped("breakpoint")
        # Gone without a word, while a thread stands at a breakpoint.
        client.close()
        out, err, code = run.end()
    watched = "None\n0 [0, 0]\n" if hasattr(sys, "monitoring") else ""
    assert (out, code) == ("got ([5, 10, 10, 10], 8) [] 1 10\nend\n" + f"None [None]\n{watched}", 0), err


def test_an_uncaught_exception_stops_once(tmp_path: Path) -> None:
    with debugged(tmp_path, CRASHES, "--no-attach") as run:  # nobody but a debugger can come
        client = run.attach(filters=("uncaught",))
        thread = client.stopped()
        client.console("raise", client.stack(thread)[0])
        client.event("terminated")
        _, err, code = run.end()
    assert [one["event"] for one in client.seen].count("stopped") == 1
    assert code == 1
    assert err.count("Traceback (most recent call last)") == 1
    assert "daifu_bc/" not in err


def test_answers_what_an_extension_asks(tmp_path: Path) -> None:
    with debugged(tmp_path, CRASHES) as run:
        client = run.attach()
        client.stopped()
        status = client.ask("daifuStatus")
        assert (status["held"], status["hold"], status["error"]["type"]) == (True, 1, "ZeroDivisionError")
        text = "total = FACTOR // len(state)"
        assert status["next"] == {"path": run.path, "line": CRASHED, "text": text, "new": False}
        assert "skip" in {word["name"] for word in status["words"]}
        answer = client.ask("evaluate", expression="goto 2", context="daifu")
        assert "no statement of divide begins on line 2" in answer["result"]
        assert answer["daifu"]["failed"]
        assert not answer["daifu"]["decided"]
        assert client.event("daifuHeld") == status
        assert client.ask("daifuDo", words="state.append(3)")["failed"] == ""
        done = client.ask("daifuDo", words="skip")
        assert (done["decided"], done["failed"]) == (True, "")
        assert client.event("daifuResumed") == {"hold": 1, "word": "skip"}
        client.event("terminated")
        out, err, code = run.end()
    assert (out, code) == ("got ([5, 5, 10, 10], 8) [3] 1 10\nend\n", 0), err


def test_a_program_that_was_started_under_debugpy_is_held_there(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(CRASHES)
    command = under_debugpy("-m", "daifu_bc", "run", "program.py")
    with started(tmp_path, command, PYDEVD_DISABLE_FILE_VALIDATION="1") as run:
        client = run.attach((CALLED,), ("uncaught",))
        thread = client.stopped("breakpoint")
        client.ask("continue", threadId=thread)
        assert client.stopped() == thread
        assert client.places(thread) == STACK
        client.console("skip loop", client.stack(thread)[0])
        client.event("terminated")
        out, err, code = run.end()
    assert (out, code) == ("got ([5], 5) [] 1 10\nend\n", 0), err


#: No editor sends them.
NONSENSE: list[tuple[str, dict[str, object]]] = [
    ("goto", {"threadId": 1, "targetId": "one"}),
    ("gotoTargets", {"source": {"path": 5}, "line": "one"}),
    ("gotoTargets", {"source": {}, "line": None}),
    ("daifuDo", {"words": "where", "frameId": []}),
    ("evaluate", {"expression": "where", "context": "daifu", "frameId": {}}),
]


def test_requests_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with debugged(tmp_path, CRASHES) as run:
        client = run.attach()
        thread = client.stopped()
        for command, arguments in NONSENSE:
            with pytest.raises(Refused):
                client.ask(command, **arguments)
        # The session goes on, and so does the hold.
        assert client.places(thread) == STACK
        client.set(client.stack(thread)[0], "state", "[1]")
        client.ask("continue", threadId=thread)
        client.event("terminated")
        assert run.end()[2] == 0
