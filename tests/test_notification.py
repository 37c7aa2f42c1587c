"""Who is elsewhere is told of a hold: by a command, or by a server. The run does not feel it, whatever becomes of that."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daifu_bc import run_options
from daifu_bc.errors import UsageError
from daifu_bc.recovery import delivery, journal, notification
from tests.attaching import LIMIT, Programs
from tests.playing import play

SECRET = "T0pS3cret"

CRASHES = """
def divide(by):
    return 1 // by

divide(0)
print("ends")
"""

#: An action that lets the run go on only after a failure has been written down.
UNTIL_TOLD = "action while 'not told' not in open('journal.jsonl').read(): pass\nskip\n"


def seen(condition: Callable[[], Any]) -> Any:
    """Wait until something is there, and return it."""
    deadline = time.monotonic() + LIMIT
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return found


def lines(path: Path, number: int) -> list[str]:
    """Return the lines of a file, as soon as there are so many."""

    def there() -> list[str]:
        text = path.read_text() if path.exists() else ""
        return text.splitlines() if text.count("\n") >= number and text.endswith("\n") else []

    found: list[str] = seen(there)
    return found


def messages(path: Path, number: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(path, number)]


def not_told(folder: Path) -> list[str]:
    entries = map(json.loads, (folder / "journal.jsonl").read_text().splitlines())
    return [entry["outcome"] for entry in entries if entry["event"] == "not told"]


def here(folder: Path, **variables: str) -> dict[str, str]:
    """The environment of a run that is told of; PATH is empty."""
    return {"DAIFU_JOURNAL": str(folder / "journal.jsonl"), "HOME": str(folder)} | variables


#: Appends a message to a file, without any program but the shell's own.
APPEND = "read -r line; printf '%s\\n' \"$line\" >> told"


# -- what is told ------------------------------------------------------------------------------------------------


def test_a_command_is_told(tmp_path: Path) -> None:
    program = f"import os\nos.makedirs('elsewhere')\nos.chdir('elsewhere')\n{CRASHES}"
    command = f"echo mixed; echo mixed >&2; {APPEND}; echo $DAIFU$DAIFU_NOTIFY >> inherited"
    ended = play(tmp_path, program, "skip", "argument", **here(tmp_path, DAIFU_NOTIFY=command))
    assert (ended.stdout, ended.returncode) == ("ends\n", 0)
    assert "mixed" not in ended.stderr
    held, resumed = messages(tmp_path / "told", 2)
    pid = held["pid"]
    at = time.time() - time.mktime(time.strptime(held["time"][:19], "%Y-%m-%dT%H:%M:%S")) + time.timezone
    assert -2 < at < LIMIT
    assert held.pop("time").endswith("+00:00")
    assert held["command"][-2:] == ["program.py", "argument"]
    del held["command"]
    host = os.uname().nodename
    assert held == {
        "event": "held",
        "host": host,
        "pid": pid,
        "folder": str(tmp_path),
        "hold": 1,
        "thread": "MainThread",
        "error": "ZeroDivisionError",
        "file": str(tmp_path / "program.py"),
        "line": 6,
        "function": "divide",
        "attach": f"daifu attach {pid}",
        "summary": f"daifu: held: process {pid} on {host}, hold 1 (ZeroDivisionError at program.py:6, in divide)."
        f" Type `daifu attach {pid}` there.",
    }
    assert (resumed["event"], resumed["reason"], resumed["pid"], resumed["hold"]) == (
        "resumed",
        "skip",
        pid,
        1,
    )
    assert resumed["summary"].endswith("(ZeroDivisionError at program.py:6, in divide): skip.")
    assert lines(tmp_path / "inherited", 2) == ["", ""]
    assert not not_told(tmp_path)


@pytest.mark.parametrize("asked", ["", "1"])
def test_values_are_told_if_that_is_asked_for(tmp_path: Path, asked: str) -> None:
    program = "def look(name):\n    raise LookupError('no patient ' + name)\nlook('Doe')\nopen('no file')\n"
    variables = here(tmp_path, DAIFU_NOTIFY=APPEND, DAIFU_JOURNAL_VALUES=asked)
    play(tmp_path, program, "skip\n---\nskip", **variables)
    told = messages(tmp_path / "told", 4)
    written = (tmp_path / "journal.jsonl").read_text()
    if asked:
        assert [message["text"] for message in told[::2]] == [
            "no patient Doe",
            "[Errno 2] No such file or directory: 'no file'",
        ]
        assert "(LookupError: no patient Doe at program.py:2, in look)" in told[0]["summary"]
        assert json.loads(written.splitlines()[0])["text"] == "no patient Doe"
    else:
        assert not any("text" in message for message in told)
        assert "patient" not in written + json.dumps(told)


def test_nothing_of_the_programs_runs_for_it(tmp_path: Path) -> None:
    program = """
