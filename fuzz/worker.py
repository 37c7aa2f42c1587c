"""The process that examines cases: a case per line in; what it is doing and then a report, a line each, out."""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import traceback
from pathlib import Path

from fuzz.case import Case, Report
from fuzz.oracles import Examiner

#: A program must not take the memory of all.
MOST_MEMORY = 3 << 30


def serve() -> None:
    """Answer cases until the input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    cases = os.fdopen(os.dup(0), "r")
    replies = os.fdopen(os.dup(1), "w")
    # Programs get nothing of the protocol: they read nothing, and what they print goes where errors go.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)

    def reply(kind: str, value: object) -> None:
        replies.write(json.dumps([kind, value]) + "\n")
        replies.flush()

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        examiner = Examiner(Path(folder), lambda name: reply("stage", name))
        for line in cases:
            case = Case(**json.loads(line))
            try:
                report = examiner.examine(case)
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                if _is_ours(error):
                    report = Report([f"oracle: {traceback.format_exc()}"])
                else:
                    report = Report(usable=False)
            except BaseException:
                report = Report([f"oracle: {traceback.format_exc()}"])
            reply("report", report.to_json())


def _is_ours(error: BaseException) -> bool:
    return any("daifu_bc" in frame.filename for frame in traceback.extract_tb(error.__traceback__))


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    serve()
