"""Rules answer holds when nobody is there: what they match, what they do, and when they stop."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.at_terminal import starting
from tests.attaching import CRASHES, Programs
from tests.running import ROOT, Ended, run

#: Fails a number of times for each batch, then loads it.
LOADS = """
import sys
failures = {'a': 2, 'b': 0, 'c': 2}
tried = []
def load(name):
    tried.append(name)
    if failures[name]:
        failures[name] -= 1
        raise ConnectionResetError(f'connection to {name} lost')
    return name.upper()
def train():
    try:
        for name in 'abc':
            batch = load(name)
            print(batch)
    finally:
        print('left', len(tried))
train()
"""
RETRY = """
[[tool.daifu.on]]
raises = "OSError"
where = "train"
message = "connection .* lost"
do = "retry"
times = 2
wait = 0.01
factor = 2
"""


def journal(folder: Path, **wanted: object) -> list[dict[str, Any]]:
    """The journal's lines that have these values."""
    lines = (folder / "journal.jsonl").read_text().splitlines()
    entries: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [entry for entry in entries if wanted.items() <= entry.items()]


def test_what_fails_for_a_while_is_tried_again(tmp_path: Path) -> None:
    """In a row: the third batch fails as often as the first one, and is tried as often."""
    (tmp_path / "pyproject.toml").write_text(RETRY)
    ended = run(tmp_path, LOADS)
    assert ended.stdout == "A\nB\nC\nleft 7\n", ended.stderr
    assert ended.code == 0
    decided = journal(tmp_path, event="pass", outcome="done")
    assert [entry["rule"] for entry in decided] == ["pyproject.toml#1"] * 4
    assert ended.stderr.count("waits 0.01 s, time 1 of 2 in a row") == 2
    assert ended.stderr.count("waits 0.02 s, time 2 of 2 in a row") == 2


def made(text: str) -> str:
    return f"import daifu_bc\n{text}\n{LOADS}"


@pytest.mark.parametrize(
    ("rule", "stdout"),
    [
        ("daifu_bc.on(OSError, where='train', do='retry', times=2)", "A\nB\nC\nleft 7\n"),
        ("@daifu_bc.on(OSError, where='train')\ndef again(hold): return 'retry'", "A\nB\nC\nleft 7\n"),
        ("@daifu_bc.on('OSError', where=['train'])\ndef again(hold): hold.retry()", "A\nB\nC\nleft 7\n"),
        (
            "@daifu_bc.on()\ndef instead(hold): hold.do(f'return {hold.evaluate(\"name\")!r} * 2')",
            "aa\nB\ncc\nleft 3\n",
        ),
    ],
    ids=["words", "a function that answers", "a verb", "a word that is run"],
)
def test_made_by_the_program(tmp_path: Path, rule: str, stdout: str) -> None:
    ended = run(tmp_path, made(rule))
    assert (ended.code, ended.stdout) == (0, stdout), ended.stderr
    assert len({entry["rule"] for entry in journal(tmp_path) if "rule" in entry}) == 1


def ruled(folder: Path, program: str, *tables: str, playbook: str = "", **environment: str) -> Ended:
    """Run a program with rules in a file of their own."""
    (folder / "rules.toml").write_text("".join(f"[[on]]\n{table}\n" for table in tables))
    return run(folder, program, playbook, "--policy", "rules.toml", **environment)


# -- what they match ---------------------------------------------------------------------------------------------------

MATCHED = """
class Ours(KeyError): pass
class Outer:
    class Inner(Exception): pass
class Silent(ValueError):
    def __str__(self): raise RuntimeError('no text')
def inner(error):
    raise error
class Client:
    def fetch(self, error):
        return inner(error)
def work(error):
    result = Client().fetch(error)
    return result
print(work({error}))
"""


