"""The process that runs test programs: a job per line in, an outcome per line out.

Running programs somewhere else lets a test survive, and name, a program that kills the interpreter.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import sys
import tempfile
from pathlib import Path

from tests.programs.run import Job, run
from tests.programs.world import Plan


def serve() -> None:
    """Answer jobs until the input ends."""
    # The protocol gets a descriptor of its own, so that nothing a program prints can get into it.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            description = json.loads(line)
            description["plan"] = Plan(**description["plan"])
            outcome = run(Job(**description), Path(folder))
            # A run ends with a collection; what is there to stay, such as the engine, need not be looked through.
            gc.freeze()
            replies.write(json.dumps(dataclasses.asdict(outcome)) + "\n")
            replies.flush()


if __name__ == "__main__":
    serve()
