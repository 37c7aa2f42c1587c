"""Frames that carry other people's code: whether their broad `except` counts as handling an exception.

A thread's bootstrap catches everything, but only to print it: the exception *passes*, and is held before. A test
runner's catching is what it is there for: it *handles*. Outside an *outermost* frame nobody is asked any more. The
table is the user's to change.
"""

from __future__ import annotations

from types import CodeType
from typing import Final

from daifu_bc.analysis import filters

PASSES: Final = "passes"
HANDLES: Final = "handles"
OUTERMOST: Final = "outermost"
#: Only its narrow clauses count.
HELD_THROUGH: Final = "is held through"

#: Stands for every function of a module.
EVERY: Final = "*"

_DEFAULTS: Final[dict[tuple[str, str], str]] = {
    # What an action raises is shown to the one who typed it; outside the launcher there is no program.
    ("daifu_bc.recovery.frames", EVERY): HANDLES,
    ("daifu_bc.install.launch", EVERY): OUTERMOST,
    # An exception that arrives here ends the thread; it is printed, and nobody deals with it.
    ("threading", "Thread._bootstrap"): PASSES,
    ("threading", "Thread._bootstrap_inner"): PASSES,
    ("threading", "Thread.run"): PASSES,
    # These put it into a future or a message for somebody who may never look; the state is lost either way.
    ("concurrent.futures.thread", "_WorkItem.run"): PASSES,
    ("concurrent.futures.thread", "_worker"): PASSES,
    ("concurrent.futures.process", "_process_worker"): PASSES,
    ("multiprocessing.pool", "worker"): PASSES,
    ("torch.utils.data._utils.worker", "_worker_loop"): PASSES,
    ("torch.utils.data._utils.pin_memory", "_pin_memory_loop"): PASSES,
    ("torch.nn.parallel.parallel_apply", EVERY): PASSES,
    ("joblib.externals.loky.process_executor", "_process_worker"): PASSES,
    # It prints it and ends the process; in a forked child, what is further out are the parent's frames.
    ("multiprocessing.process", "BaseProcess._bootstrap"): OUTERMOST,
    # They print it and end the process.
    ("multiprocessing.forkserver", EVERY): PASSES,
    ("multiprocessing.spawn", EVERY): PASSES,
    ("runpy", EVERY): PASSES,
    ("torch.distributed.run", EVERY): PASSES,
    ("torch.distributed.elastic.multiprocessing.errors", EVERY): PASSES,
    # They clean up after a failed import, or ask whether there is a submodule.
    ("importlib._bootstrap", EVERY): PASSES,
    ("_frozen_importlib", EVERY): PASSES,
    ("importlib._bootstrap_external", EVERY): PASSES,
    ("_frozen_importlib_external", EVERY): PASSES,
    # They hand it to the event loop's exception handler, or to whoever awaits the task, which is looked at apart.
    ("asyncio.events", "Handle._run"): PASSES,
    ("asyncio.tasks", "Task.__step"): PASSES,
    ("asyncio.tasks", "Task.__step_run_and_handle_result"): PASSES,
    ("asyncio.tasks", "Task.__wakeup"): PASSES,
    ("asyncio.tasks", "Task.__eager_start"): PASSES,
    # They pass on whatever is not the exception that they have thrown in.
    ("contextlib", "_GeneratorContextManager.__exit__"): PASSES,
    ("contextlib", "_AsyncGeneratorContextManager.__aexit__"): PASSES,
    # The interpreter prints an exception, and prints it in another way if that fails (3.13+).
    ("traceback", "_print_exception_bltin"): HANDLES,
    # They show it to a person, and the state is lost.
    ("code", "InteractiveInterpreter.runcode"): PASSES,
    ("IPython.core.interactiveshell", "InteractiveShell.run_code"): OUTERMOST,
    ("IPython.core.magics.execution", EVERY): PASSES,
    # Frameworks whose outermost `except` only tidies up before the run is lost.
    ("lightning.pytorch.trainer.call", "_call_and_handle_interrupt"): PASSES,
    ("pytorch_lightning.trainer.call", "_call_and_handle_interrupt"): PASSES,
    # Test runners: a failing test is their business.
    ("unittest.case", "TestCase.run"): HANDLES,
    ("unittest.case", "_Outcome.testPartExecutor"): HANDLES,
    ("_pytest.runner", "CallInfo.from_call"): HANDLES,
    ("doctest", "DocTestRunner.__run"): HANDLES,
}

_table: dict[tuple[str, str], str] = dict(_DEFAULTS)

#: Goes up with each change; who remembers answers of this module asks again.
generation = 0


def set_carrier(module: str, function: str, policy: str | None) -> None:
    """Says how the handlers of a function count.

    Args:
        module: its module's dotted name, or the end of its file's path with `/` (`trainer/call.py`).
        function: its qualified name, or EVERY.
        policy: PASSES, HANDLES, OUTERMOST, or None for what its code says.

    Raises:
        ValueError: the policy is none of these.
    """
    global generation
    if policy not in (PASSES, HANDLES, OUTERMOST, None):
        raise ValueError(f"a carrier {PASSES}, {HANDLES} or is {OUTERMOST}, not {policy!r}")
    if policy is None:
        _table.pop((module, function), None)
    else:
        _table[module, function] = policy
    generation += 1


def filters_changed() -> None:
    """Has everybody ask again: the environment says something else."""
    global generation
    generation += 1


def reset() -> None:
    """Brings the table back to its beginning."""
    global generation
    _table.clear()
    _table.update(_DEFAULTS)
    generation += 1


def carrier(code: CodeType, module: object) -> str | None:
    """How the handlers of a frame count: PASSES, HANDLES, OUTERMOST, HELD_THROUGH, or None for what its code says.

    Args:
        code: the frame's code.
        module: `__name__` of its globals.
    """
    for variable, said in ((filters.LEAVE_TO, HANDLES), (filters.HOLD_THROUGH, HELD_THROUGH)):
        if any(filters.names_function(name, code) for name in filters.asked(variable)):
            return said
    if type(module) is str:
        policy = _table.get((module, code.co_qualname)) or _table.get((module, EVERY))
        if policy is not None:
            return policy
        if module.startswith("daifu_bc.") and not module.startswith("daifu_bc.demo."):
            return PASSES
    path = code.co_filename.replace("\\", "/")
    for (place, function), policy in _table.items():
        if "/" in place and path.endswith(place) and function in (code.co_qualname, EVERY):
            return policy
    return None