@pytest.mark.parametrize(
    ("error", "matches", "others"),
    [
        (
            "ConnectionResetError()",
            ["OSError", "builtins.ConnectionError", "IOError", "Exception"],
            ["ValueError"],
        ),
        ("Ours(1)", ["Ours", "__main__.Ours", "LookupError"], ["other.Ours", "KeyError.Ours"]),
        ("Outer.Inner()", ["Outer.Inner", "Inner", "__main__.Outer.Inner"], ["Outer"]),
        ("TimeoutError()", ["socket.timeout", "TimeoutError"], ["missing.timeout", "json.JSONDecodeError"]),
    ],
)
def test_classes_by_name(tmp_path: Path, error: str, matches: list[str], others: list[str]) -> None:
    """Those that are known by another name in a loaded module, too; none is loaded for that."""
    program = "import socket, sys\n" + MATCHED.format(error=error) + "print('json' in sys.modules)\n"
    for name in matches:
        ended = ruled(tmp_path, program, f'raises = "{name}"\ndo = "return 5"\nwhere = "work"')
        assert ended.stdout.splitlines()[0] == "5", (name, ended.stderr)
    for name in others:
        ended = ruled(tmp_path, program, f'raises = "{name}"\ndo = "return 5"')
        assert (ended.stdout, ended.code) == ("", 1), name
    ended = ruled(
        tmp_path, program, f'raises = {json.dumps([*others, matches[0]])}\ndo = "return 5"\nwhere = "work"'
    )
    assert ended.stdout.startswith("5\n")


@pytest.mark.parametrize(
    ("where", "function"),
    [
        ("inner", "inner"),
        ("Client.fetch", "Client.fetch"),
        ("program:fetch", "Client.fetch"),
        ("program.py:w*", "work"),
        ("*", "inner"),
        ("other:fetch", ""),
        ("fetch_all", ""),
    ],
)
def test_where_it_is_done(tmp_path: Path, where: str, function: str) -> None:
    """In the innermost function that is named."""
    ended = ruled(tmp_path, MATCHED.format(error="Ours(1)"), f'where = "{where}"\ndo = "return 5"')
    assert ended.stdout == ("5\n" if function else "")
    selected = {
        "inner": "",
        "Client.fetch": "leaving what Client.fetch has called",
        "work": "leaving what work has called",
    }
    if function:
        assert selected[function] in ended.stderr


@pytest.mark.parametrize(
    ("message", "error", "matches"),
    [
        ("lost", "OSError('connection lost')", True),
        ("^lost", "OSError('connection lost')", False),
        (r"\\[Errno 28\\]", "OSError(28, 'No space left')", True),
        ("", "Silent()", False),
    ],
)
def test_what_it_says(tmp_path: Path, message: str, error: str, matches: bool) -> None:
    ended = ruled(tmp_path, MATCHED.format(error=error), f'message = "{message}"\ndo = "return 5"')
    assert (ended.stdout == "5\n") is matches, ended.stderr


def test_the_first_that_decides_wins(tmp_path: Path) -> None:
    """One that is refused, one that fails and one that says nothing are told, and the next one is asked."""
    program = (
        "import daifu_bc\n@daifu_bc.on()\ndef broken(hold): return hold.missing\n@daifu_bc.on()\ndef silent(hold): pass\n"
        "@daifu_bc.on()\ndef wrong(hold): return 5\n@daifu_bc.on()\ndef leaves(hold): raise SystemExit(9)\n"
        "daifu_bc.on(do='return 6')\ndaifu_bc.on(do='return 7')\n"
    )
    refused = 'do = "goto 1"'
    fails = 'where = "work"\ndo = """\nx = 1 / 0\nreturn 4\n"""'
    other = 'raises = "OSError"\ndo = "return 1"'
    ended = ruled(tmp_path, program + MATCHED.format(error="Ours(1)"), refused, fails, other)
    assert ended.stdout == "6\n", ended.stderr
    for text in (
        "daifu rule rules.toml#1: no statement of inner begins on line 1. Lines: ",
        "daifu rule rules.toml#2: the action raised ZeroDivisionError.",
        "daifu rule __main__.broken: it has failed: AttributeError: ",
        "daifu rule __main__.wrong: it has returned no words but int.",
        "daifu rule __main__.leaves: it has failed: SystemExit: 9.",
    ):
        assert text in ended.stderr
    rules = [entry.get("rule") for entry in journal(tmp_path, event="rule")]
    assert rules == ["rules.toml#1", "rules.toml#2", "__main__.broken", "__main__.wrong", "__main__.leaves"]
    decided = journal(tmp_path, event="return", outcome="done")
    assert [entry["rule"] for entry in decided] == ["program.py:10"]


