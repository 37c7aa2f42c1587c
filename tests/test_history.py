"""Surgeries are taken back, and written down as a diff that `git apply` takes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from daifu_bc.recovery.patch import merged
from tests.playing import play

PROGRAM = """# a comment
def f(x):
    # keep me
    y = 1 / x   # why
    return y

class C:
    def m(self, d=1):   # spaces  kept
        return g(0) + d

def g(n):
    return 10 // n
print(f(0))
print(C().m())
print("end")
"""

F = "surgery f <<END\ndef f(x):\n    # keep me\n    y = {} / (x or 1)   # why\n    return y\nEND\n"
G = "surgery g <<END\ndef g(n):\n    n = n or 5\n    return 10 // n\nEND\n"


def run(folder: Path, words: str, program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    return play(folder, program, words, DAIFU_JOURNAL="journal")


def test_an_undone_surgery_is_gone(tmp_path: Path) -> None:
    words = F.format(1) + F.format(2) + "undo\nundo\naction x = 4\npass\n---\n" + G + "pass\n"
    ended = run(tmp_path, words)
    assert ended.stdout == "0.25\n3\nend\n", ended.stderr
    assert ended.stderr.count("surgery f is taken back") == 2


def test_after_one_undo_the_surgery_before_it_counts(tmp_path: Path) -> None:
    ended = run(tmp_path, F.format(1) + F.format(2) + "undo\npass\n---\n" + G + "pass\n")
    assert ended.stdout == "1.0\n3\nend\n", ended.stderr


def test_nothing_to_undo_is_said(tmp_path: Path) -> None:
    ended = run(tmp_path, "undo\n")
    assert "there is no surgery to take back" in ended.stderr


def test_defaults_and_new_functions_are_taken_back(tmp_path: Path) -> None:
    edited = PROGRAM.replace("d=1", "d=7").replace("def g(n):", "def h(): pass\ndef g(n):")
    (tmp_path / "edited.py").write_text(edited)
    words = "surgery edited.py\naction assert C.m.__defaults__ == (7,) and h\nundo\n"
    words += "action assert C.m.__defaults__ == (1,) and 'h' not in globals()\naction x = 1\npass\n---\naction n = 1\npass\n"
    ended = run(tmp_path, words)
    assert ended.stdout == "1.0\n11\nend\n", ended.stderr


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n"])
def test_the_patch_is_the_diff_of_what_was_changed(ends: str, last: str, tmp_path: Path) -> None:
    program = PROGRAM.rstrip("\n").replace("\n", ends) + last.replace("\n", ends)
    words = F.format(2) + "pass\n---\n" + G + "patch out.diff\npass\n"
    ended = run(tmp_path, words, program)
    assert ended.stdout == "2.0\n3\nend\n", ended.stderr
    git = shutil.which("git")
    assert git is not None
    subprocess.run([git, "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run([git, "apply", "out.diff"], cwd=tmp_path, check=True)
    changed = program.replace("y = 1 / x ", "y = 2 / (x or 1) ")
    changed = changed.replace(f"def g(n):{ends}", f"def g(n):{ends}    n = n or 5{ends}")
    assert (tmp_path / "program.py").read_bytes() == changed.encode()


def test_what_is_in_the_file_already_is_not_in_the_patch(tmp_path: Path) -> None:
    words = (
        "action open('program.py', 'w').write(open('edited.py').read()) and None\nsurgery\npatch\npass\n---\n"
    )
    (tmp_path / "edited.py").write_text(PROGRAM.replace("1 / x", "8 / (x or 1)"))
    ended = run(tmp_path, words + "action n = 5\npass\n")
    assert "No surgery has changed anything that is not in the files." in ended.stderr
    assert ended.stdout == "8.0\n3\nend\n"


def test_the_journal_has_each_surgery_as_text(tmp_path: Path) -> None:
    (tmp_path / "edited.py").write_text(PROGRAM.replace("1 / x", "8 / (x or 1)"))
    run(tmp_path, "surgery edited.py\nundo\n")
    journal = (tmp_path / "journal").read_text()
    assert "+    y = 8 / (x or 1)   # why" in journal
    assert '"event": "undo"' in journal


def test_changes_are_merged_into_a_text_that_has_moved() -> None:
    old, new = "a\nb\nc\nd\n", "a\nB\nc\nd\ne\n"
    assert merged(old, new, "0\n" + old) == ("0\na\nB\nc\nd\ne\n", [])
    assert merged(old, new, new) == (new, [])
    text, conflicts = merged(old, new, "a\nx\nc\nd\n")
    assert (text, len(conflicts)) == ("a\nx\nc\nd\ne\n", 1)
