"""The verdict against the truth: a program's exception is held if, in the plain run, it escapes the outermost frame."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import threading
import unittest
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import pytest

from daifu_bc.integrations import asyncio as asyncio_integration
from daifu_bc.recovery import carriers, intercept, policy, verdict
from daifu_bc.recovery.interface import HoldLike
from daifu_bc.recovery.verdict import Verdict, judge, leave_alone
from daifu_bc.rewrite.barrier import vaccinate_code
from tests.verdict_programs import ASYNC_PROGRAMS, PRELUDE, PRETENDERS, PROGRAMS, programs

Program = Callable[[], object]


class Bench:
    """Runs a program plainly, and asks for the verdict where its exception arrives at the first frame."""

    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []
        self.judge = judge

    def crash(self, what: Any, *args: object) -> None:
        """Raise, as a callee of the program's frame that has no handler of its own."""
        try:
            raise what
        except BaseException as exception:
            self.verdicts.append(self.judge(exception, sys._getframe(1)))
            raise

    def compile(self, source: str, **more: object) -> Program:
        names: dict[str, Any] = {"crash": self.crash, "__name__": "program under test", **more}
        exec(compile(PRELUDE + source, "program.py", "exec"), names)
        program: Program = names["program"]
        return program

    def escapes(self, program: Program) -> bool:
        """Run it; the truth that the verdict is compared with."""
        try:
            run_outermost(program)
        except BaseException:
            return True
        return False


def run_outermost(program: Program) -> object:
    """Count as the outermost frame: pytest around it handles everything."""
    return program()


@pytest.fixture
def bench() -> Iterator[Bench]:
    problems: list[Exception] = []
    kept = verdict.on_internal_error
    verdict.on_internal_error = problems.append
    asyncio_integration.install()
    carriers.set_carrier(__name__, "run_outermost", carriers.OUTERMOST)
    yield Bench()
    carriers.reset()
    verdict.on_internal_error = kept
    assert not problems


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("title", "handled", "source"), [pytest.param(*p, id=p[0]) for p in programs(PROGRAMS)]
)
def test_verdict_is_the_truth(bench: Bench, title: str, handled: bool, source: str) -> None:
    program = bench.compile(source)
    escapes = bench.escapes(program)
    assert escapes is not handled, "the program itself is not what it says"
    assert bench.verdicts
    assert bench.verdicts[0].hold is escapes, bench.verdicts[0].reasons
    assert bench.verdicts[0].reasons


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("title", "handled", "source"), [pytest.param(*p, id=p[0]) for p in programs(PROGRAMS)]
)
def test_verdict_on_specialised_code(bench: Bench, title: str, handled: bool, source: str) -> None:
    """The interpreter replaces what runs often by other instructions; frames of 3.11 tell of other places then."""
    program = bench.compile(source)
    for _ in range(60):
        bench.verdicts.clear()
        escapes = bench.escapes(program)
        assert bench.verdicts[0].hold is escapes, bench.verdicts[0].reasons


@pytest.mark.parametrize(
    ("prelude", "call"),
    [
        ("class C:\n def __getattr__(self, name): crash(AttributeError)", "hasattr(c, 'x')"),
        ("class C:\n def __getattr__(self, name): crash(AttributeError)", "getattr(c, 'x', None)"),
        ("class C:\n def __getitem__(self, place): crash(IndexError)", "next(iter(c), None)"),
        ("class C:\n def __getitem__(self, place): crash(IndexError)", "list(c)"),
        (
            "class C:\n def __iter__(self): return iter(())\n def __len__(self): crash(TypeError)",
            "list(c)",
        ),
    ],
)
def test_a_call_in_a_hot_loop(bench: Bench, prelude: str, call: str) -> None:
    program = bench.compile(f"{prelude}\ndef program():\n c = C()\n for _ in range(100): {call}")
    assert not bench.escapes(program)
    assert len(bench.verdicts) == 100
    assert not any(answer.hold for answer in bench.verdicts), bench.verdicts[-1].reasons


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("title", "handled", "source"), [pytest.param(*p, id=p[0]) for p in programs(ASYNC_PROGRAMS)]
)
def test_tasks_and_jobs(bench: Bench, title: str, handled: bool, source: str) -> None:
    program = bench.compile("import asyncio, time\n" + source)
    escapes = bench.escapes(program)
    assert escapes is not handled, "the program itself is not what it says"
    assert bench.verdicts[0].hold is escapes, bench.verdicts[0].reasons


