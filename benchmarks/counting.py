"""How many instructions are executed: arithmetic that no other process can disturb.

The interpreter itself tells each bytecode instruction that it is going to execute; the sequences of a plain and of a
vaccinated run are compared, not only their length. Where valgrind is installed, callgrind counts the processor's
instructions as well: the difference of a long and a short run, divided by the difference of their iterations.
"""

from __future__ import annotations

import marshal
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from benchmarks import kernels
from benchmarks.figures import Figure
from benchmarks.pairs import FOLDER, compiled, variants
from daifu_bc.rewrite.barrier import vaccinate_code

ITERATIONS = 25
#: Short and long run under callgrind.
RUNS = (500, 2500)
MACHINE_KERNELS = ("a2_flat_for", "handled_from_c")
#: Vaccinated code needs nothing of ours until an exception meets a barrier. Numbers are kept in every other place of
#: their kind's memory, since taking the last free place takes some instructions more than taking any other one.
PROCESS = """
import marshal, sys
file, kernel, iterations = sys.argv[1:]
with open(file, "rb") as source:
    code = marshal.load(source)
kept = [number + 100000 for number in range(4000)]
del kept[::2]
module = {"__name__": "kernels"}
exec(code, module)
module[kernel](int(iterations))
"""
#: A function's qualified name and an offset in it.
Step = tuple[str, int]


def executed(work: Callable[[int], object], filename: str | None = None) -> list[Step]:
    """The instructions that a call executes: function and offset of each, in the file's code only if one is given."""
    steps: list[Step] = []

    def step(code: CodeType, offset: int) -> None:
        if filename in (None, code.co_filename):
            steps.append((code.co_qualname, offset))

    if sys.version_info >= (3, 12):  # for the type checker
        monitoring = sys.monitoring
        tool = monitoring.PROFILER_ID
        monitoring.use_tool_id(tool, "benchmarks")
        monitoring.register_callback(tool, monitoring.events.INSTRUCTION, step)
        monitoring.set_events(tool, monitoring.events.INSTRUCTION)
        try:
            work(ITERATIONS)
        finally:
            monitoring.set_events(tool, 0)
            monitoring.free_tool_id(tool)
    else:

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            frame.f_trace_opcodes = True
            frame.f_trace_lines = False
            if event == "opcode":
                step(frame.f_code, frame.f_lasti)
            return trace

        sys.settrace(trace)
        try:
            work(ITERATIONS)
        finally:
            sys.settrace(None)
    return steps


def bytecode() -> list[Figure]:
    """Bytecode instructions of all kernels that meet no barrier."""
    path = FOLDER / "kernels.py"
    plain, vaccinated, _ = variants(path)
    total, more, different = 0, 0, []
    meeting = kernels.MEETING | kernels.MEETING_AT_END
    names = [function.__name__ for function in kernels.NORMAL if function.__name__ not in meeting]
    for name in names:
        before, after = (executed(module[name], str(path)) for module in (plain, vaccinated))
        if not before:
            raise AssertionError(f"nothing was counted in {name}")
        total += len(before)
        more += len(after) - len(before)
        if before != after:
            different.append(name)
    note = "the same sequences" if not different else f"different sequences: {', '.join(different)}"
    return [
        Figure(
            "counting",
            f"bytecode instructions more, {len(names)} kernels",
            "instructions",
            [float(more)],
            0.0,
            plain=[float(total)],
            plain_unit="instructions",
            note=note,
        )
    ]


def machine() -> list[Figure]:
    """Instructions of the processor per iteration, counted by callgrind; nothing where that cannot be run."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return []
    figures: list[Figure] = []
    plain_code = compiled(FOLDER / "kernels.py")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [folder / "plain", folder / "vaccinated"]
        for file, code in zip(files, (plain_code, vaccinate_code(plain_code)), strict=True):
            file.write_bytes(marshal.dumps(code))
        for kernel in MACHINE_KERNELS:
            per_iteration = []
            for file in files:
                short, long = (_callgrind(valgrind, file, kernel, n) for n in RUNS)
                if short is None or long is None:
                    return figures
                per_iteration.append((long - short) / (RUNS[1] - RUNS[0]))
            plain, vaccinated = per_iteration
            figures.append(
                Figure(
                    "counting",
                    f"processor's instructions more in an iteration of {kernel}",
                    "instructions",
                    [vaccinated - plain],
                    0.01 * plain,
                    plain=[plain],
                    plain_unit="instructions",
                )
            )
    return figures


def _callgrind(valgrind: str, file: Path, kernel: str, iterations: int) -> int | None:
    """Instructions that a process executes which loads a module's code and runs one of its kernels."""
    output = file.with_suffix(".counts")
    options = ["--tool=callgrind", f"--callgrind-out-file={output}"]
    python = [sys.executable, "-S", "-c", PROCESS, str(file), kernel, str(iterations)]
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    try:
        subprocess.run(
            [valgrind, *options, *python], env=environment, capture_output=True, timeout=120, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    for line in output.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith(("summary:", "totals:")):
            return int(line.split()[1])
    return None


def measure(quick: bool) -> list[Figure]:
    """All counts; only the interpreter's own when in a hurry."""
    return bytecode() + ([] if quick else machine())
