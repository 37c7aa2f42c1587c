"""Holds in other processes: children of every kind, exceptions that are sent back, processes that are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from daifu_bc.frontends import log
from tests.running import ROOT

# Puts the start-up line of an installed daifu_bc into effect where it is not installed.
SITE = f"exec(open({str(ROOT / 'daifu_bc.pth')!r}).read())\n"

POOLS = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(a)
        self.b = b
    def __reduce__(self):
        return Odd, (*self.args, self.b)
def divide(n):
    with open("/dev/null"):
        x = 10 // n
    return x
def odd(n):
    raise Odd(n, "two")
def told(error):
    return repr(error), getattr(error, "b", None), str(error.__cause__).replace(__file__, "")
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        for function, argument in ((divide, 0), (odd, 3), (divide, 0)):
            try:
                print("result", pool.submit(function, argument).result(timeout=30))
            except Exception as error:
                print(told(error))
"""


def environment(folder: Path, **more: str) -> dict[str, str]:
    (folder / "sitecustomize.py").write_text(SITE)
    return {
        **os.environ,
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
        "DAIFU_JOURNAL": str(folder / "journal.jsonl"),
        **more,
    }


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_a_pool(tmp_path: Path, method: str) -> None:
    """They are held, whatever the parent had around the place where it started them; what is let go is sent as ever."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "program.py").write_text(POOLS)
    (tmp_path / "playbook").write_text("raise\n---\nraise\n---\nn = 5\npass\n")

    def ended(**more: str) -> list[str]:
        result = subprocess.run(
            [sys.executable, "-W", "ignore", "program.py", method],
            cwd=tmp_path,
            env=environment(tmp_path, **more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert result.stderr.count("daifu: hold") == (3 if more else 0)
        return result.stdout.splitlines()

    plain = ended()
    assert ended(DAIFU="1", DAIFU_PLAYBOOK="playbook") == [*plain[:2], "result 2"]
    assert "Odd(3)" in plain[1]


KILLED = """
import sys
def work(state):
    return 10 // len(state)
print("begins", flush=True)
for number in range(100000):
    work([])
"""


def test_a_process_that_is_killed_while_it_writes_its_journal(tmp_path: Path) -> None:
    """Whenever it comes; what was written can be read, and the next process writes on."""
    (tmp_path / "program.py").write_text(KILLED)
    (tmp_path / "playbook").write_text("state.append(1)\npass\n---\n" * 5000)
    journal = tmp_path / "journal.jsonl"
    command = [sys.executable, "-m", "daifu_bc", "run", "--playbook", "playbook", "program.py"]
    lengths = []
    for turn in range(4):
        with subprocess.Popen(
            command,
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begins\n"
            time.sleep(0.2 + turn * 0.0137)
            process.send_signal(signal.SIGKILL)
        lengths.append(len(journal.read_text().splitlines()))
    assert lengths == sorted(set(lengths))
    texts = list(log.read(str(journal)))
    assert len(texts) == lengths[-1]
    assert not [text for text in texts if "damaged" in text]


def test_half_a_line_at_the_end(tmp_path: Path) -> None:
    """As a power cut leaves it."""
    (tmp_path / "program.py").write_text(KILLED.replace("100000", "1"))
    (tmp_path / "playbook").write_text("state.append(1)\npass\n")
    journal = tmp_path / "journal.jsonl"
    journal.write_text('{"time": "2026-01-01T00:00:00+00:00", "pid": 1, "event": "held"}\n{"time": "2026-0')
    command = [sys.executable, "-m", "daifu_bc", "run", "--playbook", "playbook", "program.py"]
    subprocess.run(
        command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, timeout=60, check=True
    )
    first, half, *rest = log.read(str(journal))
    assert "held" in first
    assert half.startswith("(line 2 is damaged: ")
    assert [json.loads(line)["event"] for line in journal.read_text().splitlines()[2:]] == [
        "held",
        "action",
        "pass",
        "running again",
    ]
    assert len(rest) == 4


@pytest.mark.parametrize("place", ["/proc/none", "/dev/null/x", "file"])
def test_a_cache_that_cannot_be_written(tmp_path: Path, place: str) -> None:
    """The program and its modules run, and are held, as if there were none."""
    (tmp_path / "file").touch()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "module.py").write_text("def work(state):\n    return 10 // len(state)\n")
    (tmp_path / "program.py").write_text("import module\nprint(module.work([]))\n")
    (tmp_path / "playbook").write_text("state.append(1)\npass\n")
    result = subprocess.run(
        [sys.executable, "-m", "daifu_bc", "run", "--playbook", "playbook", "program.py"],
        cwd=tmp_path,
        env=environment(tmp_path, PYTHONPYCACHEPREFIX=str(tmp_path / place)),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout == "10\n"
    assert "daifu_bc:" not in result.stderr
