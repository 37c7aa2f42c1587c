"""The demonstration: runs a training program with a bug under `daifu run`, then the correct program, and compares."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from daifu_bc.errors import UsageError
from daifu_bc.recovery import policy

PROGRAM = Path(__file__).with_name("train.py")
#: The bug in the program, and what should stand there.
BUG, REPAIR = "acuracy", "accuracy"
#: The function that the bug is in.
FUNCTION = "describe"
LIBRARIES = ("numpy", "sklearn", "torch")
MISSING_CODE = 2

HELP = """\
usage: daifu demo [--play]

Trains a small network on handwritten digits with a program that has a bug, holds it at the crash, has it repaired and
lets it go on; then trains with the correct program, and compares the weights of the two networks bit by bit. At a
terminal you do the repair; otherwise, or with --play, it is done by a playbook.
"""

INTRODUCTION = """\
A small convolutional network is going to learn handwritten digits, in a few seconds. Line {line} of the program has a
typo, {bug!r} for {repair!r}, which is met when the second epoch is evaluated. Python alone would end there, and
what the network has learnt would be lost. `daifu run` holds the program at that line instead.

The program, yours to edit:  {program}
"""

INSTRUCTIONS = """
You will be asked. Look around first, for example with
    where
    p earlier
    list
Put line {line} right in your editor, save, and take the edited file with
    surgery
or give the function anew, at the prompt:
{surgery}
And then let the program go on: it runs the line again.
    pass
"""

PLAYBOOK = """\
# Look around,
where
p earlier
# put the function right,
{surgery}
# and run the statement again.
pass
"""


@dataclass(slots=True)
class Run:
    """A training run that has ended.

    Attributes:
        code: its exit code.
        seconds: how long it took, without the time that it was held.
        held: for how long it was held, in each hold.
        weights: SHA-256 of the weights of the network that came out; empty if there is none.
    """

    code: int
    seconds: float
    held: list[float]
    weights: str


def main(arguments: Sequence[str]) -> int:
    """Show the demonstration and return the exit code: 0 if the weights are identical.

    Args:
        arguments: what stands behind `daifu demo`.

    Raises:
        UsageError: there is no such option.
    """
    if any(argument in ("-h", "--help") for argument in arguments):
        print(HELP, end="")
        return 0
    if any(argument != "--play" for argument in arguments):
        raise UsageError("`daifu demo` knows only --play and --help")
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        print(
            f"daifu demo: it needs {', '.join(LIBRARIES)}, and {', '.join(missing)} cannot be found here. Install the extra"
            " `demo`: python -m pip install 'daifu_bc[demo]'",
            file=sys.stderr,
        )
        return MISSING_CODE
    with tempfile.TemporaryDirectory(prefix="daifu-demo-") as folder:
        return show(Path(folder), by_hand=policy.at_terminal() and not arguments)


def show(folder: Path, *, by_hand: bool) -> int:
    """Show the demonstration.

    Args:
        folder: an empty folder for its files.
        by_hand: a person at the terminal does the repair.
    """
    started = time.monotonic()
    text = PROGRAM.read_text(encoding="utf-8")
    program, correct = folder / "train.py", folder / "train_correct.py"
    program.write_text(text, encoding="utf-8")
    correct.write_text(text.replace(BUG, REPAIR), encoding="utf-8")
    surgery = surgery_of(text)
    line = text[: text.index(BUG)].count("\n") + 1
    print(INTRODUCTION.format(line=line, bug=BUG, repair=REPAIR, program=program))
    options = ["--journal", str(folder / "journal.jsonl")]
    if by_hand:
        indented = "".join(f"    {part}\n" for part in surgery.splitlines())
        print(INSTRUCTIONS.format(line=line, surgery=indented))
        try:
            input("Press Enter to start. ")
        except EOFError:
            print()
    else:
        playbook = folder / "playbook.txt"
        playbook.write_text(PLAYBOOK.format(surgery=surgery), encoding="utf-8")
        print("A playbook does the repair.\n")
        options += ["--playbook", str(playbook)]
    held = run("daifu run train.py", [sys.executable, "-m", "daifu_bc", "run", *options], program, folder)
    if held.code != 0 or not held.weights:
        print(f"\ndemo: the run ended with exit code {held.code}, so there is nothing to compare.")
        return 1
    print()
    plain = run("python train_correct.py", [sys.executable], correct, folder)
    return compare(held, plain, time.monotonic() - started)


def surgery_of(text: str) -> str:
    """Return the word at the prompt that replaces the function with the bug by the correct one.

    Args:
        text: the program's.
    """
    tree = ast.parse(text)
    (function,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == FUNCTION)
    source = ast.get_source_segment(text, function) or ""
    return f"surgery {FUNCTION} <<END\n{source.replace(BUG, REPAIR)}\nEND"


def run(title: str, command: list[str], program: Path, folder: Path) -> Run:
    """Run one of the training programs, in the terminal that we have ourselves.

    Args:
        title: how a person would have typed it.
        command: what runs a program.
        program: the program.
        folder: where the program's results and the journal are.
    """
    print(f"$ {title}", flush=True)
    weights = folder / "weights"
    weights.unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DAIFU")}
    started = time.monotonic()
    # Ctrl-C at the prompt is meant for the program, which shares the terminal with us. Not ignored: it would inherit that.
    before = signal.signal(signal.SIGINT, _do_nothing)
    try:
        code = subprocess.run([*command, str(program), str(folder)], env=environment, check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)
    held = holds(folder / "journal.jsonl") if "daifu_bc" in command else []
    digest = hashlib.sha256(weights.read_bytes()).hexdigest() if weights.exists() else ""
    return Run(code, time.monotonic() - started - sum(held), held, digest)


def _do_nothing(_signal: int, _frame: FrameType | None) -> None:
    pass


def holds(name: Path) -> list[float]:
    """Return how long each hold lasted that a journal tells of.

    Args:
        name: the journal.
    """
    if not name.exists():
        return []
    lasted: dict[int, float] = {}
    for line in name.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        # The last word of a hold is the one that ended it, and its time is how long it lasted.
        if "hold" in entry and "seconds" in entry:
            lasted[entry["hold"]] = entry["seconds"]
    return list(lasted.values())


def compare(held: Run, plain: Run, seconds: float) -> int:
    """Print what came out of the two runs and return the exit code.

    Args:
        held: the run that crashed and was repaired.
        plain: the run of the correct program.
        seconds: how long the demonstration took.
    """
    identical = bool(held.weights) and held.weights == plain.weights
    rows = [
        ("", "crashed, repaired, went on", "correct from the beginning"),
        ("time of the run", f"{held.seconds:.1f} s", f"{plain.seconds:.1f} s"),
        ("time held", ", ".join(f"{lasted:.2f} s" for lasted in held.held) or "never held", "-"),
        ("SHA-256 of the weights", held.weights[:16], plain.weights[:16] or "none"),
    ]
    print()
    for name, first, second in rows:
        print(f"{name:<24}{first:<28}{second}")
    verdict = "identical, bit for bit" if identical else "NOT identical"
    print(f"\ndemo: the final weights of the two runs are {verdict} ({seconds:.0f} s in all)")
    return 0 if identical else 1
