"""One of several processes says so when it is held: the others wait for it, and not for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from daifu_bc.recovery.ranks import ranks
from tests.attaching import Held, Programs
from tests.running import run
from tests.scenarios import ranks as scenario

CRASHES = "print([][0])\n"
TIMED = """
import datetime
import torch.distributed as distributed
distributed.init_process_group(
    "gloo", store=distributed.HashStore(), rank=0, world_size=1, timeout=datetime.timedelta(seconds=77)
)
print([][0])
"""


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"RANK": "1", "WORLD_SIZE": "3"}, "rank 1 of 3"),
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}, "rank 0 of 2"),
        ({"OMPI_COMM_WORLD_RANK": "7", "OMPI_COMM_WORLD_SIZE": "8"}, "rank 7 of 8"),
    ],
)
def test_is_told_at_the_hold(tmp_path: Path, variables: dict[str, str], text: str) -> None:
    ended = run(tmp_path, CRASHES, "skip\n", **variables)
    assert f"\nRanks: {text}; the others wait for it in their next collective operation\n" in ended.stderr


@pytest.mark.parametrize(
    "variables", [{}, {"RANK": "0", "WORLD_SIZE": "1"}, {"RANK": "0"}, {"RANK": "x", "WORLD_SIZE": "y"}]
)
def test_on_its_own_nothing_is_told(tmp_path: Path, variables: dict[str, str]) -> None:
    assert "Ranks:" not in run(tmp_path, CRASHES, "skip\n", **variables).stderr


@pytest.mark.torch
def test_how_long_the_others_wait(tmp_path: Path) -> None:
    ended = run(tmp_path, TIMED, "skip\n", RANK="0", WORLD_SIZE="2")
    assert "in their next collective operation, for at most 77 s\n" in ended.stderr


def test_what_they_have_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "node",
        "MASTER_PORT": "29500",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert ranks() == (1, 2, ":node:29500")


def start(programs: Programs, program: str) -> list[Held]:
    """Start all ranks."""
    (programs.folder / "meeting").mkdir()
    return [
        programs.start(
            program,
            RANK=str(rank),
            WORLD_SIZE=str(scenario.SIZE),
            MASTER_ADDR="localhost",
            MASTER_PORT="29500",
            MEETING=str(programs.folder / "meeting"),
        )
        for rank in range(scenario.SIZE)
    ]


def check(ranks: list[Held]) -> None:
    """See that every rank has done everything once."""
    for rank, held in enumerate(ranks):
        out, err, code = held.end()
        assert (out, code) == (scenario.expected(rank), 0), err


def test_the_others_wait_for_one_that_is_held(programs: Programs) -> None:
    ranks = start(programs, scenario.ONE_FAILS)
    pid = ranks[1].held()
    assert "\nRanks: rank 1 of 3;" in ranks[1].err
    assert programs.daifu("do", str(pid), "scales += [5, 6]", "pass").returncode == 0
    check(ranks)


def test_one_fix_for_all(programs: Programs) -> None:
    ranks = start(programs, scenario.ALL_FAIL)
    pids = [held.held() for held in ranks]
    (programs.folder / "program.py").write_text(scenario.ALL_FAIL.replace("scale[step]", "scales[step]"))
    done = programs.daifu("do", "--ranks", str(pids[0]), "surgery", "pass")
    assert done.returncode == 0, done.stderr
    assert [f"rank {rank} (process {pid}):" in done.stdout for rank, pid in enumerate(pids)] == [True] * 3
    check(ranks)


def test_a_run_on_its_own_has_no_ranks(programs: Programs) -> None:
    pid = programs.start().held()
    done = programs.daifu("do", "--ranks", str(pid), "pass")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"process {pid} is none of several ranks" in done.stderr
