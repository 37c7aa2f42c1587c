"""Vaccinated functions in other interpreters of the process (PEP 734)."""

from __future__ import annotations

from pathlib import Path

import pytest

from daifu_bc import pyversion
from tests.playing import ROOT, python

pytestmark = pytest.mark.skipif(
    not pyversion.SCRIPTS_RETURN_NONE, reason="there is no concurrent.interpreters"
)

PROGRAM = """
import sys
from concurrent import interpreters

def script():
    import sys
    try:
        import helper
        print(helper.half(4), flush=True)
    finally:
        print('left', flush=True)

def crash():
    with open('/dev/null'):
        raise ValueError('there')

def only_raises():
    raise KeyError('nothing is returned')

inner = interpreters.create()
inner.call(script)
inner.exec('import helper, sys; print(helper.half(6), sys.path[0], flush=True)')
for function in (crash, only_raises):
    try:
        inner.call(function)
    except interpreters.ExecutionFailed as error:
        print(str(error).splitlines()[0])
inner.close()
print(len(script.__code__.co_code) > 200)
"""


@pytest.mark.parametrize("vaccinated", ["0", "1"])
def test_a_function_runs_in_another_interpreter(tmp_path: Path, vaccinated: str) -> None:
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "sitecustomize.py").write_text("from daifu_bc.install import child\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "helper.py").write_text("def half(number):\n    return number // 2\n")
    run = python(
        tmp_path,
        ["-X", "faulthandler", "program.py"],
        PYTHONPATH=f"{tmp_path / 'start'}:{ROOT}",
        DAIFU=vaccinated,
    )
    folder = str(tmp_path.resolve())
    lines = ["2", "left", f"3 {folder}", "ValueError: there", "KeyError: 'nothing is returned'"]
    assert run.stderr == ""
    assert run.stdout.splitlines() == [*lines, str(vaccinated == "1")]