class Odd(Exception):
    def __str__(self):
        print("asked")
        return "odd"

raise Odd(1)
"""
    folder = here(tmp_path, DAIFU_NOTIFY=APPEND, DAIFU_JOURNAL_VALUES="1")
    ended = play(tmp_path, program, "action 1\nskip", **folder)
    assert "text" not in messages(tmp_path / "told", 2)[0]
    assert ended.stdout.count("asked") == play(tmp_path, program, "action 1\nskip").stdout.count("asked")


def test_nobody_has_come(tmp_path: Path) -> None:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    programs = Programs(tmp_path, runtime)
    try:
        held = programs.start(CRASHES, DAIFU_NOTIFY=APPEND, DAIFU_HOLD_TIMEOUT="0.1")
        assert held.end()[2] == 1
    finally:
        programs.close()
    told = messages(tmp_path / "told", 3)
    assert [(message["event"], message.get("reason")) for message in told] == [
        ("held", None),
        ("timed out", "nobody has come for 0.1 s"),
        ("resumed", "raise"),
    ]


def test_the_projects_file_says_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.daifu]\nnotify = "echo told >> told"\njournal-values = true\n'
    )
    program = CRASHES.replace("1 // by", "{}['a key']")
    play(tmp_path, program, "skip", **here(tmp_path))
    assert lines(tmp_path / "told", 2) == ["told", "told"]
    assert '"text": "a key"' in (tmp_path / "journal.jsonl").read_text()


# -- servers -----------------------------------------------------------------------------------------------------


class Server(http.server.ThreadingHTTPServer):
    """A server on this machine that does as it is told.

    Args:
        does: what it does with a request.
    """

    def __init__(self, does: Callable[[http.server.BaseHTTPRequestHandler], None]) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                server.requests.append((self.path, dict(self.headers), json.loads(content)))
                does(self)

            def log_message(self, *_: object) -> None: ...

        super().__init__(("127.0.0.1", 0), Handler)

    def url(self, user: str = "") -> str:
        return f"http://{user}127.0.0.1:{self.server_address[1]}/{SECRET}?a=b"


@contextlib.contextmanager
def serving(does: Callable[[http.server.BaseHTTPRequestHandler], None]) -> Iterator[Server]:
    server = Server(does)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answering(status: int, **headers: str) -> Callable[[http.server.BaseHTTPRequestHandler], None]:
    def does(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return does


def close(request: http.server.BaseHTTPRequestHandler) -> None:
    request.close_connection = True
    request.connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("user", ["", "me:p%40ss@"])
def test_a_server_is_told(tmp_path: Path, user: str) -> None:
    with serving(answering(204)) as server:
        ended = play(tmp_path, CRASHES, "skip", **here(tmp_path, DAIFU_WEBHOOK=server.url(user)))
        assert (ended.stdout, ended.returncode) == ("ends\n", 0)
        seen(lambda: len(server.requests) == 2)
    assert [path for path, _, _ in server.requests] == [f"/{SECRET}?a=b"] * 2
    assert [message["event"] for _, _, message in server.requests] == ["held", "resumed"]
    headers = server.requests[0][1]
    assert (headers["Content-Type"], headers["User-Agent"]) == ("application/json", "daifu_bc")
    expected = f"Basic {base64.b64encode(b'me:p@ss').decode()}" if user else None
    assert headers.get("Authorization") == expected


def test_a_redirection_is_not_followed(tmp_path: Path) -> None:
    with serving(answering(200)) as other, serving(answering(307, Location=other.url())) as server:
        ended = play(tmp_path, CRASHES, UNTIL_TOLD, **here(tmp_path, DAIFU_WEBHOOK=server.url()))
    assert not other.requests
    assert "the webhook answers 307: it is elsewhere, and that is not followed" in ended.stderr


@pytest.mark.parametrize(
    ("does", "why"),
    [
        (answering(500), "the webhook answers 500"),
        (answering(404), "the webhook answers 404"),
        (close, "the webhook cannot be reached (Remote end closed connection without response)"),
        (None, "the webhook cannot be reached (Connection refused)"),
    ],
    ids=["500", "404", "closes", "nobody"],
)
def test_a_server_does_not_take_it(
    tmp_path: Path, does: Callable[[http.server.BaseHTTPRequestHandler], None] | None, why: str
) -> None:
    with serving(does or close) as server:
        url = server.url("me:passw0rd@")
        if does is None:
            server.server_close()
        program = CRASHES + "divide(0)\n"
        ended = play(tmp_path, program, f"{UNTIL_TOLD}---\nskip", **here(tmp_path, DAIFU_WEBHOOK=url))
        seen(lambda: len(not_told(tmp_path)) == 4)
    assert (ended.stdout, ended.returncode) == ("ends\n", 0)
    assert f"daifu_bc: nobody is told of hold 1 (held): {why}. The run is not affected;" in ended.stderr
    assert ended.stderr.count("nobody is told") == 1  # though it has happened again
    assert not_told(tmp_path) == [f"{event}: {why}" for event in ("held", "resumed") * 2]
    everything = ended.stdout + ended.stderr + (tmp_path / "journal.jsonl").read_text()
    assert SECRET not in everything
    assert "passw0rd" not in everything


def test_a_server_that_never_answers_is_not_waited_for(tmp_path: Path) -> None:
    asked, may_end = threading.Event(), threading.Event()

    def wait(request: http.server.BaseHTTPRequestHandler) -> None:
        asked.set()
        may_end.wait(LIMIT)
        close(request)

    with serving(wait) as server:
        ended = play(tmp_path, CRASHES, "skip", **here(tmp_path, DAIFU_WEBHOOK=server.url()))
        # It has ended, and so have its standard output and error.
        assert (ended.stdout, ended.returncode) == ("ends\n", 0)
        assert asked.wait(LIMIT)
        may_end.set()
        seen(lambda: len(not_told(tmp_path)) == 2)


def test_the_address_is_seen_nowhere(tmp_path: Path) -> None:
    program = f"{CRASHES}\nimport sys\nprint(sys.orig_argv[1:])\nprint(open('/proc/self/cmdline').read().split('\\0')[1:-1])\n"
    (tmp_path / "playbook").write_text("skip\n")
    (tmp_path / "program.py").write_text(program)
    programs = Programs(tmp_path, tmp_path)
    with serving(answering(200)) as server:
        options = [
            "--webhook",
            server.url(),
            "--playbook",
            "playbook",
            f"--webhook={server.url()}",
            "program.py",
            "--webhook",
        ]
        process = programs.spawn([sys.executable, "-X", "faulthandler", "-m", "daifu_bc", "run", *options])
        out, err = process.communicate()
        seen(lambda: len(server.requests) == 2)
    words = [
        "-X",
        "faulthandler",
        "-m",
        "daifu_bc",
        "run",
        "--playbook",
        "playbook",
        "program.py",
        "--webhook",
    ]
    assert out.splitlines() == ["ends", repr(words), repr(words)]
    assert server.requests[0][2]["command"][1:] == words
    assert SECRET not in err + (tmp_path / "journal.jsonl").read_text() + json.dumps(server.requests[0][2])
    programs.close()


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/x",
        "host/x",
        "http://",
        "https://host:port/",
        "https://ho st/",
        "http://[x/",
        "file:///x",
        "http://host:0/",
    ],
)
def test_no_address(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        notification.checked_address(f"{url}?{SECRET}")
    assert SECRET not in str(caught.value)


def test_words_without_an_option() -> None:
    words = ["--webhook", "http://x", "--attach", "--webhook=http://y", "-m", "--webhook", "z"]
    assert run_options.without(words, "webhook") == ["--attach", "-m", "--webhook", "z"]
    words = ["--notify", "--webhook", "program", "--webhook", "z"]
    assert run_options.without(words, "webhook") == words


# -- commands ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "why", "said"),
    [
        ("exit 3", "has returned 3", ""),
        ("no-such-command", "has returned 127", "not found"),
        ("kill -9 $$", "was ended by signal 9", ""),
    ],
)
def test_a_command_fails(tmp_path: Path, command: str, why: str, said: str) -> None:
    ended = play(tmp_path, CRASHES, UNTIL_TOLD, **here(tmp_path, DAIFU_NOTIFY=command))
    assert (ended.stdout, ended.returncode) == ("ends\n", 0)
    told = [line for line in ended.stderr.splitlines() if "nobody is told" in line]
    assert len(told) == 1
    assert told[0].startswith(f"daifu_bc: nobody is told of hold 1 (held): the command to notify {why}")
    assert said in told[0]
    assert not_told(tmp_path)[0] == f"held: the command to notify {why}"


def test_a_slow_command_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    command = f"read -r go < gate; {APPEND}"
    ended = play(tmp_path, CRASHES, "skip", **here(tmp_path, DAIFU_NOTIFY=command))
    assert (ended.stdout, ended.returncode) == ("ends\n", 0)
    assert not (tmp_path / "told").exists()
    for number in (1, 2):  # in order, one after the other
        with open(tmp_path / "gate", "w") as gate:
            gate.write("go\n")
        lines(tmp_path / "told", number)
    assert [message["event"] for message in messages(tmp_path / "told", 2)] == ["held", "resumed"]


def test_the_rest_is_not_delivered_for_ever(tmp_path: Path) -> None:
    """Long after the run has ended, what has piled up before a slow command is only written down."""
    jobs = delivery.Jobs()
    for number in (1, 2, 3):
        jobs.waiting.put(
            {
                "command": f"echo {number} >> told",
                "address": "",
                "folder": str(tmp_path),
                "place": {"hold": number},
                "message": {"event": "held", "pid": 17},
            }
        )
    jobs.waiting.put(None)
    jobs.ended = time.monotonic() - 1e6
    jobs.deliver()
    assert not (tmp_path / "told").exists()
    entries = [json.loads(line) for line in Path(journal.path()).read_text().splitlines()]
    assert [(one["pid"], one["hold"], one["outcome"]) for one in entries] == [
        (17, number, "held: the run has ended too long ago") for number in (1, 2, 3)
    ]


# -- what the program may be -------------------------------------------------------------------------------------

ALONE = """
import os
try:
    print(os.wait())