def test_what_no_rule_decides_goes_on(tmp_path: Path) -> None:
    ended = ruled(tmp_path, MATCHED.format(error="Ours(1)"), 'raises = "OSError"\ndo = "retry"')
    assert (ended.stdout, ended.code) == ("", 1)
    assert ended.stderr.startswith("Traceback")
    playbook = "return 8\n"
    ended = ruled(
        tmp_path, MATCHED.format(error="Ours(1)"), 'raises = "OSError"\ndo = "retry"', playbook=playbook
    )
    assert ended.stdout == "8\n"
    ended = ruled(
        tmp_path, MATCHED.format(error="Ours(1)"), 'do = "hold"', 'do = "return 1"', playbook=playbook
    )
    assert ended.stdout == "8\n"


# -- how often ---------------------------------------------------------------------------------------------------------

ITEMS = """
import pickle
def train(items):
    done = []
    for item in items:
        done.append(10 // item)
    return done
print(train([1, 0, 2, 0, 5, 0]))
"""


def test_in_all(tmp_path: Path) -> None:
    ended = ruled(tmp_path, ITEMS, 'do = "skip body"\ntotal = 3')
    assert ended.stdout == "[10, 5, 2]\n"
    ended = ruled(tmp_path, ITEMS, 'do = "skip body"\ntotal = 2', 'do = "return done"')
    assert ended.stdout == "[10, 5, 2]\n"
    assert "rules.toml#1: it has been done 2 times in all; it is not done." in ended.stderr
    ended = ruled(tmp_path, ITEMS, 'do = "skip body"\ntotal = 2')
    assert (ended.stdout, ended.code) == ("", 1)


UNCHANGED = """
import json
calls = []
def call():
    calls.append(1)
    if len(calls) < {least}:
        raise OSError('away')
    return len(calls)
def loop():
    while True:
        n = call()
        print(n)
        return n
loop()
"""


@pytest.mark.parametrize(
    ("table", "calls"),
    [
        ('do = "retry"', 4),
        ('do = "retry"\ntimes = 6', 7),
        ('do = """\nx = 1\nretry\n"""', 4),
        ('do = "skip body"', 4),
        ('do = "restart"', 4),
        ('do = "retry"\ntotal = 2', 3),
    ],
)
def test_never_for_ever(tmp_path: Path, table: str, calls: int) -> None:
    """Where nothing changes it gives up, whatever is done about it."""
    program = UNCHANGED.format(least=1000).replace("loop()\n", "", 0)
    ended = ruled(
        tmp_path,
        f"import atexit\natexit.register(lambda: print('calls', len(calls)))\n{program}",
        f'where = "loop"\n{table}',
    )
    assert ended.stdout == f"calls {calls}\n", ended.stderr
    assert ended.code == 1


def test_the_limit_can_be_set(tmp_path: Path) -> None:
    program = UNCHANGED.format(least=8)
    table = 'where = "loop"\ndo = "retry"'
    assert ruled(tmp_path, program, table).stdout == ""
    assert ruled(tmp_path, program, table, DAIFU_RETRY_LIMIT="10").stdout == "8\n"
    assert ruled(tmp_path, program, table, DAIFU_RETRY_LIMIT="none").stdout == "8\n"


def test_an_action_and_then_again(tmp_path: Path) -> None:
    program = """
def fits(batch):
    if len(batch) > 3: raise MemoryError(len(batch))
    return batch
def step(batch):
    result = fits(batch)
    print(len(result))
step(list(range(20)))
step(list(range(20)))
"""
    halve = 'raises = "MemoryError"\nwhere = "step"\ndo = """\nbatch = batch[:len(batch) // 2]\nretry\n"""'
    ended = ruled(tmp_path, program, f"{halve}\ntimes = 3")
    assert ended.stdout == "2\n2\n", ended.stderr
    # A row goes on as long as what the rule itself has changed is all that has changed.
    ended = ruled(tmp_path, program, f"{halve}\ntimes = 2")
    assert (ended.stdout, ended.code) == ("", 1)


# -- while it waits ----------------------------------------------------------------------------------------------------

WAITING = """
import os, signal, sys, threading, time
def end(number, frame):
    raise SystemExit(7)
def late(number, frame):
    raise TimeoutError('late')
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGALRM, late)
def send(*numbers):
    def wait():
        while not waits():
            time.sleep(0.01)
        for number in numbers:
            time.sleep(0.05)
            os.kill(os.getpid(), number)
    threading.Thread(target=wait).start()
def waits():
    from daifu_bc.recovery import interlude
    return interlude._waiting
def work():
    try:
        return open('/no/such/file')
    except ValueError:
        pass
    finally:
        print('finally')
{send}
print(work())
"""
LONG = 'do = "retry"\nwait = 100'


