"""What kinds of programs are shown in a debugger, and what is left of it afterwards."""

from __future__ import annotations

from pathlib import Path

from tests.debugged import debugged

KEEPS = """\
import weakref

class Big: pass
class Odd(Exception): pass

references = []

def fails():
    big, error = Big(), Odd("x")
    references.extend(map(weakref.ref, (big, error)))
    raise error

def outer():
    other = Big()
    references.append(weakref.ref(other))
    def inner():
        return fails()
    inner()
    del other
    print([reference() is None for reference in references], flush=True)

outer()
"""


def test_what_was_looked_at_is_not_kept(tmp_path: Path) -> None:
    with debugged(tmp_path, KEEPS) as run:
        client = run.attach()
        thread = client.stopped()
        for frame in client.stack(thread):
            client.variables(frame)
            assert "references" in client.variables(frame, "Globals")
        assert "Big object" in client.console("big", client.stack(thread)[0])
        client.ask("exceptionInfo", threadId=thread)
        client.console("skip", client.stack(thread)[0])
        client.event("terminated")
        out, err, code = run.end()
    assert (out, code) == ("[True, True, True]\n", 0), err


TWO_THREADS = """\
import threading

def work(name, state):
    print(name, 10 // len(state), flush=True)

threads = [threading.Thread(target=work, args=(name, []), name=name) for name in ("one", "two")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_several_threads_are_shown_one_after_the_other(tmp_path: Path) -> None:
    with debugged(tmp_path, TWO_THREADS) as run:
        client = run.attach()
        names = []
        for _ in range(2):
            thread = client.stopped()
            held = client.stack(thread)[0]
            assert client.places(thread)[0] == ("work", 4)
            names.append(client.variables(held)["name"])
            client.set(held, "state", "[1]")
            client.ask("continue", threadId=thread)
        client.event("terminated")
        out, err, code = run.end()
    assert sorted(names) == ["'one'", "'two'"]
    assert (sorted(out.splitlines()), code) == (["one 10", "two 10"], 0), err


COROUTINE = """\
import asyncio

async def fetch(state):
    await asyncio.sleep(0)
    return 10 // len(state)

def chunks(state):
    yield from (10 // len(state) for _ in "a")

async def main():
    total = sum([await fetch([])])
    print(total, list(chunks([])), flush=True)

asyncio.run(main())
"""


def test_coroutines_and_generators_go_on_after_a_stop(tmp_path: Path) -> None:
    with debugged(tmp_path, COROUTINE) as run:
        client = run.attach()
        for name, line in (("fetch", 5), ("<genexpr>", 8)):
            thread = client.stopped()
            held = client.stack(thread)[0]
            assert (held["name"].rpartition(".")[2], held["line"]) == (name, line)
            client.set(held, "state", "[1, 2]")
            client.ask("continue", threadId=thread)
        client.event("terminated")
        out, err, code = run.end()
    assert (out, code) == ("5 [5]\n", 0), err
