"""The exit codes of the command `daifu`, but for those of the programs that it runs."""

from __future__ import annotations

from typing import Final

#: Something could not be done: words in a run, or writing what was to be shown.
FAILED: Final = 1
#: It was called wrongly, or a playbook or rules have a mistake.
USAGE: Final = 2
#: What the shell reports for a program that Ctrl-C, or a closed pipe, has ended.
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
