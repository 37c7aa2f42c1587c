"""The decorator: the same object comes back, only its code is another."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
import pickle
import subprocess
import sys
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from daifu_bc.errors import UsageError
from daifu_bc.install import notice, walk
from daifu_bc.install import vaccinate as module
from daifu_bc.install.scope import Scope
from daifu_bc.install.vaccinate import vaccinate
from daifu_bc.install.vaccine import vaccinated
from tests.installing import Project, is_vaccinated, project

__all__ = ["project"]

alone = vaccinate(scope="function")


def picklable(x: int, /, y: list[int] | None = None, *rest: str, key: int = 3, **others: float) -> str:
    """Its text."""
    return f"{x}{y}{rest}{key}{others}"


def test_a_function_stays_what_it_is() -> None:
    names = [
        name for name in dir(picklable) if name not in ("__code__", "__globals__", "__builtins__", "__call__")
    ]

    def looks() -> list[object]:
        return [
            repr(getattr(picklable, name))
            for name in names
            if "method-wrapper" not in repr(getattr(picklable, name))
        ]

    before = looks(), inspect.signature(picklable), inspect.getsource(picklable)
    plain = picklable.__code__
    try:
        assert alone(picklable) is picklable
        assert is_vaccinated(picklable)
        assert (looks(), inspect.signature(picklable), inspect.getsource(picklable)) == before
        assert picklable(1, [2], "r", key=4, o=0.5) == "1[2]('r',)4{'o': 0.5}"
        assert pickle.loads(pickle.dumps(picklable)) is picklable
        code = picklable.__code__
        assert alone(picklable).__code__ is code, "a second time changes nothing"
    finally:
        picklable.__code__ = plain


def test_closures() -> None:
    count = 0

    @alone
    def up(by: int = 1) -> int:
        nonlocal count
        count += by
        return len(str(count))

    cells = up.__closure__
    assert up(10) == 2
    assert count == 10
    assert up.__closure__ is cells
    assert is_vaccinated(up)


def test_nested_functions_come_with_it() -> None:
    @alone
    def outer() -> Callable[[], int]:
        def inner() -> int:
            return len("abc")

        return inner

    assert is_vaccinated(outer())
    assert outer()() == 3


def test_what_a_compiler_has_generated_stays() -> None:
    """Also among other functions: in a class, or in a module's names."""

    def f() -> int:
        return len("abc")

    def g() -> int:
        return len("abc")

    f.__code__ = f.__code__.replace(co_name="torch_dynamo_resume_in_f_at_3")
    plain = f.__code__
    kind = type("Kind", (), {"f": f, "g": g})
    vaccinate(kind, scope="function")  # type: ignore[call-overload]
    vaccinate(f, scope="function")  # type: ignore[call-overload]
    assert f.__code__ is plain
    assert is_vaccinated(g)


def test_one_code_object_stays_one() -> None:
    def make() -> FunctionType:
        def shared() -> int:
            return len("abc")

        assert isinstance(shared, FunctionType)
        return shared

    first, second = make(), make()
    assert first.__code__ is second.__code__
    alone(first)
    alone(second)
    assert is_vaccinated(first)
    assert first.__code__ is second.__code__


def test_equal_code_is_not_the_same_code() -> None:
    source = "def f():\n    return len('abc')\n"
    spaces: list[dict[str, Any]] = [{}, {}]
    for space in spaces:
        exec(compile(source, "<equal>", "exec"), space)
    first, second = (space["f"] for space in spaces)
    assert first.__code__ == second.__code__
    alone(first)
    alone(second)
    assert first.__code__ is not second.__code__


def test_kinds_of_functions() -> None:
    @alone
    def generator() -> Iterator[int]:
        yield len("a")

    @alone
    async def coroutine() -> int:
        await asyncio.sleep(0)
        return len("ab")

    @alone
    async def asynchronous_generator() -> AsyncIterator[int]:
        yield len("abc")

    @alone
    @contextlib.contextmanager
    def manager() -> Iterator[int]:
        yield len("abcd")

    async def collect() -> list[int]:
        return [x async for x in asynchronous_generator()]

    lambda_: Callable[[], int] = alone(lambda: len("abcde"))
    assert inspect.isgeneratorfunction(generator)
    assert inspect.iscoroutinefunction(coroutine)
    assert inspect.isasyncgenfunction(asynchronous_generator)
    assert list(generator()) == [1]
    assert asyncio.run(coroutine()) == 2
    assert asyncio.run(collect()) == [3]
    with manager() as value:
        assert value == 4
    assert lambda_() == 5
    wrapped = manager.__wrapped__  # type: ignore[attr-defined]
    for function in (generator, coroutine, asynchronous_generator, wrapped, lambda_):
        assert is_vaccinated(function)
    assert not is_vaccinated(manager), "the library's wrapper is not the user's code"


