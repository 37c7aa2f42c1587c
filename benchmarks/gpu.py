"""What a GPU adds: `python -m benchmarks.gpu`, unattended, within five minutes; without one it says so and is done.

- Memory of the GPU runs out in a training run, and a playbook recovers it in place.
- Steps of the models on the GPU, vaccinated against plain.

`--rehearse` does the same on the CPU, whose memory it limits, in small: to see that it would work.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.figures import Figure
from benchmarks.machine import describe
from benchmarks.models.catalogue import KINDS
from benchmarks.pairs import FOLDER, settle, somebody_answering

#: Whatever fails inside the step: back in the loop a batch is taken that fits, and the step is done again.
PLAYBOOK = """\
frame train
action batch, growing = batch // 4, False; torch.cuda.empty_cache()
pass
"""
TIMEOUT_SECONDS = 120
ROUNDS = 7


def main() -> int:
    """Measure; the exit code is 1 if something is not as it should be."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rehearse", action="store_true", help="on the CPU, in small")
    parser.add_argument("--output", type=Path, default=report.RESULTS / "gpu.json", metavar="FILE")
    parser.add_argument("names", nargs="*", metavar="MODEL", help=f"{', '.join(KINDS)}; all without")
    options = parser.parse_args()
    device = "cpu" if options.rehearse else "cuda"
    if not _is_there(device):
        print("There is no GPU that PyTorch can use; nothing is measured.")
        return 0
    unknown = set(options.names) - set(KINDS)
    if unknown:
        parser.error(f"there is no model {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    names = options.names or list(KINDS)
    machine = describe() | {"device": _described(device)}
    figures = [out_of_memory("gpt2", device)]
    figures += [figure for name in names for figure in steps(name, device, 1 if options.rehearse else ROUNDS)]
    report.save(options.output, machine, figures)
    print("\n".join(report.rows(figures)))
    return 0


def _is_there(device: str) -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return device == "cpu" or bool(torch.cuda.is_available())


def _described(device: str) -> str:
    import torch

    return torch.cuda.get_device_name() if device == "cuda" else "CPU"


def out_of_memory(name: str, device: str) -> Figure:
    """Let memory run out, and the run go on: milliseconds from the decision to the step's running again."""
    with tempfile.TemporaryDirectory(prefix="growing-") as text:
        folder = Path(text)
        (folder / "book.txt").write_text(PLAYBOOK, encoding="utf-8")
        command = ["-m", "daifu_bc", "run", "--playbook", str(folder / "book.txt")]
        done = subprocess.run(
            [
                sys.executable,
                *command,
                "-m",
                "benchmarks.models.growing",
                name,
                device,
                str(folder / "output"),
            ],
            cwd=FOLDER.parent,
            env=_environment() | {"DAIFU_JOURNAL": str(folder / "journal.jsonl")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"out of memory was not recovered: {done.stderr[-3000:]}")
        journal = (folder / "journal.jsonl").read_text(encoding="utf-8")
        history: list[tuple[int, float]] = json.loads((folder / "output").read_text(encoding="utf-8"))
    entries: list[dict[str, Any]] = [json.loads(line) for line in journal.splitlines()]
    (held,) = (entry for entry in entries if entry["event"] == "held")
    (again,) = (entry for entry in entries if entry["event"] == "running again")
    most, last = max(batch for batch, _ in history), history[-1][0]
    note = f"{held['what']} after a batch of {most:,}, went on with {last:,}"
    return Figure("gpu", "out of memory, running again", "ms", [again["seconds"] * 1e3], note=note)


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("DAIFU")} | {
        "DAIFU_ATTACH": "0"
    }


def steps(name: str, device: str, rounds: int) -> list[Figure]:
    """A step's time, vaccinated against plain, in turns."""
    import torch

    from benchmarks.models.editions import NAMES, Editions
    from benchmarks.models.overhead import EDITIONS, STEPS, Steps

    figures = {
        edition: Figure("gpu", f"{KINDS[name].title}, {text}", "ratio", [], plain_unit="ms")
        for edition, text in EDITIONS.items()
    }
    torch.set_num_threads(1)
    with somebody_answering():
        work = Steps(name, Path(), device)
        editions = Editions(lambda: work.plain(1))
        settle()
        for turn in range(rounds + 1):  # the first one is to warm up
            taken = {}
            first = turn % len(NAMES)
            for edition in NAMES[first:] + NAMES[:first]:
                editions.use(edition)
                taken[edition] = work.sample(work.plain).wall  # the loss that it returns waits for the device
            if turn:
                for edition, figure in figures.items():
                    figure.values.append(taken[edition] / taken["plain"])
                    figure.control.append(taken["again"] / taken["plain"])
                    figure.plain.append(taken["plain"] / STEPS * 1e3)
        editions.use("plain")
    return list(figures.values())


if __name__ == "__main__":
    sys.exit(main())