# -- with barriers ------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("title", "handled", "source"),
    [pytest.param(*p, id=p[0]) for p in [*programs(PROGRAMS), *programs(ASYNC_PROGRAMS)]],
)
def test_vaccinated_programs(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, title: str, handled: bool, source: str
) -> None:
    """What is handled is held nowhere; what escapes is held somewhere, at latest in the outermost frame."""
    monkeypatch.setattr(policy, "_playbook", lambda hold: hold.let_go())
    judging = judge

    def watched(exception: BaseException, frame: FrameType) -> Verdict:
        answer = judging(exception, frame)
        bench.verdicts.append(answer)
        return answer

    def crash(what: Any, *args: object) -> None:
        raise what

    monkeypatch.setattr(intercept, "judge", watched)
    names: dict[str, Any] = {"crash": crash, "__name__": "program under test"}
    code = compile(PRELUDE + "import asyncio, time\n" + source, "program.py", "exec")
    exec(vaccinate_code(code), names)
    assert bench.escapes(names["program"]) is not handled
    assert any(answer.hold for answer in bench.verdicts) is not handled, bench.verdicts


# -- what is remembered between frames ----------------------------------------------------------------------------


def count_walks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    walks: list[int] = []
    plain = verdict._Walk.run

    def run(self: Any, *args: Any) -> Verdict:
        walks.append(1)
        return plain(self, *args)

    monkeypatch.setattr(verdict._Walk, "run", run)
    return walks


def judged(answers: list[Verdict], inner: Program) -> object:
    """Stand for a vaccinated frame: the exception comes by and is judged."""
    try:
        return inner()
    except BaseException as exception:
        answers.append(judge(exception, sys._getframe()))
        raise


def failing() -> object:
    raise KeyError


