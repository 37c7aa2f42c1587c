"""Files that are the user's alone: nobody else is to have put something in their place."""

from __future__ import annotations

import os
import stat

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
#: Who may write there may put in what is run, or is read, as ours.
_WRITABLE_BY_OTHERS = 0o022
#: What the user's directory for state is, where there is no home.
COMMON = "/tmp"


def state_directory() -> str:
    """Return the user's directory for what daifu_bc keeps: the journal and the prompt's history."""
    base = os.environ.get("XDG_STATE_HOME", "")
    # The specification has relative paths ignored.
    if not os.path.isabs(base):
        home = os.path.expanduser("~")
        # Batch systems and containers may have none; an empty HOME gives the root of all.
        if not os.path.isabs(home) or home == "/" or not os.path.isdir(home):
            return os.path.join(COMMON, f"daifu_bc-{os.getuid()}")
        base = os.path.join(home, ".local", "state")
    return os.path.join(base, "daifu_bc")


def prepare_state_directory() -> str:
    """Make the user's directory for state if it is not there, and return it.

    Raises:
        OSError: it cannot be made, or is not the user's.
    """
    directory = state_directory()
    os.makedirs(directory, DIRECTORY_MODE, exist_ok=True)
    own = os.geteuid()
    # The link itself, too: in a directory that is open to all, somebody else may have made it.
    if os.lstat(directory).st_uid != own or os.stat(directory).st_uid != own:
        raise PermissionError(f"{directory} belongs to another user")
    if os.stat(directory).st_mode & _WRITABLE_BY_OTHERS:
        raise PermissionError(f"others may write to {directory}")
    return directory


def opened(path: str, flags: int) -> int:
    """Return a descriptor of a file of the user's own, which is made if it is not there.

    Args:
        path: the file.
        flags: of `os.open`.

    Raises:
        OSError: it cannot be opened, or is another user's, or a link.
    """
    flags |= os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, FILE_MODE)
    if os.fstat(descriptor).st_uid != os.geteuid():
        os.close(descriptor)
        raise PermissionError(f"{path} belongs to another user")
    return descriptor


def trusted(status: os.stat_result, *owners: int) -> bool:
    """Tell whether what a file says may be done: it could be anything.

    Args:
        status: the file's.
        owners: users who are trusted, beside this one and root.
    """
    return status.st_uid in (os.geteuid(), 0, *owners) and not status.st_mode & stat.S_IWOTH


def borrowed_rights() -> bool:
    """Tell whether this process has rights that its user has not: whoever asks it for something is not to get them."""
    return os.getuid() != os.geteuid() or os.getgid() != os.getegid()
