"""The process that delivers messages, one after the other: `courier` starts it beside the run.

What comes is a JSON object a line: `message`, what is told; `command` and `address`, to whom, empty for nobody; `folder`,
where the command runs; `place`, of the hold, for the journal. It may contain secrets, so nothing of it is shown.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

from daifu_bc.recovery import journal
from daifu_bc.recovery.courier import DESCRIPTOR
from daifu_bc.recovery.telling import tell

#: Seconds that a server may take, altogether.
_SERVER: Final = 10.0
#: Seconds that a command may take.
_COMMAND: Final = 60.0
#: Seconds that we outlive the run, for what is left to deliver.
_LINGER: Final = 300.0
_GOOD: Final = range(200, 300)
#: Characters of what a command says on its standard error that are shown.
_MOST_SAID: Final = 200

Job = dict[str, Any]


class NotDeliveredError(Exception):
    """A message has not been delivered.

    Args:
        why: a few words, without the address and without values.
        said: what the command itself has said, which may be anything.
    """

    def __init__(self, why: str, said: str = "") -> None:
        self.said = said
        super().__init__(why)


class Jobs:
    """What is to be delivered.

    Attributes:
        waiting: in the order in which it has come; None stands for the run's end.
        ended: when the run has ended, as `time.monotonic()` tells it; None if it has not.
    """

    def __init__(self) -> None:
        self.waiting: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.ended: float | None = None

    def deliver(self) -> None:
        """Deliver all until the run's end, and what is left then, but not for ever."""
        told: set[str] = set()
        while (job := self.waiting.get()) is not None:
            if self.ended is None or time.monotonic() < self.ended + _LINGER:
                _deliver(job, told)
            else:
                _write_down(job, "the run has ended too long ago")


def main() -> None:
    """Deliver what comes, until the run has ended and nothing is left."""
    _settle()
    jobs = Jobs()
    threading.Thread(target=_read, args=(jobs,), daemon=True).start()
    jobs.deliver()


def _settle() -> None:
    """Become independent of the run: of its terminal, its files, and its signals."""
    with contextlib.suppress(OSError):
        os.setsid()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    os.closerange(DESCRIPTOR + 1, most if 0 < most < 1 << 20 else 1 << 20)
    try:
        os.fstat(2)
    except OSError:  # nothing else is to get its number
        os.dup2(0, 2)
    for number in (signal.SIGINT, signal.SIGQUIT):  # the shell has its background not hear them
        signal.signal(number, signal.SIG_DFL)


def _read(jobs: Jobs) -> None:
    with open(DESCRIPTOR, "rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                jobs.waiting.put(json.loads(line))
    # Whoever reads what the run has said is not to wait for us.
    os.dup2(0, 2)
    jobs.ended = time.monotonic()
    jobs.waiting.put(None)


def _deliver(job: Job, told: set[str]) -> None:
    content = json.dumps(job["message"]).encode()
    for name, deliver in (("command", _run), ("address", _post)):
        if not job[name]:
            continue
        try:
            deliver(job[name], content, job["folder"])
        except NotDeliveredError as error:
            _say(job, name, error, told)
        # What has an address in its text, say: none of it is shown.
        except Exception as error:  # noqa: BLE001
            _say(job, name, NotDeliveredError(f"{_SUBJECTS[name]} has failed ({type(error).__name__})"), told)


_SUBJECTS: Final = {"command": "the command to notify", "address": "the webhook"}


def _say(job: Job, name: str, error: NotDeliveredError, told: set[str]) -> None:
    message = job["message"]
    _write_down(job, str(error))
    if name not in told:
        told.add(name)
        said = f": {error.said}" if error.said else ""
        tell(
            f"daifu_bc: nobody is told of hold {message['hold']} ({message['event']}): {error}{said}."
            " The run is not affected; further ones of this kind are only in the journal."
        )


def _write_down(job: Job, why: str) -> None:
    message = job["message"]
    journal.record("not told", place=job["place"], outcome=f"{message['event']}: {why}", pid=message["pid"])


# -- a command ---------------------------------------------------------------------------------------------------


def _run(command: str, content: bytes, folder: str) -> None:
    with _memory() as errors:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL if errors is None else errors,
            cwd=folder if os.path.isdir(folder) else "/",
            start_new_session=True,
        )
        try:
            process.communicate(content, _COMMAND)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            why = f"the command to notify has taken more than {_COMMAND:g} s, and was ended"
            raise NotDeliveredError(why) from None
        code = process.returncode
        if code < 0:
            raise NotDeliveredError(f"the command to notify was ended by signal {-code}")
        if code:
            said = "" if errors is None else _last_line(errors)
            raise NotDeliveredError(f"the command to notify has returned {code}", said)


@contextlib.contextmanager
def _memory() -> Iterator[int | None]:
    """Yield a descriptor of a file that nobody else sees, not even a disk; None if the system has none."""
    try:
        descriptor = os.memfd_create("daifu_bc")
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _last_line(descriptor: int) -> str:
    text = os.pread(descriptor, 1 << 16, 0).decode(errors="backslashreplace").strip()
    last = text.rpartition("\n")[2][:_MOST_SAID]
    return "".join(character if character.isprintable() else " " for character in last).rstrip(". ")


# -- a server ----------------------------------------------------------------------------------------------------


def _post(address: str, content: bytes, _folder: str) -> None:
    try:
        with _limited(_SERVER):
            status = _answer(address, content)
    except TimeoutError:
        raise NotDeliveredError(f"the webhook has not answered in {_SERVER:g} s") from None
    except OSError as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            reason = f"no answer in {_SERVER:g} s"
        elif isinstance(reason, OSError):
            reason = reason.strerror or str(reason)
        raise NotDeliveredError(f"the webhook cannot be reached ({reason})") from None
    if 300 <= status < 400:
        raise NotDeliveredError(f"the webhook answers {status}: it is elsewhere, and that is not followed")
    if status not in _GOOD:
        raise NotDeliveredError(f"the webhook answers {status}")


def _answer(address: str, content: bytes) -> int:
    import base64
    import urllib.error
    import urllib.parse
    import urllib.request

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        """The message is for the one whom the user has named."""

        def redirect_request(self, *_: Any) -> None:
            """Follow nobody."""

    parts = urllib.parse.urlsplit(address)
    headers = {"Content-Type": "application/json", "User-Agent": "daifu_bc"}
    if parts.username is not None:
        user = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
        parts = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    request = urllib.request.Request(parts._replace(fragment="").geturl(), content, headers, method="POST")
    if request.type not in ("http", "https"):  # the program has set the variable itself
        raise NotDeliveredError("the webhook is no http or https address")
    try:
        with urllib.request.build_opener(NoRedirect).open(request, timeout=_SERVER) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Break off what takes longer, whatever it waits for: one that answers a byte a second, say."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    sys.exit("daifu_bc starts this by itself")