def test_the_next_frames_are_told_from_memory(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    walks = count_walks(monkeypatch)
    answers = bench.verdicts

    def program() -> None:
        one = partial(judged, answers, failing)
        two = partial(judged, answers, one)
        three = partial(judged, answers, two)
        try:
            three()
        except KeyError:
            pass

    run_outermost(program)
    assert [answer.hold for answer in answers] == [False] * 3
    assert answers[0] is answers[1] is answers[2]
    assert walks == [1]


def test_each_flight_is_judged_anew(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead exceptions, tracebacks and frames leave their addresses to the next ones."""
    walks = count_walks(monkeypatch)

    def handled() -> None:
        try:
            judged(bench.verdicts, failing)
        except KeyError:
            pass

    def unhandled() -> None:
        with contextlib.suppress(BaseException):
            run_outermost(lambda: judged(bench.verdicts, failing))

    for _ in range(20):
        run_outermost(handled)
        unhandled()
    assert [answer.hold for answer in bench.verdicts] == [False, True] * 20
    assert len(walks) == 40


def test_what_the_handler_raises_again_is_judged_again(bench: Bench) -> None:
    def inner() -> None:
        try:
            judged(bench.verdicts, failing)
        except KeyError as error:
            if error.args == ():
                raise

    def program() -> None:
        judged(bench.verdicts, inner)

    assert bench.escapes(program)
    assert [answer.hold for answer in bench.verdicts] == [False, True]


def test_a_kept_exception_raised_elsewhere_is_judged_again(bench: Bench) -> None:
    kept: list[KeyError] = []

    def collect() -> None:
        try:
            judged(bench.verdicts, failing)
        except KeyError as error:
            kept.append(error)

    def raise_kept() -> None:
        raise kept.pop()

    def program() -> None:
        collect()
        judged(bench.verdicts, raise_kept)

    assert bench.escapes(program)
    assert [answer.hold for answer in bench.verdicts] == [False, True]


def test_what_was_let_go_is_left_alone_further_out(bench: Bench) -> None:
    class Own(Exception):
        pass

    def judge_and_let_go(exception: BaseException) -> None:
        bench.verdicts.append(judge(exception, sys._getframe(1)))
        leave_alone(exception)

    def through(kind: type[BaseException]) -> None:
        def fail() -> None:
            raise kind

        def inner() -> None:
            try:
                fail()
            except BaseException as exception:
                judge_and_let_go(exception)
                # What clean-up does meanwhile makes no difference.
                with contextlib.suppress(ValueError):
                    judged([], lambda: int("x"))
                raise

        with contextlib.suppress(kind):
            run_outermost(lambda: judged(bench.verdicts, inner))

    for kind in (KeyError, Own):
        for _ in range(10):
            through(kind)
    assert [answer.hold for answer in bench.verdicts] == [True, False] * 20


def test_nothing_is_kept_alive(bench: Bench) -> None:
    class Own(Exception):
        pass

    class Big:
        pass

    dead: list[weakref.ref[Any]] = []

    def inner(kind: type[BaseException]) -> None:
        big = Big()
        exception = kind()
        dead.append(weakref.ref(big))
        if kind is Own:
            dead.append(weakref.ref(exception))
        try:
            raise exception
        except BaseException as error:
            bench.verdicts.append(judge(error, sys._getframe()))
            leave_alone(error)
            raise
        finally:
            del exception

    def local_types(kind: type[BaseException]) -> None:
        other = Big()
        wanted = ValueError
        dead.append(weakref.ref(other))
        try:
            inner(kind)
        except wanted:
            pass

    gc.disable()
    try:
        for kind in (KeyError, Own):
            with contextlib.suppress(kind):
                run_outermost(lambda: local_types(kind))
        assert [answer.hold for answer in bench.verdicts] == [True, True]
        assert len(dead) == 5
        assert [reference() for reference in dead] == [None] * 5
    finally:
        gc.enable()


def test_code_objects_are_not_kept_alive(bench: Bench) -> None:
    program = bench.compile("def program():\n    try: crash(KeyError)\n    except KeyError: pass")
    run_outermost(program)
    # The most recently analysed bodies are kept, but not for ever.
    code = weakref.ref(program.__code__)
    del program
    for number in range(300):
        bench.escapes(bench.compile(f"def program(): crash(KeyError({number}))"))
    gc.collect()
    assert code() is None


CLEANED = """
def cleaned(depth):
    try:
        return cleaned(depth - 1) if depth else [].pop()
    finally:
        depth = 0
def managed(depth):
    with manager:
        return managed(depth - 1) if depth else [].pop()
def inside(depth):
    try:
        with manager:
            return [].pop()
    except IndexError:
        return None
def suspended(depth):
    try:
        [].pop()
    finally:
        yield
"""


@pytest.fixture
def cleaned(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Vaccinated functions that clean up, where holds are answered by letting the exception go."""
    monkeypatch.setattr(policy, "_playbook", lambda hold: hold.let_go())
    names: dict[str, Any] = {"__name__": "program under test", "manager": threading.Lock()}
    exec(vaccinate_code(compile(CLEANED, "cleaned.py", "exec")), names)
    return names


def let_go(held: list[BaseException], hold: HoldLike) -> None:
    held.append(hold.exception)
    hold.let_go()


@pytest.mark.parametrize(("name", "depth"), [("cleaned", 0), ("cleaned", 3), ("managed", 0), ("inside", 0)])
def test_a_frame_that_cleans_up_is_judged_once(
    monkeypatch: pytest.MonkeyPatch, cleaned: dict[str, Any], name: str, depth: int
) -> None:
    walks = count_walks(monkeypatch)
    for number in range(1, 4):
        try:
            cleaned[name](depth)
        except IndexError:
            pass
        assert len(walks) == number


def test_what_was_suspended_while_it_cleaned_up_is_judged_again(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, cleaned: dict[str, Any]
) -> None:
    held: list[BaseException] = []
    monkeypatch.setattr(policy, "_playbook", partial(let_go, held))
    generator = cleaned["suspended"](0)

    def begin() -> None:
        try:
            next(generator)
        except IndexError:
            pass

    run_outermost(begin)
    assert not held
    assert bench.escapes(lambda: next(generator))
    assert [type(exception) for exception in held] == [IndexError]


@pytest.mark.parametrize("cleans_up", [False, True])
def test_a_recursion_error_is_held_once(bench: Bench, cleans_up: bool) -> None:
    """However many frames it comes by, and whatever is judged in between."""
    held: list[int] = []

    def deeper(depth: int) -> None:
        try:
            deeper(depth + 1)
        except RecursionError as exception:
            if judge(exception, sys._getframe()).hold:
                held.append(depth)
                leave_alone(exception)
            if cleans_up and held:
                with contextlib.suppress(KeyError):
                    judged([], failing)
            raise

    for number in range(1, 4):
        assert bench.escapes(lambda: deeper(0))
        assert len(held) == number
        assert held[-1] > 200


# -- the program's own code does not run --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "handled", "source"), [pytest.param(*p, id=p[0]) for p in programs(PRETENDERS)]
)
def test_no_code_of_the_program_runs(bench: Bench, title: str, handled: bool, source: str) -> None:
    calls: list[str] = []
    armed: list[int] = []
    judging = bench.judge

    def watched(exception: BaseException, frame: FrameType) -> Verdict:
        armed.append(1)
        answer = judging(exception, frame)
        armed.clear()
        return answer

    bench.judge = watched
    program = bench.compile(source, ran=lambda what: calls.append(what) if armed else None, arm=lambda: None)
    escapes = bench.escapes(program)
    assert calls == []
    if title != "property":  # cannot be told, so it may be handled
        assert bench.verdicts[0].hold is escapes is not handled, bench.verdicts[0].reasons


# -- never held ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [StopIteration, StopAsyncIteration, GeneratorExit, SystemExit, KeyboardInterrupt]
)
def test_is_no_crash(bench: Bench, kind: type[BaseException]) -> None:
    def program() -> None:
        bench.crash(kind)

    assert bench.escapes(program)
    assert not bench.verdicts[0].hold
    assert bench.verdicts[0].reasons


