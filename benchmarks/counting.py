"""How many instructions are executed: arithmetic that no other process can disturb.

The interpreter itself tells each bytecode instruction that it is going to execute; the sequences of a plain and of a
vaccinated run are compared, not only their length. Where valgrind is installed, callgrind counts the processor's
instructions as well: the difference of a long and a short run, divided by the difference of their iterations.
"""

from __future__ import annotations

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
from benchmarks.pairs import FOLDER, Namespace, variants

ITERATIONS = 25
#: Short and long run under callgrind.
RUNS = (2000, 12000)
MACHINE_KERNELS = ("a2_flat_for", "b5_call", "generators", "with_generator", "handled_from_c")
#: A function's qualified name and an offset in it.
Step = tuple[str, int]


def executed(work: Callable[[int], object], filename: str) -> list[Step]:
    """The instructions that a call executes: function and offset of each, in the file's code only."""
    steps: list[Step] = []

    def step(code: CodeType, offset: int) -> None:
        if code.co_filename == filename:
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
    for name in MACHINE_KERNELS:
        per_iteration = []
        for variant in (0, 1):
            counts = [_callgrind(valgrind, name, variant, n) for n in RUNS]
            if counts[0] is None or counts[1] is None:
                return figures
            per_iteration.append((counts[1] - counts[0]) / (RUNS[1] - RUNS[0]))
        plain, vaccinated = per_iteration
        figures.append(
            Figure(
                "counting",
                f"processor's instructions more in an iteration of {name}",
                "instructions",
                [vaccinated - plain],
                0.01 * plain,
                plain=[plain],
                plain_unit="instructions",
            )
        )
    return figures


def _callgrind(valgrind: str, name: str, variant: int, iterations: int) -> int | None:
    """Instructions that a process executes which runs one variant of a kernel."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "callgrind"
        environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONPATH": str(FOLDER.parent)}
        command = [
            valgrind,
            "--tool=callgrind",
            f"--callgrind-out-file={output}",
            sys.executable,
            "-m",
            __name__,
        ]
        try:
            subprocess.run(
                [*command, name, str(variant), str(iterations)],
                env=environment,
                capture_output=True,
                timeout=120,
                check=True,
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


def main() -> None:
    """Run one variant of a kernel, for callgrind."""
    name, variant, iterations = sys.argv[1:]
    module: Namespace = variants(FOLDER / "kernels.py")[int(variant)]
    module[name](int(iterations))


if __name__ == "__main__":
    main()
