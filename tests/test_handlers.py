"""What handlers do, read from bytecode, against what the source says."""

from __future__ import annotations

import textwrap
import types
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from daifu_bc.analysis.code import entry_at
from daifu_bc.analysis.expressions import ANY, GLOBAL, LOCAL, Attribute, Call, Constant, Display, Name, Sum
from daifu_bc.analysis.flow import Flow
from daifu_bc.analysis.handlers import (
    CLAUSES,
    FINALLY,
    PLUMBING,
    WITH_EXIT,
    Clause,
    Handler,
    chain,
    handler_at,
    may_catch,
    thrown_in,
)


def function(source: str, name: str = "f") -> types.CodeType:
    """Compile a module and return the code of one of its functions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = compile(textwrap.dedent(source), "handlers.py", "exec")
    return next(code for code in every_code(module) if code.co_name == name)


def every_code(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from every_code(constant)


def calls_of(flow: Flow, name: str) -> list[int]:
    """Offsets of the calls of `name`: a call follows where its name is loaded."""
    found = []
    for place, instruction in enumerate(flow.instructions):
        if instruction.name in ("LOAD_GLOBAL", "LOAD_NAME"):
            shift = 1 if instruction.name == "LOAD_GLOBAL" else 0
            if flow.code.co_names[instruction.arg >> shift] == name:
                found.append(
                    next(after.offset for after in flow.instructions[place:] if after.name == "CALL")
                )
    return found


def around(source: str, called: str = "crash", which: int = 0) -> list[Handler]:
    """The user's handlers around a call, inner to outer."""
    flow = Flow(function(source))
    return [h for h in chain(flow, calls_of(flow, called)[which]) if h.kind != PLUMBING]


def body(text: str) -> str:
    return "def f():\n" + textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")


def the_clause(text: str) -> Clause:
    (handler,) = around(body(text))
    assert handler.kind == CLAUSES
    (clause,) = handler.clauses
    return clause


def test_kinds_and_order() -> None:
    source = body(
        """
        try:
            with m():
                try:
                    try:
                        crash()
                    finally:
                        log()
                except KeyError:
                    pass
        except* ValueError:
            log()
        """
    )
    assert [handler.kind for handler in around(source)] == [FINALLY, CLAUSES, WITH_EXIT, CLAUSES]
    assert [handler.may_catch for handler in around(source)] == [False, True, False, True]


def test_nothing_around() -> None:
    assert around(body("crash()")) == []


def test_handlers_next_to_it_do_not_count() -> None:
    source = body(
        """
        try: log()
        except KeyError: pass
        crash()
        try: log()
        finally: log()
        """
    )
    assert around(source) == []


def test_inside_a_clause_only_the_outer_ones_count() -> None:
    source = body(
        """
        try:
            try: log()
            except KeyError as e: crash()
            except ValueError: log()
        except OSError: pass
        """
    )
    (handler,) = around(source)
    assert handler.clauses[0].types == Name("OSError", GLOBAL)


def test_inside_finally_and_else() -> None:
    source = body(
        """
        try: log()
        except KeyError: log()
        else: crash()
        finally: crash()
        """
    )
    assert [handler.kind for handler in around(source)] == [FINALLY]
    assert around(source, which=1) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("KeyError", Name("KeyError", GLOBAL)),
        ("local", Name("local", LOCAL)),
        ("os.error", Attribute(Name("os", GLOBAL), "error")),
        ("a.b.c", Attribute(Attribute(Name("a", GLOBAL), "b"), "c")),
        ("(A, B)", Display((Name("A", GLOBAL), Name("B", GLOBAL)))),
        ("()", Constant(())),
        ("A + B", Sum(Name("A", GLOBAL), Name("B", GLOBAL))),
        ("g(A)", Call(Name("g", GLOBAL), (Name("A", GLOBAL),), True)),
        ("local.m(A, 1)", Call(Attribute(Name("local", LOCAL), "m"), (Name("A", GLOBAL), Constant(1)), True)),
        ("g(A, k=1)", Call(Name("g", GLOBAL), (Name("A", GLOBAL),), False)),
        ("g(*A)", Call(Name("g", GLOBAL), (None,), False)),
        ("A if B else C", None),
        ("A or B", None),
        ("A[0]", None),
    ],
)
def test_type_expressions(text: str, expected: object) -> None:
    source = f"def f(local):\n    try: crash()\n    except {text}: log()\n    except Last: log()"
    (handler,) = around(source)
    first, last = handler.clauses
    assert first.types == expected
    assert (first.bare, last.types) == (False, Name("Last", GLOBAL))