def test_keyboard_interrupt_when_asked_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAIFU_HOLD_KEYBOARD_INTERRUPT", "1")
    assert bench.escapes(lambda: bench.crash(KeyboardInterrupt))
    assert bench.verdicts[0].hold


def test_cancellation_of_a_task(bench: Bench) -> None:
    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError as exception:
            bench.verdicts.append(judge(exception, sys._getframe()))
            raise

    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(main())
    assert not bench.verdicts[0].hold


def test_thrown_into_a_generator(bench: Bench) -> None:
    def numbers() -> Iterator[int]:
        try:
            yield 1
        except KeyError as exception:
            bench.verdicts.append(judge(exception, sys._getframe()))
            raise

    def program() -> None:
        generator = numbers()
        next(generator)
        generator.throw(KeyError())  # type: ignore[attr-defined]

    assert bench.escapes(program)
    assert not bench.verdicts[0].hold


# -- carriers -----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_end_of_a_thread(bench: Bench) -> None:
    def tried() -> None:
        try:
            bench.crash(KeyError)
        except KeyError:
            pass

    for target in (lambda: bench.crash(KeyError), tried):
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
    assert [answer.hold for answer in bench.verdicts] == [True, False]


def framework(step: Program) -> None:
    try:
        step()
    except Exception:
        pass


def test_a_framework_that_swallows(bench: Bench) -> None:
    def program() -> None:
        framework(lambda: bench.crash(KeyError))

    assert not bench.escapes(program)
    carriers.set_carrier(__name__, "framework", carriers.PASSES)
    assert not bench.escapes(program)
    carriers.set_carrier(__name__, "framework", None)
    assert not bench.escapes(program)
    carriers.set_carrier("tests/test_verdict.py", "framework", carriers.PASSES)
    assert not bench.escapes(program)
    assert [answer.hold for answer in bench.verdicts] == [False, True, False, True]


