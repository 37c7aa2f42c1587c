"""The new body reaches every function of the text, wherever it is kept; what is printed is worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.playing import play

#: Each keeps a function in `kept`, and nothing else leads there, and asks for what it says.
KEEPERS = {
    "cached": ("@functools.lru_cache\ndef kept():\n    return 'old'\n", "kept()"),
    "cached, in a class": (
        "class Shape:\n    @functools.cached_property\n    def area(self):\n        return 'old'\n",
        "Shape().area",
    ),
    "partial object": (
        "def make():\n    def inner():\n        return 'old'\n    return functools.partial(inner)\nkept = make()\n",
        "kept()",
    ),
    "registered callback": (
        (
            "class Hooks:\n    def __init__(self):\n        self.hooks = []\n    def add(self, hook):\n"
            "        self.hooks.append(hook)\nhooks = Hooks()\n@hooks.add\ndef hook():\n    return 'old'\n"
        ),
        "hooks.hooks[0]()",
    ),
    "closure in a mapping": (
        "def make(n):\n    def inner():\n        return 'old' * n\n    return inner\nkept = {'one': make(1)}\n",
        "kept['one']()",
    ),
    "one of a name for several": (
        (
            "@functools.singledispatch\ndef say(x):\n    return ''\n@say.register\ndef _(x: int):\n    return 'old'\n"
            "@say.register\ndef _(x: str):\n    return 'old ' + x\n"
        ),
        "say(1), say('s')",
    ),
    "descriptor": (
        (
            "class Lazy:\n    def __init__(self, f):\n        self.f = f\n    def __get__(self, thing, owner):\n"
            "        return self.f(thing)\nclass Shape:\n    @Lazy\n    def area(self):\n        return 'old'\n"
        ),
        "Shape().area",
    ),
    "local of a generator that waits": (
        (
            "def numbers():\n    def local():\n        return 'old'\n    yield\n    yield local()\nkept = numbers()\n"
            "next(kept)\n"
        ),
        "next(kept)",
    ),
    "not defined yet": ("", "later()"),
    "method of a class that is not defined yet": ("", "Later().area()"),
}
CRASH = "def crash(x):\n    return 1 / x\ncrash(0)\n"
LATER = "def later():\n    return 'old'\nclass Later:\n    def area(self):\n        return 'old'\n"


@pytest.mark.parametrize("keeper", KEEPERS)
def test_an_edit_reaches_a_function_that_is_kept(keeper: str, tmp_path: Path) -> None:
    kept, asked = KEEPERS[keeper]
    program = f"import functools\n{kept}{CRASH}{LATER}print({asked})\n"
    (tmp_path / "edited.py").write_text(program.replace("'old", "'new").replace("1 / x", "1"))
    ended = play(tmp_path, program, "surgery edited.py\npass")
    expected = "new new s" if keeper == "one of a name for several" else "new"
    assert (ended.stdout, ended.returncode) == (f"{expected}\n", 0), ended.stderr


def test_an_edit_of_the_lambda_that_is_held_reaches_its_function(tmp_path: Path) -> None:
    program = "half = [lambda x: x / 0]\nprint(half[0](4))\nprint(half[0](6))\n"
    (tmp_path / "edited.py").write_text(program.replace("x / 0", "x // 2"))
    ended = play(tmp_path, program, "surgery edited.py\npass")
    assert (ended.stdout, ended.returncode) == ("2\n3\n", 0), ended.stderr


NESTED = """
def work(n):
    def share(x):
        return x
    total = share(n) // 0
    return total, share(n)
print(work(4))
"""


def test_a_local_function_that_cannot_have_a_new_variable_does_not_stand_in_the_way(tmp_path: Path) -> None:
    """Nothing has a cell for `scale`; `restart` defines the function anew."""
    edited = NESTED.replace("    def share", "    scale = 3\n    def share").replace(
        "return x", "return x * scale"
    )
    (tmp_path / "edited.py").write_text(edited.replace("// 0", "// 2"))
    ended = play(tmp_path, NESTED, "surgery edited.py\nrestart")
    assert (ended.stdout, ended.returncode) == ("(6, 12)\n", 0), ended.stderr
    assert "work.<locals>.share is new as soon as its outer function runs again" in ended.stderr


def test_a_local_function_of_the_running_call_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "edited.py").write_text(NESTED.replace("return x", "return x * 3").replace("// 0", "// 2"))
    ended = play(tmp_path, NESTED, "surgery edited.py\npass")
    assert (ended.stdout, ended.returncode) == ("(6, 12)\n", 0), ended.stderr


def test_a_local_function_whose_default_comes_from_the_running_call_does_not_stand_in_the_way(
    tmp_path: Path,
) -> None:
    edited = NESTED.replace("share(x):", "share(x, by=n):").replace("return x", "return x * by")
    (tmp_path / "edited.py").write_text(edited.replace("// 0", "// 2"))
    ended = play(tmp_path, NESTED, "surgery edited.py\nrestart")
    assert (ended.stdout, ended.returncode) == ("(8, 16)\n", 0), ended.stderr