@pytest.mark.parametrize(
    ("signals", "code"),
    [("signal.SIGTERM", 7), ("signal.SIGINT", -2), ("signal.SIGALRM, signal.SIGTERM", 7)],
)
def test_a_signal_that_ends_the_program(tmp_path: Path, signals: str, code: int) -> None:
    ended = ruled(tmp_path, WAITING.format(send=f"send({signals})"), LONG)
    assert (ended.stdout, ended.code) == ("finally\n", code), ended.stderr
    if "ALRM" in signals:
        assert (
            "The handler of SIGALRM has raised TimeoutError while the run is held; the hold stays."
            in ended.stderr
        )


def test_a_pause_leaves_the_hold_to_who_comes_next(tmp_path: Path) -> None:
    ended = ruled(tmp_path, WAITING.format(send="send(signal.SIGUSR1)"), LONG, playbook="return 5\n")
    assert (ended.stdout, ended.code) == ("finally\n5\n", 0), ended.stderr
    assert "its wait was interrupted, and it leaves the hold" in ended.stderr


def test_a_thread_that_waits(tmp_path: Path) -> None:
    """The others run on, and a pause ends its wait."""
    program = WAITING.format(send="send(signal.SIGUSR1)").replace(
        "print(work())",
        "thread = threading.Thread(target=lambda: print(work()))\nthread.start()\nthread.join()\nprint('on')",
    )
    ended = ruled(tmp_path, program, LONG, playbook="return 5\n")
    assert ended.stdout == "finally\n5\non\n", ended.stderr


def test_a_wait_is_ended_from_another_terminal(programs: Programs) -> None:
    (programs.folder / "rules.toml").write_text(f"[[on]]\n{LONG}\n")
    run = programs.start(CRASHES, "--policy", "rules.toml")
    run.wait_until(re.compile("it waits 100 s"))
    pid = str(run.process.pid)
    assert "not by anybody who can be reached" in programs.daifu("do", pid, "return").stderr
    ended = programs.daifu("pause", pid)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("It is held already: ZeroDivisionError")
    ended = programs.daifu("do", pid, "return")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert run.end()[::2] == ("ends\n", 0)


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("", 'rule 1: do: it is missing. Write do = "retry", say.'),
        (
            'do = "retry"\nwhen = 5',
            "rule 1: when: there is no such key. Known are raises, where, message, do,",
        ),
        ('do = "retyr(1"', "rule 1: do: line 1: this is no Python"),
        (
            'do = "x = 1"',
            "rule 1: do: it comes to no decision. Write `retry`, `skip`, `raise` or the like at its end.",
        ),
        ('do = "skip\\npass"', "rule 1: do: line 2 is never reached: `skip` ends the hold before."),
        ('do = "hold 2"', "rule 1: do: `hold 2` is for a person; `hold` alone leaves the hold to one."),
        ('do = ""', "rule 1: do: there is not a word in it."),
        ("do = 5", "rule 1: do: it is words as at the prompt."),
        ('do = "retry"\nraises = "Not An Error"', "rule 1: raises: 'Not An Error' names no exception."),
        ('do = "retry"\nraises = []', "rule 1: raises: it is a name of an exception, or a list of them."),
        ('do = "retry"\nwhere = "a b"', "rule 1: where: 'a b' names no function"),
        ('do = "retry"\nmessage = "("', "rule 1: message: '(' is no regular expression"),
        ('do = "retry"\ntimes = 0', "rule 1: times: 0 is no number of times. Write a whole number from 1."),
        ('do = "retry"\ntimes = true', "rule 1: times: True is no number of times."),
        (
            'do = "skip"\ntimes = 5',
            "rule 1: times: that is how often in a row the same is tried again, and nothing is.",
        ),
        ('do = "retry"\nwait = -1', "rule 1: wait: -1 is no time. Write a number of seconds."),
        ('do = "retry"\nwait = 1\nfactor = 0.5', "rule 1: factor: 0.5 is no factor. Write a number from 1."),
        ('do = "retry"\nfactor = 2', "rule 1: factor: there is no wait that it could be about."),
        (
            'do = "retry"\nlimit = 5',
            'rule 1: limit: that is for how long people are waited for. Write do = "hold" with it.',
        ),
        ('do = "retry"\n[on.x]', "rule 1: x: there is no such key."),
        ('do = "retry"\n[on', "cannot read the rules in"),
    ],
)
def test_mistakes_are_told_before_the_program_starts(tmp_path: Path, table: str, text: str) -> None:
    ended = ruled(tmp_path, "print('started')", table)
    assert (ended.code, ended.stdout) == (2, "")
    assert "rules.toml" in ended.stderr
    assert text in ended.stderr
    (tmp_path / "pyproject.toml").write_text(f"[[tool.daifu.on]]\n{table.replace('[on', '[tool.daifu.on')}\n")
    ended = run(tmp_path, "print('started')")
    if table.endswith("[on"):  # nothing there counts, as ever
        assert "pyproject.toml cannot be read" in ended.stderr
    else:
        assert (ended.code, ended.stdout) == (2, "")
        assert text in ended.stderr


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (
            'retry-limit = 5\n[[on]]\ndo = "retry"\n',
            "rules.toml: retry-limit: there is nothing but rules in such a file.",
        ),
        ('on = "retry"\n', "rules.toml: on: rules are tables of a list. Write [[on]] above each rule."),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, content: str, text: str) -> None:
    (tmp_path / "rules.toml").write_text(content)
    ended = run(tmp_path, "print('started')", "", "--policy", "rules.toml")
    assert (ended.code, ended.stdout) == (2, "")
    assert text in ended.stderr