except ChildProcessError:
    print("no child")
"""

SIGNALS = """
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
"""

#: Ends the process that delivers, as soon as it has delivered something.
AGAIN = """
import os, signal
while not os.path.exists("told"):
    pass
helper = int(open("helper").readline())
os.kill(helper, signal.SIGKILL)
while os.path.exists(f"/proc/{helper}"):
    pass
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
divide(0)
print("ends again")
"""

FORKS = """
import os
child = os.fork()
try:
    divide(0)
finally:
    if not child:
        os._exit(0)
os.waitpid(child, 0)
print(os.getpid())
"""


def test_the_program_has_no_child_of_ours(tmp_path: Path) -> None:
    ended = play(tmp_path, CRASHES + ALONE, "skip", **here(tmp_path, DAIFU_NOTIFY=APPEND))
    assert ended.stdout == "ends\nno child\n"
    messages(tmp_path / "told", 2)


def test_the_program_has_its_own_ideas_of_signals(tmp_path: Path) -> None:
    """The helper does not share them: it sees its command fail, and its server."""
    program = SIGNALS + CRASHES + ALONE
    ended = play(tmp_path, program, UNTIL_TOLD, **here(tmp_path, DAIFU_NOTIFY="kill -15 $$; exit 4"))
    assert (ended.stdout, ended.returncode) == ("ends\nno child\n", 0)
    assert not_told(tmp_path)[0] == "held: the command to notify was ended by signal 15"


def test_a_forked_child_tells_of_itself(tmp_path: Path) -> None:
    program = CRASHES.replace('print("ends")', FORKS)
    ended = play(tmp_path, program, "repeat\nskip", **here(tmp_path, DAIFU_NOTIFY=APPEND))
    told = messages(tmp_path / "told", 6)
    first = int(ended.stdout)
    (child,) = {message["pid"] for message in told} - {first}
    for pid, events in (first, ["held", "resumed"] * 2), (child, ["held", "resumed"]):
        assert [message["event"] for message in told if message["pid"] == pid] == events


def test_the_helper_is_started_again(tmp_path: Path) -> None:
    program = CRASHES + AGAIN
    command = f"echo $PPID > helper; {APPEND}"
    ended = play(tmp_path, program, "repeat\nskip", **here(tmp_path, DAIFU_NOTIFY=command))
    assert (ended.stdout, ended.returncode) == ("ends\nends again\n", 0)
    # What was under way may have gone with it.
    seen(
        lambda: [line for line in lines(tmp_path / "told", 1) if '"resumed"' in line and '"hold": 2' in line]
    )


def test_descriptors_that_the_program_has_closed_are_its_own(tmp_path: Path) -> None:
    program = f"""