def test_names_of_cells_classes_and_modules() -> None:
    source = """
        kind = 1
        def f():
            cell = 1
            def g(): return cell
            try: crash()
            except cell: pass
    """
    flow = Flow(function(source))
    (handler,) = [h for h in chain(flow, calls_of(flow, "crash")[0]) if h.kind == CLAUSES]
    assert handler.clauses[0].types == Name("cell", LOCAL)
    module = compile("try: crash()\nexcept kind: pass", "handlers.py", "exec")
    flow = Flow(module)
    (handler,) = [h for h in chain(flow, calls_of(flow, "crash")[0]) if h.kind == CLAUSES]
    assert handler.clauses[0].types == Name("kind", ANY)


SWALLOWS = [
    "pass",
    "log()",
    "return 1",
    "if c: raise",
    "while c: log()",
    "return log()",
    "try: log()\nexcept ValueError: return 1\nraise",
    "try: raise\nexcept KeyError: pass",
    "for x in y:\n    if x: break\nelse:\n    raise",
    "with m(): return",
    "if c:\n    raise\nelif d:\n    raise e\nelse:\n    log()",
    "match c:\n    case 1: raise\n    case 2: raise",
]
RERAISES = [
    "raise",
    "log(); raise",
    "if c: log()\nraise",
    "if c:\n    raise\nelse:\n    log()\n    raise",
    "try: log()\nexcept ValueError: pass\nraise",
    "try: log()\nfinally: log()\nraise",
    "try: raise\nfinally: log()",
    "with m(): log()\nraise",
    "with m():\n    log()\n    raise",
    "for x in y: log()\nraise",
    "[log(x) for x in y]\nraise",
    "while True:\n    if log(): raise",
    "match c:\n    case 1: raise\n    case _: raise",
    "import m\nraise",
    "def g(): return e\nraise",
]


@pytest.mark.parametrize("head", ["except:", "except E:", "except E as e:", "except (E, F) as e:"])
@pytest.mark.parametrize("text", SWALLOWS + RERAISES)
def test_clauses_that_clean_up(head: str, text: str) -> None:
    if "raise e" in text:
        head = head if " as e" in head else "except E as e:"
    clause = the_clause(f"try: crash()\n{head}\n" + textwrap.indent(text, "    "))
    assert clause.swallows is (text in SWALLOWS)
    assert clause.reraises is ("raise" in text.replace("raise\nexcept KeyError", ""))
    assert clause.raises == ()
    assert clause.bare is (head == "except:")


@pytest.mark.parametrize(
    "text", ["raise e", "raise e from None", "raise e.with_traceback(None)", "log(); raise e"]
)
@pytest.mark.parametrize("before", ["", "nonlocal e\n", "def g(): return e\n"])
def test_the_name_raised_again(text: str, before: str) -> None:
    clause_text = f"try: crash()\nexcept E as e:\n    {text}"
    if before.startswith("nonlocal"):
        source = "def outer():\n    e = 1\n" + textwrap.indent(
            "def f():\n    nonlocal e\n" + textwrap.indent(clause_text, "    "), "    "
        )
    else:
        source = body(before + clause_text)
    (handler,) = around(source)
    (clause,) = handler.clauses
    assert (clause.swallows, clause.reraises, clause.raises) == (False, True, ())
    assert not handler.may_catch


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("raise X", Name("X", GLOBAL)),
        ("raise X from e", Name("X", GLOBAL)),
        ("raise X(1, 2) from e", Call(Name("X", GLOBAL), (Constant(1), Constant(2)), True)),
        ("raise m.X('t')", Call(Attribute(Name("m", GLOBAL), "X"), (Constant("t"),), True)),
        ("raise a or b", None),
    ],
)
def test_what_is_raised_instead(text: str, expected: object) -> None:
    clause = the_clause(f"try: crash()\nexcept E as e: {text}")
    assert (clause.swallows, clause.reraises, clause.raises) == (False, False, (expected,))


def test_several_ends_of_a_clause() -> None:
    clause = the_clause("try: crash()\nexcept E:\n    if a: raise\n    if b: raise X\n    log()")
    assert (clause.swallows, clause.reraises, clause.raises) == (True, True, (Name("X", GLOBAL),))


@pytest.mark.parametrize("text", ["return", "return 1", "if c: return", "raise X"])
def test_a_finally_that_does_not_pass_on(text: str) -> None:
    clause = the_clause(f"try: crash()\nfinally:\n    {text}")
    assert clause.bare
    assert clause.swallows is ("return" in text)


@pytest.mark.parametrize("text", ["break", "continue"])
def test_a_finally_that_goes_on_with_a_loop(text: str) -> None:
    (handler,) = around(body(f"for x in y:\n    try: crash()\n    finally: {text}"))
    assert handler.may_catch