def test_a_mistake_in_the_program_is_the_programs(tmp_path: Path) -> None:
    ended = run(
        tmp_path,
        made(
            "try:\n    daifu_bc.on(5, wait='long')(print)\nexcept daifu_bc.DaifuError as error:\n    print(error)"
        ),
    )
    assert "raises: 5 names no exception" in ended.stdout
    assert "wait: 'long' is no time" in ended.stdout


# -- elsewhere ---------------------------------------------------------------------------------------------------------


def test_the_file_of_the_project_is_for_its_children(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(LOADS)
    (tmp_path / "pyproject.toml").write_text(RETRY)
    program = "import subprocess, sys, os\nos.chdir('/')\nsubprocess.run([sys.executable, sys.argv[0].replace('program', 'child')])\n"
    (tmp_path / "sitecustomize.py").write_text(f"exec(open({str(ROOT / 'daifu_bc.pth')!r}).read())\n")
    paths = os.pathsep.join((str(ROOT), str(tmp_path)))
    ended = run(tmp_path, program, script=str(tmp_path / "program.py"), PYTHONPATH=paths)
    assert ended.stdout == "A\nB\nC\nleft 7\n", ended.stderr


def test_the_option_takes_the_place_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(RETRY)
    ended = ruled(tmp_path, LOADS, 'where = "train"\ndo = "skip body"')
    assert ended.stdout == "B\nleft 3\n"


def test_made_again_it_takes_its_own_place(tmp_path: Path) -> None:
    """A notebook's cell runs more than once."""
    program = (
        "for text in ('first', 'second'):\n"
        '    exec(f\'import daifu_bc\\n@daifu_bc.on(where=["train"])\\ndef rule(hold): return "return {text!r}"\')\n'
    )
    ended = run(
        tmp_path,
        f"{program}{LOADS.replace('train()', 'print(train())')}".replace("def print(train())", "def train()"),
    )
    assert ended.stdout == "left 1\nsecond\n", ended.stderr


def test_a_pause_is_for_people(tmp_path: Path) -> None:
    program = """
import os, signal
def f():
    os.kill(os.getpid(), signal.SIGUSR1)
    x = 1
    return x
print(f())
"""
    ended = ruled(tmp_path, program, 'raises = "BaseException"\ndo = "return 9"', playbook="return 5\n")
    assert ended.stdout == "5\n", ended.stderr
    ended = ruled(tmp_path, program, 'raises = "BaseException"\ndo = "return 9"')
    assert ended.code == -10  # nobody would look: the signal does what it always does


def test_a_last_will_before_it_goes_on(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.daifu]\nlast-will = \"print('saved', name)\"\n")
    ended = run(tmp_path, f"import daifu_bc\ndaifu_bc.on(where='train', do='last-will')\n{LOADS}")
    assert (ended.stdout, ended.code) == ("left 1\n", 1)
    assert "saved a" in ended.stderr
    assert journal(tmp_path, event="last will", outcome="done")[0]["rule"] == "program.py:2"
    (tmp_path / "pyproject.toml").unlink()
    ended = run(tmp_path, f"import daifu_bc\ndaifu_bc.on(where='train', do='last-will')\n{LOADS}")
    assert (ended.stdout, ended.code) == ("left 1\n", 1)
    assert "the last will failed: there is none" in ended.stderr


