"""Our decoding of code objects against that of the `bytecode` package, over modules of the standard library."""

from __future__ import annotations

import argparse
import ast
import asyncio.base_events
import contextlib
import inspect
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType

import pytest
from bytecode import ConcreteBytecode

from daifu_bc.analysis.code import decode, encode_exception_entries, exception_entries

MODULES = [argparse, ast, asyncio.base_events, contextlib, inspect, traceback]


def code_objects(module: ModuleType) -> Iterator[CodeType]:
    path = Path(str(module.__file__))
    work = [compile(path.read_bytes(), str(path), "exec", dont_inherit=True)]
    while work:
        code = work.pop()
        yield code
        work += [constant for constant in code.co_consts if isinstance(constant, CodeType)]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.__name__))
def test_instructions(module: ModuleType) -> None:
    for code in code_objects(module):
        theirs = [
            (one.name, one.arg if type(one.arg) is int else 0)
            for one in ConcreteBytecode.from_code(code)
            if getattr(one, "name", "CACHE") != "CACHE"
        ]
        ours = [(one.name, one.arg or 0) for one in decode(code)]
        # An argument that an instruction does not use is told by one and not by the other.
        assert [name for name, _ in ours] == [name for name, _ in theirs], code
        used = [(a, b) for a, b in zip(ours, theirs, strict=True) if b[1]]
        assert all(a == b for a, b in used), code


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.__name__))
def test_exception_tables(module: ModuleType) -> None:
    for code in code_objects(module):
        ours = exception_entries(code.co_exceptiontable)
        theirs = [
            # In units of two bytes, and the last one included.
            (one.start_offset * 2, one.stop_offset * 2 + 2, one.target * 2, one.stack_depth, one.push_lasti)
            for one in ConcreteBytecode.from_code(code).exception_table
        ]
        assert [tuple(entry) for entry in ours] == theirs, code
        assert encode_exception_entries(ours) == code.co_exceptiontable


def test_long_arguments_are_put_together() -> None:
    names = "\n".join(f"name{number} = {number}" for number in range(70000))
    code = compile(names, "<many>", "exec")
    stores = [one for one in decode(code) if one.name == "STORE_NAME"]
    assert [one.arg for one in stores] == list(range(70000))
    assert sys.getsizeof(code.co_code) > 70000 * 4