@pytest.mark.parametrize(
    "text",
    [
        "log()",
        "try: log()\nexcept KeyError: pass",
        "try: log()\nexcept KeyError as e: return_ = e",
        "with m() as x: log()",
        "for x in y:\n    if x: break",
        "for x in y:\n    try: log()\n    except KeyError: continue",
        "if c: log()",
        "[log(x) for x in y]",
    ],
)
def test_finally(text: str) -> None:
    (handler,) = around(body("try: crash()\nfinally:\n" + textwrap.indent(text, "    ")))
    assert (handler.kind, handler.clauses, handler.may_catch) == (FINALLY, (), False)


def test_except_star() -> None:
    source = body(
        """
        try: crash()
        except* A: pass
        except* B as e: log()
        except* C: raise
        except* D as e: log(); raise
        except* (E, F):
            if log(): raise
        except* G as e: raise X from e
        except* H:
            try: log()
            except KeyError: pass
        """
    )
    (handler,) = around(source)
    assert all(clause.group for clause in handler.clauses)
    assert [clause.swallows for clause in handler.clauses] == [True, True, False, False, True, False, True]
    assert [clause.reraises for clause in handler.clauses] == [False, False, True, True, True, False, False]
    assert [clause.types for clause in handler.clauses[:2]] == [Name("A", GLOBAL), Name("B", GLOBAL)]
    assert handler.clauses[5].raises == (Name("X", GLOBAL),)
    assert handler.may_catch


def test_except_star_that_only_cleans_up() -> None:
    (handler,) = around(body("try: crash()\nexcept* A: log(); raise\nexcept* B as e: raise"))
    assert not handler.may_catch


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_managers(kind: str) -> None:
    source = f"""
        {kind} f(local):
            {"async " if kind == "async def" else ""}with suppress(A, b.C) as x, local, m.make(local) as y.z: crash()
    """
    handlers = around(source)
    assert [handler.manager for handler in handlers] == [
        Call(Attribute(Name("m", GLOBAL), "make"), (Name("local", LOCAL),), True),
        Name("local", LOCAL),
        Call(Name("suppress", GLOBAL), (Name("A", GLOBAL), Attribute(Name("b", GLOBAL), "C")), True),
    ]
    # What `async with` awaits lies between its entry and the assignment.
    assert handlers[2].bound == Name("x", LOCAL)
    assert handlers[1].bound is None


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    yield crash()",
        "async def f():\n    await crash()",
        "async def f():\n    async for x in crash(): log()",
        "async def f():\n    async for x in y: crash()",
        "async def f():\n    yield crash()",
        "def f():\n    return [crash(x) for x in y]",
        "def f():\n    yield from crash()",
    ],
)
def test_the_interpreters_own(source: str) -> None:
    flow = Flow(function(source))
    assert (
        around(source, "crash" if calls_of(flow, "crash") else "y") == [] if calls_of(flow, "crash") else True
    )
    assert all(handler_at(flow, entry).kind == PLUMBING for entry in flow.entries)
    assert not any(may_catch(flow, entry) for entry in flow.entries)


def test_thrown_in() -> None:
    flow = Flow(function("def f():\n    x = yield 1\n    yield from x\n    crash()"))
    yields = [place for place, i in enumerate(flow.instructions) if i.name == "YIELD_VALUE"]
    assert [thrown_in(flow, place) for place in yields] == [True, False]
    assert [thrown_in(flow, place + 1) for place in yields] == [True, False]
    assert not thrown_in(flow, flow.index[calls_of(flow, "crash")[0]])


def test_answers_are_kept_with_the_flow() -> None:
    flow = Flow(function(body("try: crash()\nexcept E: pass")))
    entry = entry_at(flow.entries, calls_of(flow, "crash")[0])
    assert entry is not None
    assert handler_at(flow, entry) is handler_at(flow, entry)


def test_the_standard_library_is_understood() -> None:
    """Every handler of some big modules has a kind, and every chain comes to an end."""
    import argparse
    import asyncio.tasks
    import concurrent.futures.process
    import contextlib
    import logging
    import tarfile
    import threading

    kinds: set[tuple[str, bool]] = set()
    for module in (
        argparse,
        asyncio.tasks,
        concurrent.futures.process,
        contextlib,
        logging,
        tarfile,
        threading,
    ):
        assert module.__file__ is not None
        for code in every_code(
            compile(Path(module.__file__).read_text(encoding="utf-8"), module.__file__, "exec")
        ):
            flow = Flow(code)
            for entry in flow.entries:
                handler = handler_at(flow, entry)
                kinds.add((handler.kind, handler.may_catch))
                assert (handler.kind == CLAUSES) is bool(handler.clauses)
                assert len(chain(flow, entry.start)) <= len(flow.entries)
    assert kinds == {
        (CLAUSES, True),
        (CLAUSES, False),
        (FINALLY, False),
        (WITH_EXIT, False),
        (PLUMBING, False),
    }
