"""What actions do to the frame that they run in."""

from __future__ import annotations

from pathlib import Path

from tests.running import run

PROGRAM = """
import weakref
class Precious: pass
def f(n, e):
    x = 1 // n
    return x, n, e
print(f(0, "kept"))
"""


def test_names_are_deleted(tmp_path: Path) -> None:
    playbook = """
action <<END
try:
    {}["first"]
except KeyError as new:
    n = 5
assert "new" not in locals() and "n" in locals()
other = n
del other
assert [name for name in ("other", "new", "x") if name in locals()] == []
END
pass
"""
    ended = run(tmp_path, PROGRAM, playbook)
    assert ended.stdout == "(0, 5, 'kept')\n"


def test_a_variable_of_the_function_is_deleted(tmp_path: Path) -> None:
    """The frame has no other way to say so than None; before 3.13 it is as it was."""
    ended = run(tmp_path, PROGRAM, "action n = 5; del e\npass\n")
    assert ended.stdout in ("(0, 5, None)\n", "(0, 5, 'kept')\n")
    assert "raised" not in ended.stderr
