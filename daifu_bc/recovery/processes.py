"""Which process it is that has a number: numbers are given again, and each container counts its own."""

from __future__ import annotations

import contextlib
import os
from typing import Final

_BOOT: Final = "/proc/sys/kernel/random/boot_id"
#: In /proc/PID/stat, behind the name: when the process was started, in ticks since the system was.
_STARTED: Final = 19


def identity(pid: int) -> str:
    """Return what tells a process from all others that have, or had, its number here; empty if it is not there.

    Args:
        pid: its number.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # Its name stands in brackets, and may be anything.
            fields = file.read().rpartition(b")")[2].split()
        if fields[0] in (b"Z", b"X"):  # it has ended, and nobody has taken note of it yet
            return ""
        return f"{_boot()}:{int(fields[_STARTED])}"
    except (OSError, ValueError, IndexError):
        return _without_proc(pid)


def _boot() -> str:
    with open(_BOOT, encoding="ascii") as file:
        return file.read().strip()


def _without_proc(pid: int) -> str:
    if os.path.isdir("/proc/self"):
        return ""
    # Elsewhere a program tells it. Imported here, as it is seldom needed.
    import subprocess

    with contextlib.suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run(
            ["ps", "-o", "lstart=", "-p", str(pid)],
            env={"LC_ALL": "C", "TZ": "UTC", "PATH": "/bin:/usr/bin"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
        return " ".join(told.stdout.split())
    return ""


def namespace() -> str:
    """Return which numbering of processes this one belongs to; empty if the system has only one."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def catches(pid: int, signal: int) -> bool | None:
    """Tell whether a process has a handler for a signal; None if the system does not tell.

    Args:
        pid: its number.
        signal: the signal's.
    """
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("SigCgt:"):
                    return bool(int(line.split()[1], 16) >> (signal - 1) & 1)
    except (OSError, ValueError, IndexError):
        pass
    return None
