"""One of several processes says so when it is held: the others wait for it, and not for ever."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from daifu_bc.integrations.ranks import ranks
from tests.running import run

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
    monkeypatch.setitem(sys.modules, "torch.distributed", None)
    for name, value in {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "node",
        "MASTER_PORT": "29500",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    found = ranks()
    assert found is not None
    assert (found.rank, found.size, found.group, found.patience) == (1, 2, ":node:29500", None)
