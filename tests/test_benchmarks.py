"""What is written down of a measurement; the values are worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import exchange
from benchmarks.figures import Figure


def test_timings_are_absolute() -> None:
    ratio = Figure("normal", "loop", "ratio", [1.0, 1.5], plain=[100.0, 200.0], plain_unit="ns")
    alone = Figure("recovering", "pass", "ms", [2.0, 4.0])
    more = Figure("crossing", "one frame", "µs", [2.0], control=[0.0], plain=[0.5], plain_unit="µs")
    size = Figure("vaccinating", "size", "ratio", [1.4])
    found = dict(exchange.timings([ratio, alone, more, size]))
    assert found == {
        "normal: loop, plain": pytest.approx([1e-7, 2e-7]),
        "normal: loop, vaccinated": pytest.approx([1e-7, 3e-7]),
        "recovering: pass": pytest.approx([0.002, 0.004]),
        "crossing: one frame, plain": pytest.approx([5e-7]),
    }


def test_pyperf_reads_them(tmp_path: Path) -> None:
    pytest.importorskip("pyperf")
    file = tmp_path / "results.pyperf.json"
    exchange.save(file, {"python": "3"}, [Figure("recovering", "pass", "ms", [2.0, 4.0])])
    (benchmark,) = json.loads(file.read_text())["benchmarks"]
    (run,) = benchmark["runs"]
    assert run["values"] == pytest.approx([0.002, 0.004])