def test_what_runs_anew_gives_other_values(tmp_path: Path) -> None:
    """Not for ever, either: what comes before the statement is no success."""
    program = UNCHANGED.format(least=1000).replace(
        "n = call()", "begun = time.monotonic()\n        n = call()"
    )
    for do in ("restart", "goto 12"):
        ended = ruled(tmp_path, f"import time\n{program}", f'where = "loop"\ndo = "{do}"\ntimes = 2')
        assert (ended.stdout, ended.code) == ("", 1)
        assert (
            "daifu rule rules.toml#1: it has been done 2 times in a row, and has not helped; it is not done."
            in ended.stderr
        )


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_ctrl_c_in_a_wait_leads_to_the_prompt(tmp_path: Path) -> None:
    with starting(tmp_path, "dumb") as start:
        (tmp_path / "rules.toml").write_text(f"[[on]]\n{LONG}\n")
        child = start("open('/no/such/file')\n", "--policy", "rules.toml")
        child.expect("it waits 100 s, time 1 in a row")
        child.sendintr()
        child.expect("its wait was interrupted, and it leaves the hold")
        child.expect("daifu> ")
        child.sendline("skip")
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus == 0


def test_people_are_waited_for_as_long_as_a_rule_says(programs: Programs) -> None:
    (programs.folder / "rules.toml").write_text('[[on]]\ndo = "hold"\nlimit = 4000\n')
    run = programs.start(CRASHES, "--policy", "rules.toml")
    client = programs.client(run.held())
    assert 3600 < client.call("status")["result"]["seconds_left"] <= 4000
    assert client.call("do", words="return")["result"]["decided"] is True
    assert run.end()[::2] == ("ends\n", 0)
    (programs.folder / "rules.toml").write_text('[[on]]\ndo = "hold"\nlimit = 0.2\n')
    run = programs.start(CRASHES, "--policy", "rules.toml")
    out, err, code = run.end()
    assert (out, code) == ("", 1)
    assert "nobody has come for 0.2 s" in err


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("do", ["words", "a function"])
def test_ctrl_c_in_what_it_does_leads_to_the_prompt(tmp_path: Path, do: str) -> None:
    """And not to the next rule."""
    forever = "print('be' + 'gun', file=sys.__stderr__)\nwhile True: pass"
    if do == "words":
        rule = f"daifu_bc.on(do='''action <<END\n{forever}\nEND\nskip''')\n"
    else:
        rule = f"@daifu_bc.on()\ndef rule(hold):\n    {forever.replace(chr(10), chr(10) + '    ')}\n"
    with starting(tmp_path, "dumb") as start:
        program = f"import daifu_bc, sys\n{rule}daifu_bc.on(do='skip')\nopen('/no/such/file')\n"
        child = start(program)
        child.expect("begun")
        child.sendintr()
        child.expect("it was interrupted, and it leaves the hold")
        child.expect("daifu> ")
        child.sendline("exit 3")
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus == 3


def test_a_signal_in_what_it_does_ends_the_program(tmp_path: Path) -> None:
    """Whether it decides or not; nobody is there who could be asked."""
    for do in ("return 5", "x = 1 / 0\nreturn 5"):
        program = WAITING.format(
            send=f"import daifu_bc\ndaifu_bc.on(do='''os.kill(os.getpid(), signal.SIGTERM)\n{do}''')"
        )
        ended = run(tmp_path, program)
        assert (ended.stdout, ended.code) == ("finally\n", 7), ended.stderr


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("terminal", ["dumb", "comfortable"])
def test_the_person_is_waited_for_as_long_as_a_rule_says(tmp_path: Path, terminal: str) -> None:
    (tmp_path / "rules.toml").write_text('[[on]]\ndo = "hold"\nlimit = 0.5\n')
    with starting(tmp_path, terminal) as start:
        child = start("open('/no/such/file')\n", "--policy", "rules.toml")
        child.expect("daifu>")
        child.expect(r"daifu_bc: hold 1: nobody has come for 0.5 s; FileNotFoundError goes on\.")
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus == 1


