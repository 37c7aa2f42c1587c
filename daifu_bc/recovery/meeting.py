"""Where runs and those who look for them meet: a directory that is the user's alone."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Final

from daifu_bc.errors import DaifuError
from daifu_bc.recovery.private import COMMON, DIRECTORY_MODE, borrowed_rights

_OTHERS: Final = 0o077


class AttachError(DaifuError):
    """A run cannot be reached. The text says what stands in the way."""

    slug = "attach"


def directories() -> list[str]:
    """Return the directories where runs may be, the best one first."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    best = [os.path.join(base, "daifu_bc")] if os.path.isabs(base) and _is_own(base) else []
    # Not what TMPDIR says, which may be another one for each job.
    return [*best, os.path.join(COMMON, f"daifu_bc-{os.getuid()}")]


def _is_own(path: str) -> bool:
    try:
        return os.stat(path).st_uid == os.getuid()
    except OSError:  # it ends with the user's last session, for one
        return False


def directories_of(pid: int) -> tuple[int, list[str]]:
    """Return whose process it is, and where it may be found, for root, who is told all that.

    Args:
        pid: the process's number.

    Raises:
        OSError: there is no such process, or the system does not tell.
    """
    user = os.stat(f"/proc/{pid}").st_uid
    with open(f"/proc/{pid}/environ", "rb") as file:
        variables = dict(entry.partition(b"=")[::2] for entry in file.read().split(b"\0"))
    base = os.fsdecode(variables.get(b"XDG_RUNTIME_DIR", b""))
    best = [os.path.join(base, "daifu_bc")] if os.path.isabs(base) else []
    return user, [*best, os.path.join(COMMON, f"daifu_bc-{user}")]


def check(path: str, user: int | None = None) -> None:
    """See that a directory is a user's alone.

    Args:
        path: it.
        user: the user's number; this process's if it is left out.

    Raises:
        AttachError: it is not.
        OSError: it is not there.
    """
    user = os.getuid() if user is None else user
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        reason = "it is a symbolic link"
    elif not stat.S_ISDIR(found.st_mode):
        reason = "it is no directory"
    elif found.st_uid != user:
        reason = f"it belongs to another user ({found.st_uid})"
    elif found.st_mode & _OTHERS:
        reason = f"others may enter it (its mode is {stat.S_IMODE(found.st_mode):04o}, not 0700)"
    else:
        return
    raise AttachError(f"{path} is not used", why=reason, remedy="Remove it, or set XDG_RUNTIME_DIR.")


def place(known: str = "") -> str:
    """Return the directory for this process, which is made if it is not there.

    Args:
        known: where it has been found until now; nothing if nowhere.

    Raises:
        AttachError: there is none that is the user's alone.
        OSError: it cannot be made.
    """
    if borrowed_rights():
        raise AttachError("nobody may attach", why="the program runs with another user's rights")
    directory = known or directories()[0]
    with contextlib.suppress(FileExistsError):
        os.mkdir(directory, DIRECTORY_MODE)
        os.chmod(directory, DIRECTORY_MODE)  # the program's umask may have taken of it
    check(directory)
    return directory


def is_possible() -> bool:
    """Tell whether there is such a directory."""
    try:
        place()
    except (AttachError, OSError):
        return False
    return True
