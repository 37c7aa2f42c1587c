"""What the figures were measured on."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

from benchmarks.pairs import FOLDER

#: What pyperf knows of a machine and matters here; its name and its users do not.
KNOWN = (
    "aslr",
    "cpu_config",
    "cpu_count",
    "cpu_freq",
    "cpu_model_name",
    "load_avg_1min",
    "perf_version",
    "platform",
    "python_compiler",
    "python_implementation",
    "runnable_threads",
)


def describe() -> dict[str, Any]:
    """Interpreter, processor and load, and which state of the project it was."""
    found: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": sys.version,
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "load_average": list(os.getloadavg()),
        "commit": _commit(),
    }
    if importlib.util.find_spec("pyperf") is not None:
        pyperf = importlib.import_module("pyperf")
        metadata = pyperf.Run([1.0], collect_metadata=True).get_metadata()
        found.update((name, metadata[name]) for name in KNOWN if name in metadata)
    return found


def _commit() -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(FOLDER), "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except OSError:
        return ""
    return done.stdout.strip()