import os, socket
{CRASHES}
os.closerange(3, 256)
pairs = [socket.socketpair() for _ in range(8)]
divide(0)
for one, other in pairs:
    one.setblocking(False)
    other.setblocking(False)
    for end in (one, other):
        try:
            print(end.recv(100))
        except BlockingIOError:
            pass
"""
    ended = play(tmp_path, program, "repeat\nskip", **here(tmp_path, DAIFU_NOTIFY=APPEND))
    assert (ended.stdout, ended.returncode) == ("ends\n", 0)
    # By two processes, so that they may come in another order.
    assert sorted(message["hold"] for message in messages(tmp_path / "told", 4)) == [1, 1, 2, 2]


def test_no_descriptor_is_left(tmp_path: Path) -> None:
    program = """
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
files = []
def use():
    while True:
        files.append(os.open("/dev/null", os.O_RDONLY))

use()
for file in files:
    os.close(file)
print("ends")
"""
    ended = play(tmp_path, program, "return", **here(tmp_path, DAIFU_NOTIFY=APPEND))
    assert (ended.stdout, ended.returncode) == ("ends\n", 0)
    assert (
        ended.stderr.count("daifu_bc: nobody is told of hold 1 (OSError: [Errno 24] Too many open files)")
        == 1
    )
    assert "The run is not affected." in ended.stderr


def test_no_memory_is_left(tmp_path: Path) -> None:
    program = """