class Plain:
    @staticmethod
    def static() -> int:
        return len("a")

    @classmethod
    def of_class(cls) -> int:
        return len(cls.__name__)

    @property
    def value(self) -> int:
        return len("abc")

    @value.setter
    def value(self, new: int) -> None:
        self.seen = len(str(new))

    @functools.cached_property
    def cached(self) -> int:
        return len("abcd")

    def method(self) -> int:
        return len("abcde")

    by_part = functools.partialmethod(method)

    class Inner:
        def method(self) -> int:
            return len("abcdef")

    elsewhere = Path
    function = Path.exists


def test_classes() -> None:
    accessors = vars(Plain)["value"]
    functions = [
        Plain.static,
        Plain.of_class.__func__,  # type: ignore[attr-defined]
        accessors.fget,
        accessors.fset,
        vars(Plain)["cached"].func,
        Plain.method,
        Plain.Inner.method,
    ]
    plain = [function.__code__ for function in functions]
    before = dict(vars(Plain))
    try:
        assert alone(Plain) is Plain
        assert all(is_vaccinated(function) for function in functions)
        assert not is_vaccinated(Path.exists), "the standard library is not the user's code"
        assert not is_vaccinated(Path.is_dir)
        assert {name: value for name, value in vars(Plain).items() if name in before} == before
        instance = Plain()
        instance.value = 12
        assert (instance.static(), instance.of_class(), instance.value, instance.seen) == (1, 5, 3, 2)
        assert (instance.cached, instance.method(), instance.by_part(), Plain.Inner().method()) == (
            4,
            5,
            5,
            6,
        )
    finally:
        for function, code in zip(functions, plain, strict=True):
            function.__code__ = code


@pytest.mark.parametrize(
    "wrap",
    [
        staticmethod,
        classmethod,
        property,
        functools.cached_property,
        functools.lru_cache,
        functools.partial,
        functools.singledispatch,
        functools.partialmethod,
        lambda function: function.__get__(1),
        lambda function: functools.wraps(function)(lambda: function(0)),
        lambda function: lambda: function(0),
    ],
)
def test_what_wraps_a_function(wrap: Callable[[Any], object]) -> None:
    def function(x: object) -> int:
        return len("abc")

    wrapped = wrap(function)
    assert alone(wrapped) is wrapped
    assert is_vaccinated(function)


def test_no_code_of_the_program_runs() -> None:
    class Trap:
        def __getattribute__(self, name: str) -> object:
            raise AssertionError(name)

    class Meta(type):
        def __getattribute__(cls, name: str) -> object:
            if name == "__name__":
                return "Trapped"
            raise AssertionError(name)

        def __instancecheck__(cls, instance: object) -> bool:
            raise AssertionError

    def refuse(self: object) -> object:
        raise AssertionError

    liar_type = type("Liar", (), {"__dict__": property(refuse), "__class__": property(refuse)})

    class Trapped(metaclass=Meta):
        trap = Trap()
        liar = liar_type()

        def method(self) -> int:
            return len("abc")

    namespace = type.__dict__["__dict__"].__get__(Trapped)
    found = list(walk.functions(iter([Trapped, Trap(), liar_type()])))
    assert found == [namespace["method"]]


def test_a_wrong_scope_is_said() -> None:
    with pytest.raises(UsageError):
        vaccinate(scope="nonsense")(lambda: 1)


def test_nothing_to_vaccinate_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(notice, "_said", set())
    assert alone(len) is len
    assert "no Python function" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["1", "true"])
