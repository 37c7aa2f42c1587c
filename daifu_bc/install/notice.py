"""What daifu_bc says on standard error on its own account: each thing once, and never at the program's expense."""

from __future__ import annotations

import sys

_said: set[str] = set()


def say_once(subject: str, text: str) -> None:
    """Write a message to standard error, unless one about the same subject was written before.

    Args:
        subject: what the message is about; the first message about it is the only one.
        text: one or more sentences, with what to do about it.
    """
    if subject in _said:
        return
    _said.add(subject)
    try:
        sys.stderr.write(f"daifu_bc: {text}\n")
        sys.stderr.flush()
    except Exception:  # noqa: BLE001 - a closed, full or replaced standard error is no reason to stop the program
        return


def report_failure(action: str, error: BaseException) -> None:
    """Report, once in a process, that something of ours failed and that the program was left as it was.

    Args:
        action: what daifu_bc was about to do, as in "vaccinate train.py".
        error: what came of it.
    """
    say_once(
        "failure",
        f"could not {action}: {type(error).__name__}: {error}. The program is untouched and runs on; a crash "
        "in that code will not be held. Please report this with the message above; DAIFU_DISABLE=1 turns "
        "daifu_bc off. Further failures of this kind are not reported.",
    )