import resource
parts = []
def use():
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 22), resource.RLIM_INFINITY))
    while True:
        parts.append(bytes(1 << 20))

use()
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print("ends")
"""
    ended = play(tmp_path, program, "return", **here(tmp_path, DAIFU_NOTIFY=APPEND))
    assert (ended.stdout, ended.returncode) == ("ends\n", 0)


def test_a_process_cannot_be_started(tmp_path: Path) -> None:
    """There is no shell; the exception and the words have their way all the same."""
    program = "from daifu_bc.recovery import courier\ncourier._SHELL = '/no/shell'\n" + CRASHES
    ended = play(tmp_path, program, "skip", **here(tmp_path, DAIFU_NOTIFY=APPEND))
    assert (ended.stdout, ended.returncode) == ("ends\n", 0)
    assert ended.stderr.count("nobody is told of hold 1 (FileNotFoundError: ") == 1
    assert not_told(tmp_path) == ["held: FileNotFoundError", "resumed: FileNotFoundError"]
    ended = play(
        tmp_path, program.replace("/no/shell", "/bin/false"), "skip", **here(tmp_path, DAIFU_NOTIFY=APPEND)
    )
    assert (ended.stdout, ended.returncode) == ("ends\n", 0)
    assert ended.stderr.count("nobody is told of hold 1 (OSError: /bin/false has failed)") == 1
