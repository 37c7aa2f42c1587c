"""Run one test program in this process, plain or vaccinated, and say what it did."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import io
import linecache
import sys
import threading
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, Self

from tests.programs import engine
from tests.programs.skipping import INJECTED_NAME, compile_skipping
from tests.programs.world import FLAKY_PREFIX, FlakyFinder, Plan, World, is_injected, show

MODULE_NAME = "program"
SOURCELESS = "<no source>"
MOST_HOLDS = 300


@dataclasses.dataclass
class Job:
    """One run.

    Attributes:
        source: the program: a module; if it defines ``main``, that is called at the end.
        form: ``plain``, ``skipping`` (plain, an injected crash ends its statement) or ``held`` (vaccinated, holds
            are answered).
        plan: when the failing calls fail.
        answers: for each hold the words that answer it, the last one for all that follow; an injected exception
            only, any other is let go.
        edited: the text that the word ``surgery`` installs.
        sourceless: the program's text is not to be found anywhere.
        moments: numbers of calls of the world at which another thread asks for a pause, from 1.
        paused: the words that answer a pause.
    """

    source: str
    form: str = "plain"
    plan: Plan = dataclasses.field(default_factory=Plan)
    answers: list[list[str]] = dataclasses.field(default_factory=lambda: [["raise"]])
    edited: str = ""
    sourceless: bool = False
    moments: list[int] = dataclasses.field(default_factory=list)
    paused: list[str] = dataclasses.field(default_factory=lambda: ["pass"])


@dataclasses.dataclass
class Outcome:
    """What a run did.

    Attributes:
        events: the event list.
        result: what ``main`` returned, as text.
        error: the exception that came out, as text; empty if none.
        places: for each frame of the program in the traceback, ``name:line``, outermost first.
        columns: the same with the columns.
        thread_errors: exceptions that ended threads.
        thread_places: `places` of the first of them.
        stderr: what was written to stderr, and reports of exceptions that nobody could take.
        holds: number of holds for injected exceptions.
        other_holds: number of holds for other exceptions (each was let go).
        failures: number of injected failures.
        calls: number of calls that could have failed.
        moments: number of calls of the world.
        asked: number of pauses that were asked for.
        stopped: for each pause the line before which the thread stood.
        refusals: what the engine refused to do.
        death: why the process that ran the program did not survive it; empty if it did.
    """

    events: list[str] = dataclasses.field(default_factory=list)
    result: str = ""
    error: str = ""
    places: list[str] = dataclasses.field(default_factory=list)
    columns: list[str] = dataclasses.field(default_factory=list)
    thread_errors: list[str] = dataclasses.field(default_factory=list)
    thread_places: list[str] = dataclasses.field(default_factory=list)
    stderr: str = ""
    holds: int = 0
    other_holds: int = 0
    failures: int = 0
    calls: int = 0
    moments: int = 0
    asked: int = 0
    stopped: list[int] = dataclasses.field(default_factory=list)
    refusals: list[str] = dataclasses.field(default_factory=list)
    death: str = ""


class _Capture:
    """Ends a program's exception. Not an ``except`` clause: that would look as if the exception were handled."""

    error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> bool:
        self.error = error
        return True


@dataclasses.dataclass(frozen=True)
class Watcher:
    """Takes the place of what a held run does with code and holds.

    Attributes:
        prepared: makes the code that runs out of the module's code.
        respond: answers a hold.
    """

    prepared: Callable[[CodeType], CodeType]
    respond: Callable[[Any], None]


def run(job: Job, folder: Path, watcher: Watcher | None = None) -> Outcome:
    """Run the job; files that it needs are written to `folder`."""
    path = folder / f"{MODULE_NAME}.py"
    edited_path = folder / "edited.py"
    path.write_text(job.source)
    edited_path.write_text(job.edited)
    linecache.clearcache()
    filename = SOURCELESS if job.sourceless else str(path)
    world = World(job.plan, filename)
    outcome = Outcome(events=world.events)
    module = types.ModuleType(MODULE_NAME)
    module.__dict__.update(world.names())
    module.__dict__[INJECTED_NAME] = is_injected
    module.__dict__["__file__"] = filename
    stderr = io.StringIO()
    pauses = engine.Pauses(job.moments)
    with _surroundings(world, module, outcome, stderr):
        try:
            code = _code_of(job, filename, watcher.prepared if watcher else engine.vaccinated)
        except Exception:
            outcome.death = f"no code to run: {traceback.format_exc()}"
            return outcome
        with contextlib.ExitStack() as stack:
            if job.form == "held":
                stack.callback(pauses.cancel)
                world.on_moment = pauses.moment
                edit = engine.Edit(str(edited_path), job.edited, whole_file=not job.sourceless)
                respond = watcher.respond if watcher else _responder(job, outcome, edit)
                stack.enter_context(engine.responding(respond))
            with _Capture() as captured:
                outcome.result = show(_execute(code, module.__dict__))
        if captured.error is not None:
            _describe_error(captured.error, (filename, str(edited_path)), outcome)
            captured.error = None
        del captured
        gc.collect()
    outcome.stderr = stderr.getvalue().replace(str(folder), "")
    outcome.calls, outcome.failures, outcome.moments = world.calls, world.failures, world.moments
    outcome.asked = len(pauses.asked)
    return outcome