def test_switched_off(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("DAIFU_DISABLE", value)

    @vaccinate
    def function() -> int:
        return len("abc")

    assert not is_vaccinated(function)
    assert len([finder for finder in sys.meta_path if "daifu" in type(finder).__module__]) == 0


def test_an_unknown_python(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("daifu_bc.pyversion.SUPPORTED", False)
    monkeypatch.setattr(notice, "_said", set())
    for _ in range(2):

        @vaccinate
        def function() -> int:
            return len("abc")

        assert not is_vaccinated(function)
    report = capsys.readouterr().err
    assert report.count("daifu_bc:") == 1
    assert "3.11 to 3.15" in report


def test_nothing_is_kept_alive() -> None:
    space: dict[str, Any] = {}
    exec("def f():\n    return len('abc')\n", space)
    function = alone(space.pop("f"))
    plain, code = weakref.ref(function), weakref.ref(function.__code__)
    del function, space
    gc.collect()
    assert plain() is None
    assert code() is None


PROJECT = """
import daifu_bc.install.vaccinate as v
import helper, later_registry
class Registry(dict): pass
handlers = Registry()
def register(function):
    handlers["it"] = function
    return None
@register
def hidden(): return len('hidden')
@v.vaccinate{arguments}
def main():
    import late
    return late, len('main')
def beside(): return len('beside')
"""


@pytest.fixture
def first_calls(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What waits for a first call, in place of code that calls it."""
    waiting: list[Callable[[], None]] = []

    def watch(code: CodeType, call: Callable[[], None]) -> CodeType:
        waiting.append(call)
        return code.replace(co_name=code.co_name)

    monkeypatch.setattr(module, "first_call", watch)
    return waiting


def write_project(project: Project, arguments: str = "") -> Any:
    project.write("helper.py")
    project.write("late.py")
    project.write("later_registry.py", "def f():\n    return len('r')\n")
    project.write("program.py", PROJECT.format(arguments=arguments))
    project.modules |= {"helper", "late", "later_registry"}
    return project.load("program")


def test_the_project_comes_with_it(project: Project, first_calls: list[Callable[[], None]]) -> None:
    program = write_project(project)
    waiting_code = program.main.__code__
    assert is_vaccinated(program.main)
    assert not is_vaccinated(program.beside)
    assert not is_vaccinated(program.helper.f)
    assert len(first_calls) == 1
    first_calls[0]()
    assert program.main.__code__ is not waiting_code
    assert is_vaccinated(program.main)
    for function in (program.beside, program.helper.f, program.handlers["it"], program.main()[0].f):
        assert is_vaccinated(function)
    assert not is_vaccinated(inspect.signature), "the standard library is no part of a project"
    plain = program.beside.__code__
    first_calls[0]()
    assert program.beside.__code__ is plain


def test_without_a_watch_the_project_comes_at_once(project: Project) -> None:
    program = write_project(project)
    assert is_vaccinated(program.main)
    assert is_vaccinated(program.helper.f)


def test_a_function_alone(project: Project, first_calls: list[Callable[[], None]]) -> None:
    program = write_project(project, "(scope='function')")
    assert not first_calls
    assert is_vaccinated(program.main)
    assert not is_vaccinated(program.main()[0].f)


def test_named_packages(project: Project) -> None:
    program = write_project(project, "(scope=['helper', 'late'])")
    assert is_vaccinated(program.main)
    assert is_vaccinated(program.helper.f)
    assert is_vaccinated(program.main()[0].f)
    assert not is_vaccinated(program.beside)


def test_frozen_objects_are_found_by_walking(project: Project) -> None:
    project.write("alpha.py", "class A:\n    def f(self):\n        return len('abc')\n")
    alpha = project.load("alpha")
    gc.freeze()
    try:
        assert module.vaccinate_loaded(Scope("packages", packages=("alpha",))) == 1
    finally:
        gc.unfreeze()
    assert is_vaccinated(alpha.A.f)


def test_code_that_stays_as_it_is() -> None:
    code = compile("", "<empty>", "exec")
    assert vaccinated(code) is code


def test_a_forked_child_whose_library_is_vaccinated_asks_once_whether_anybody_answers(tmp_path: Path) -> None:
    # `os.environ.get` raises and catches a KeyError in vaccinated code, and it is what the asking itself calls.
    program = tmp_path / "program.py"
    program.write_text(
        "import os, daifu_bc\n"
        "@daifu_bc.vaccinate(scope='all')\n"
        "def main():\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        os._exit(7 if os.environ.get('NOT THERE') is None else 1)\n"
        "    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "print(main())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-X", "frozen_modules=off", str(program)],
        env={"PYTHONPATH": str(Path(__file__).parent.parent), "PATH": "", "DAIFU_ATTACH": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stdout == "7\n", ended.stderr
