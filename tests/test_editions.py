"""What a surgery leaves behind in the process: the new edition's text and barriers, and little else."""

from __future__ import annotations

from pathlib import Path

from tests.test_ways_on import run

MAKER = """
from flaky import bad
from daifu_bc.rewrite.barrier import is_vaccinated
def make(k):
    bad(k)
    made = lambda: bad(k)
    bad(k + 1)
    return made
print(is_vaccinated(make(1).__code__))
print(is_vaccinated(make(5).__code__))
"""

COUNTED = """
from flaky import bad
from daifu_bc.recovery import bodies, restarts
def operated(k):
    bad(k)
    return [k for _ in range(0)]
sizes = []
for k in range(20):
    operated(k)
    sizes.append(len(bodies._kept) + len(bodies._built) + len(restarts._tables))
print(sizes[10:] == sizes[9:-1], sizes)
"""


def test_an_edition_has_barriers_and_its_own_text(tmp_path: Path) -> None:
    edit = "import pathlib; file = pathlib.Path('program.py')"
    playbook = (
        f"action {edit}; file.write_text(file.read_text().replace('    made', '\\n    other = 1\\n    made', 1))\n"
        "surgery\npass\n---\n"
        "skip\n---\n"
        "skip\n---\n"
        "list\nskip\n"
    )
    result = run(tmp_path, MAKER, playbook)
    assert result.stdout == "True\nTrue\n", result.stderr
    listed = result.stderr.rpartition("> list")[2]
    assert "9      bad(k + 1)" in listed.replace(">", " "), result.stderr


def test_nothing_is_kept_of_old_editions(tmp_path: Path) -> None:
    edits = [
        f"surgery operated <<END\ndef operated(k):\n    bad(k)\n    return [k for _ in range({n})]\nEND\npass\n"
        for n in range(1, 21)
    ]
    result = run(tmp_path, COUNTED, "---\n".join(edits))
    assert result.stdout.startswith("True"), result.stdout + result.stderr
