"""What a user may say about holding, in one table: by an option of `daifu run`, in the environment, in pyproject.toml."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from daifu_bc.analysis import filters
from daifu_bc.errors import UsageError
from daifu_bc.recovery import (
    attaching,
    debuggers,
    journal,
    last_will,
    notification,
    policy,
    repetition,
    rules,
)
from daifu_bc.recovery import pause_signal as pausing

Kind = Literal["file", "names", "switch", "text", "words"]


class Option(NamedTuple):
    """Something that a user may say.

    Attributes:
        name: that of the option, without dashes in front, and of the key in pyproject.toml.
        variable: that of the environment; it is how child processes come to know.
        kind: `file` is made absolute, as the program may change its directory; `names` is a list; `switch` takes no
            value, and is taken back by `--no-NAME`; `words` may be the name of a file, which is made absolute.
        value: how the value is called in the help; nothing for a switch.
        help: what it does; the lines are broken as they stand.
        check: returns the value as it is to stand in the environment, or raises UsageError.
        in_project: whether it may stand in pyproject.toml.
    """

    name: str
    variable: str
    kind: Kind
    value: str
    help: str
    check: Callable[[str], str] = str
    in_project: bool = True

    def read(self, value: Any, path: str) -> str:
        """Return the value of a key in pyproject.toml, as it is to stand in the environment.

        Args:
            value: what stands there.
            path: the file.

        Raises:
            UsageError: it is not of the right kind, or wrong.
        """
        if self.kind == "names":
            if isinstance(value, list) and all(isinstance(name, str) for name in value):
                return self.check(",".join(value))
            raise UsageError(
                f"{self.name} in {path} is no list of names", remedy=f'Write {self.name} = ["fit"], say.'
            )
        if self.kind == "switch":
            if isinstance(value, bool):
                return str(int(value))
            raise UsageError(f"{self.name} in {path} is neither true nor false")
        if self.kind == "words":
            file = os.path.join(os.path.dirname(path), str(value))
            return file if os.path.isfile(file) else str(value)
        if self.kind == "file":
            return os.path.join(os.path.dirname(path), str(value))
        return self.check(str(value))


OPTIONS: Final = (
    Option(
        "playbook",
        policy.PLAYBOOK_VARIABLE,
        "file",
        "FILE",
        "answer holds from FILE, one block of words for each, blocks separated by a line `---`",
        in_project=False,
    ),
    Option(
        "policy",
        rules.VARIABLE,
        "file",
        "FILE",
        "rules that answer holds before anybody else does: TOML, a table [[on]] for each",
        in_project=False,
    ),
    Option(
        "journal",
        journal.VARIABLE,
        "file",
        "FILE",
        "write what is held and done there; default: $XDG_STATE_HOME/daifu_bc/journal.jsonl,\n"
        "under ~/.local/state if that is not set",
        in_project=False,
    ),
    Option(
        "hold-through",
        filters.HOLD_THROUGH,
        "names",
        "NAMES",
        "functions whose `except Exception` and the like do not count: what they would catch is held.\n"
        "NAMES are separated by commas: fit, Trainer.fit, package.module:Trainer.fit, file.py:fit;\n"
        "`*` stands for anything",
        filters.as_text,
    ),
    Option(
        "leave-to",
        filters.LEAVE_TO,
        "names",
        "NAMES",
        "functions that deal with what is raised in them and in what they call: never held",
        filters.as_text,
    ),
    Option(
        "hold-keyboard-interrupt",
        filters.KEYBOARD_INTERRUPT,
        "switch",
        "",
        "hold Ctrl-C, too",
    ),
    Option(
        "pause-signal",
        pausing.VARIABLE,
        "text",
        "NAME",
        "the signal that stops the running program at its next statement, as long as it has no use for it\n"
        "itself: SIGUSR1 if left out; none for no signal",
        pausing.checked,
    ),
    Option(
        "retry-limit",
        repetition.VARIABLE,
        "text",
        "N",
        "after how many retries that change nothing a playbook's block `repeat` gives up: 3 if left out,\n"
        "none for no limit",
        repetition.checked,
    ),
    Option(
        "last-will",
        last_will.VARIABLE,
        "words",
        "WORDS|FILE",
        "what to do before a SIGTERM ends the program, at its next statement or where it is held: code\n"
        "or other words, or a file of them, or a .py file",
    ),
    Option(
        "grace",
        last_will.GRACE,
        "text",
        "SECONDS",
        "for how long the end may be put off so: 20 if left out",
        last_will.checked_grace,
    ),
    Option(
        "attach",
        attaching.VARIABLE,
        "switch",
        "",
        "where neither a playbook nor a terminal answers, wait for `daifu attach`; this is so anyway where\n"
        "there is a folder for the socket. With --no-attach the exception goes on at once",
    ),
    Option(
        "debugpy",
        debuggers.VARIABLE,
        "text",
        "[HOST:]PORT",
        "let VS Code, or another debugger, attach there and see what is held; 0 for any free port.\n"
        "HOST is this machine if left out",
        debuggers.checked,
    ),
    Option(
        "debugpy-allow-remote",
        debuggers.REMOTE,
        "switch",
        "",
        "HOST may be one that other machines reach; a token is printed, which they need",
    ),
    Option(
        "attach-root",
        attaching.ROOT,
        "switch",
        "",
        "root may attach as well, and not only you",
    ),
    Option(
        "hold-timeout",
        attaching.TIMEOUT,
        "text",
        "SECONDS",
        "for how long, from the last word that was typed: 1800 if left out, none for no limit",
        attaching.checked_timeout,
    ),
    Option(
        "on-timeout",
        attaching.ON_TIMEOUT,
        "text",
        "raise",
        "what then becomes of the hold: the exception goes on",
        attaching.checked_answer,
    ),
    Option(
        "notify",
        notification.COMMAND,
        "text",
        "COMMAND",
        "when the run is held, resumed, or nobody has come in time, have the shell run COMMAND, with a JSON\n"
        "object that tells of it on its standard input; the run does not wait for it",
    ),
    Option(
        "webhook",
        notification.ADDRESS,
        "text",
        "URL",
        "post that object to URL, http or https; a URL that is a secret had better stand in DAIFU_WEBHOOK",
        notification.checked_address,
    ),
    Option(
        "journal-values",
        journal.VALUES,
        "switch",
        "",
        "values may be written down: the texts of exceptions, which are then told, too, and in the journal\n"
        "the variables of the line that failed",
    ),
)
