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


GLOBAL = """
limit, other = 0, 1
def f(n):
    def inner(): return n + limit
    total = math.sqrt(n) + inner()
    return total
print(f(4), limit, other)
"""

REMARK = "`{0}` is known at this prompt only; the function looks it up in its module. `global {0}` in front"


def test_a_name_that_the_function_does_not_see_is_told(tmp_path: Path) -> None:
    playbook = "import math\nlimit = 3\nother = 3\nn = 9\ntotal = 1\nglobal math, limit; import math; limit = 2\npass"
    ended = run(tmp_path, GLOBAL, playbook)
    assert ended.stdout == "14.0 2 1\n"
    assert ended.stderr.count("is known at this prompt only") == 2
    assert REMARK.format("math") in ended.stderr
    assert REMARK.format("limit") in ended.stderr


def test_the_names_of_a_module_are_its_own(tmp_path: Path) -> None:
    ended = run(tmp_path, "print(math.floor(2.5))\n", "import math\npass")
    assert ended.stdout == "2\n"
    assert "known at this prompt" not in ended.stderr
