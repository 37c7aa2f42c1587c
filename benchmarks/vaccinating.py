"""Making vaccinated code: the time for an instruction and the size, over the standard library."""

from __future__ import annotations

import marshal
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from benchmarks.figures import Figure
from benchmarks.pairs import settle
from daifu_bc.analysis.code import decode
from daifu_bc.rewrite.barrier import is_vaccinated, vaccinate_code

BOUND = 30.0
SIZE_BOUND = 2.0
#: From how many instructions on a code object is a large one.
LARGE = 1500
SKIPPED = ("test", "tests", "idlelib", "lib2to3", "site-packages", "dist-packages")


def library() -> list[Path]:
    """The files of the standard library, its tests left out."""
    root = Path(os.__file__).resolve().parent
    return sorted(path for path in root.rglob("*.py") if not set(path.relative_to(root).parts) & set(SKIPPED))


def within(code: CodeType) -> Iterator[CodeType]:
    """A code object and those in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from within(constant)


def compiled(path: Path) -> CodeType | None:
    """A module's code; None if the file is no Python, or a link that leads nowhere."""
    try:
        return compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError):
        return None


def measure(quick: bool) -> list[Figure]:
    """Microseconds an instruction, for each module, and the sizes."""
    each, large = [], []
    total_seconds, total_instructions = 0.0, 0
    size_before, size_after, code_before, code_after = 0, 0, 0, 0
    left, marshalled, instructions_sizes = 0, [], []
    settle()
    for path in library()[:: 16 if quick else 2]:
        module = compiled(path)
        if module is None:
            continue
        instructions = sum(len(decode(code)) for code in within(module))
        start = time.process_time()
        vaccinated = vaccinate_code(module)
        seconds = time.process_time() - start
        total_seconds += seconds
        total_instructions += instructions
        if instructions > 100:
            each.append(seconds / instructions * 1e6)
        before, after = len(marshal.dumps(module)), len(marshal.dumps(vaccinated))
        size_before += before
        size_after += after
        marshalled.append(after / before)
        first, second = (sum(len(code.co_code) for code in within(c)) for c in (module, vaccinated))
        code_before += first
        code_after += second
        instructions_sizes.append(second / first)
        for code, other in zip(within(module), within(vaccinated), strict=False):
            left += not is_vaccinated(other)
            if len(code.co_code) > 2 * LARGE:
                count = len(decode(code))
                if count > LARGE:
                    start = time.process_time()
                    vaccinate_code(code, recursive=False)
                    large.append((time.process_time() - start) / count * 1e6)
    note = f"{total_instructions:,} instructions in {len(marshalled)} modules; {left} code objects need no barrier"
    figures = [
        Figure("vaccinating", "each module", "µs", each, BOUND, note="an instruction"),
        Figure(
            "vaccinating", "all together", "µs", [total_seconds / total_instructions * 1e6], BOUND, note=note
        ),
    ]
    if large:
        many = f"{len(large)} of them; the slowest {max(large):.0f} µs"
        figures.append(
            Figure("vaccinating", f"functions above {LARGE} instructions", "µs", large, BOUND, note=many)
        )
    figures += [
        Figure("vaccinating", "size on disk, each module", "ratio", marshalled, SIZE_BOUND),
        Figure("vaccinating", "size on disk, all together", "ratio", [size_after / size_before], SIZE_BOUND),
        Figure(
            "vaccinating",
            "instructions with the cold ones, each module",
            "ratio",
            instructions_sizes,
            SIZE_BOUND,
        ),
        Figure(
            "vaccinating",
            "instructions with the cold ones, all together",
            "ratio",
            [code_after / code_before],
            SIZE_BOUND,
        ),
    ]
    assert statistics.median(marshalled) > 1
    return figures