FAILS = """
import asyncio, multiprocessing, sys, threading
import daifu_bc
daifu_bc.on(OSError, where="{where}", do="retry", times=2, wait=0.001)
class Failing:
    def __init__(self): self.left = 2
    def get(self):
        if self.left:
            self.left -= 1
            raise OSError('away')
        return 'got'
"""
FORMS = {
    "a coroutine": """
async def get(source):
    await asyncio.sleep(0)
    return source.get()
async def work(source):
    value = await get(source)
    return value
async def main():
    return await asyncio.gather(work(Failing()), work(Failing()))
print(asyncio.run(main()))
""",
    "a generator": """
def work():
    for source in (Failing(), Failing()):
        value = source.get()
        yield value
print(list(work()))
""",
    "a module": """
found = []
for source in (Failing(), Failing()):
    found.append(source.get())
print(found)
""",
    "threads": """
found = []
def work():
    value = source().get()
    found.append(value)
sources = [Failing() for _ in range(6)]
def source():
    return own.source
own = threading.local()
def begin(number):
    own.source = sources[number]
    work()
threads = [threading.Thread(target=begin, args=(number,)) for number in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(found[4:])
""",
    "a forked process": """
def work(found):
    source = Failing()
    value = source.get()
    found.put(value)
context = multiprocessing.get_context('fork')
queue = context.Queue()
processes = [context.Process(target=work, args=(queue,)) for _ in range(2)]
for process in processes: process.start()
print([queue.get(timeout=20) for process in processes])
for process in processes: process.join()
""",
}


@pytest.mark.parametrize("form", FORMS)
def test_in_all_kinds_of_frames(tmp_path: Path, form: str) -> None:
    where = "<module>" if form == "a module" else "work"
    ended = run(tmp_path, FAILS.format(where=where) + FORMS[form])
    assert ended.stdout == "['got', 'got']\n", ended.stderr
    assert ended.code == 0
    again = 12 if form == "threads" else 4
    assert len(journal(tmp_path, outcome="done", rule="program.py:4")) == again


KEPT = """
import gc, weakref
import daifu_bc
gc.disable()
class Big: pass
class Fails(OSError): pass
kept, left = [], [2]
def get(big):
    if left:
        left.pop()
        error = Fails('away')
        kept.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error
    return 1
def work():
    big = Big()
    kept.append(weakref.ref(big))
    value = get(big)
    return value
@daifu_bc.on(KeyError)
def rule(hold):
    return f'return {len(hold.frames)}'
def other():
    big = Big()
    kept.append(weakref.ref(big))
    return {}['x']
daifu_bc.on(Fails, where='work', do='retry', times=3)
print(work(), other(), [reference() for reference in kept])
"""


def test_nothing_is_kept_alive(tmp_path: Path) -> None:
    ended = run(tmp_path, KEPT)
    assert ended.stdout == "1 2 [None, None, None]\n", ended.stderr


def test_with_the_stack_full(tmp_path: Path) -> None:
    program = "import daifu_bc\ndaifu_bc.on(RecursionError, do='return 0')\ndef f(n):\n    return f(n + 1) + 1\nprint(f(0) > 100)\n"
    assert run(tmp_path, program).stdout == "True\n"


def test_a_row_is_of_one_call(tmp_path: Path) -> None:
    """Each call and each round of a loop may fail as often, though the objects of the one before come again."""
    program = """
import daifu_bc
daifu_bc.on(OSError, where="work", do="retry", times=2)
left = []
def get(batch):
    if left:
        left.pop()
        raise OSError('away')
    return sum(batch)
def work():
    left.extend((1, 1))
    batch = list(range(3))
    total = get(batch)
    for batch in ([number] for number in range(3)):
        left.extend((1, 1))
        total = get(batch) + total
    return total
print([work() for _ in range(9)])
"""
    ended = run(tmp_path, program)
    assert ended.stdout == f"{[6] * 9}\n", ended.stderr[-2000:]


def test_what_a_statement_has_begun_is_no_success(tmp_path: Path) -> None:
    program = """
import daifu_bc
daifu_bc.on(OSError, where="work", do="retry", times=3)
def source():
    yield 1
    raise OSError('away')
def work():
    found = []
    found.extend(source())
work()
"""
    ended = run(tmp_path, program)
    assert ended.code == 1
    assert (
        "daifu rule program.py:3: it has been done 3 times in a row, and has not helped; it is not done."
        in ended.stderr
    )