def test_a_framework_that_handles(bench: Bench) -> None:
    def runner(step: Program) -> None:
        step()

    carriers.set_carrier(__name__, "test_a_framework_that_handles.<locals>.runner", carriers.HANDLES)
    assert bench.escapes(lambda: runner(lambda: bench.crash(KeyError)))
    assert not bench.verdicts[0].hold


def test_carriers_take_three_policies() -> None:
    with pytest.raises(ValueError, match="sometimes"):
        carriers.set_carrier("m", "f", "sometimes")


def test_test_runners(bench: Bench) -> None:
    class Case(unittest.TestCase):
        def test_expected(self) -> None:
            with self.assertRaises(KeyError):  # noqa: PT027
                bench.crash(KeyError)

        def test_fails(self) -> None:
            bench.crash(KeyError)

    def expects() -> None:
        with pytest.raises(KeyError):
            bench.crash(KeyError)

    def expects_another() -> None:
        with pytest.raises(ValueError, match="x"):
            bench.crash(KeyError)

    assert not bench.escapes(lambda: Case("test_expected").run())
    assert not bench.escapes(lambda: Case("test_fails").run())
    assert not bench.escapes(expects)
    assert bench.escapes(expects_another)
    assert [answer.hold for answer in bench.verdicts] == [False, False, False, True]


# -- failures of ours ---------------------------------------------------------------------------------------------


def test_an_internal_error_lets_the_exception_go(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Exception] = []

    def broken(*_: object) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(verdict, "spot_at", broken)
    monkeypatch.setattr(verdict, "on_internal_error", told.append)
    assert bench.escapes(lambda: bench.crash(KeyError))
    assert [str(error) for error in told] == ["ours"]
    assert not bench.verdicts[0].hold
    monkeypatch.setattr(verdict, "on_internal_error", broken)
    assert bench.escapes(lambda: bench.crash(KeyError))
    assert not bench.verdicts[1].hold


def test_a_full_stack_is_no_internal_error(bench: Bench) -> None:
    def deeper() -> None:
        try:
            deeper()
        except RecursionError as exception:
            bench.verdicts.append(judge(exception, sys._getframe()))
            raise

    assert bench.escapes(deeper)
    assert bench.verdicts[-1].hold


@pytest.mark.parametrize("kind", [RecursionError, MemoryError])
def test_no_room_to_judge(bench: Bench, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]) -> None:
    """It is not held there, nobody is told, and nothing is remembered."""
    walks = count_walks(monkeypatch)
    run = verdict._Walk.run

    def full(*_: object) -> Verdict:
        raise kind

    def first() -> None:
        monkeypatch.setattr(verdict._Walk, "run", full)
        try:
            judged(bench.verdicts, failing)
        finally:
            monkeypatch.setattr(verdict._Walk, "run", run)

    assert bench.escapes(lambda: judged(bench.verdicts, first))
    assert [answer.hold for answer in bench.verdicts] == [False, True]
    assert len(walks) == 1


def test_memory_errors_leave_nothing_behind(bench: Bench) -> None:
    def program() -> None:
        judged([], partial(judged, [], exhausted))

    def exhausted() -> None:
        raise MemoryError

    def objects() -> int:
        for _ in range(100):
            assert bench.escapes(program)
        gc.collect()
        return len(gc.get_objects())

    objects()
    assert objects() <= objects()


@pytest.mark.parametrize(
    ("module", "name"), [(sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook")]
)
def test_a_hook_that_is_gone(bench: Bench, monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    with monkeypatch.context() as patch:
        patch.delattr(module, name)
        assert bench.escapes(lambda: bench.crash(KeyError))
    assert bench.verdicts[0].hold


def test_reasons_are_sentences(bench: Bench) -> None:
    source = """
def program():
    try:
        with Loud() as loud:
            try: crash(KeyError)
            except KeyError: log(); raise
    finally:
        log()
"""
    assert bench.escapes(bench.compile(source))
    found = bench.verdicts[0].reasons
    assert [reason.partition(" in line")[0] for reason in found] == [
        "The `except KeyError`",
        "The `with Loud()`",
        "The `finally`",
        "Nobody handles it.",
    ]
    assert all(reason.endswith(".") for reason in found)