def _execute(code: CodeType, namespace: dict[str, Any]) -> object:
    exec(code, namespace)
    main = namespace.get("main")
    return main() if callable(main) else None


def _code_of(job: Job, filename: str, vaccinated: Callable[[CodeType], CodeType]) -> CodeType:
    if job.form == "skipping":
        return compile_skipping(job.source, filename)
    code = compile(job.source, filename, "exec", dont_inherit=True)
    return code if job.form == "plain" else vaccinated(code)


def _responder(job: Job, outcome: Outcome, edit: engine.Edit) -> Callable[[Any], None]:
    def respond(hold: Any) -> None:
        if not hold.crashed:
            outcome.stopped.append(hold.selected.line)
            _say(hold, job.paused, outcome, edit)
            return
        if not is_injected(hold.exception):
            outcome.other_holds += 1
            hold.let_go()
            return
        words = job.answers[min(outcome.holds, len(job.answers) - 1)]
        outcome.holds += 1
        if outcome.holds > MOST_HOLDS:
            outcome.refusals.append(f"more than {MOST_HOLDS} holds: the answers do not help")
            hold.let_go()
            return
        _say(hold, words, outcome, edit)

    return respond


def _say(hold: Any, words: list[str], outcome: Outcome, edit: engine.Edit) -> None:
    word = ""
    try:
        for word in words:
            engine.answer(hold, word, edit)
    except Exception as refusal:  # whatever the engine refuses, the program goes on without us
        outcome.refusals.append(f"{word}: {type(refusal).__name__}: {refusal}")
        hold.let_go()


def _describe_error(error: BaseException, filenames: tuple[str, ...], outcome: Outcome) -> None:
    outcome.error = _error_text(error)
    outcome.places = _places(error.__traceback__, filenames)
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename in filenames:
            outcome.columns.append(
                f"{frame.name}:{frame.lineno}:{frame.colno}-{frame.end_lineno}:{frame.end_colno}"
            )
    # Names of frames that are not the program's, such as the engine's own, would show up here.
    outcome.columns.extend(
        frame.name
        for frame in traceback.extract_tb(error.__traceback__)
        if f"{engine.PACKAGE}/" in frame.filename.replace("\\", "/")
    )


def _places(trace: TracebackType | None, filenames: tuple[str, ...]) -> list[str]:
    return [
        f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(trace) if frame.filename in filenames
    ]


def _error_text(error: BaseException | None) -> str:
    """The exception with its context, causes and members, without lines."""
    if error is None:
        return ""
    text = show(error)
    if error.__cause__ is not None:
        text += f" from {_error_text(error.__cause__)}"
    elif error.__context__ is not None and not error.__suppress_context__:
        text += f" while {_error_text(error.__context__)}"
    return text


@contextlib.contextmanager
def _surroundings(
    world: World, module: types.ModuleType, outcome: Outcome, stderr: io.StringIO
) -> Iterator[None]:
    """The process's global state for one run, put back afterwards."""
    finder = FlakyFinder(world)

    def thread_ended(arguments: Any) -> None:
        outcome.thread_errors.append(_error_text(arguments.exc_value))
        if not outcome.thread_places:
            outcome.thread_places = _places(arguments.exc_traceback, (world.filename,))

    def unraisable(arguments: Any) -> None:
        stderr.write(f"unraisable {show(arguments.exc_value)}\n")

    hooks = threading.excepthook, sys.unraisablehook, sys.stderr, sys.stdout
    threading.excepthook, sys.unraisablehook, sys.stderr, sys.stdout = (
        thread_ended,
        unraisable,
        stderr,
        stderr,
    )
    sys.modules[MODULE_NAME] = module
    sys.meta_path.insert(0, finder)
    # When cycles are collected must not depend on how many objects the engine makes.
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        gc.enable()
        threading.excepthook, sys.unraisablehook, sys.stderr, sys.stdout = hooks
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.startswith(FLAKY_PREFIX)]:
            del sys.modules[name]
        sys.modules.pop(MODULE_NAME, None)
