"""How a run goes on: the state on its way from a dead frame into a continuation.

A stub gives the frame's structural items and cells to a `Handover`. The frame that was held then calls the handover
for a callable that runs the continuation, calls it, and asks `follow` whether it crashed again; so the stack does not
grow however often that happens. The state is passed to the continuation's prefix through `take`, a list that belongs
to the thread and is empty again before the first instruction of the body runs: no user code runs in between.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CellType, CodeType, FrameType, FunctionType, MethodType
from typing import Any, Final

from daifu_bc import pyversion
from daifu_bc.analysis.code import cells_at_start
from daifu_bc.analysis.flow import EXIT_SELF, INDEX, SAVED, Item
from daifu_bc.recovery import signals
from daifu_bc.recovery.attributes import set_traceback, traceback_of
from daifu_bc.rewrite.continuation import Continuation


class _Thread(threading.local):
    """State that is on its way in one thread."""

    def __init__(self) -> None:
        self.pending: list[list[object]] = []
        # Handovers of continuations that could not return them: they ran under `exec`, or as asynchronous generators.
        self.crashed: list[Handover] = []


_thread = _Thread()


@dataclass
class Passage:
    """What is known before the stub hands over: where the run goes on, and with which locals.

    Attributes:
        continuation: the code that goes on.
        kinds: kinds of the items that the stub hands over, bottom first.
        items: those items.
        cells: names of the cells that the stub hands over, in order.
        values: values of the locals, by name; emptied when it starts.
        namespace: the locals of a frame whose locals are a mapping, else None.
        scope: the globals.
        last: what the prefix takes last, if it raises or returns something.
        fresh: names of cells in the place of which there are new, empty ones.
        further: cells that the frame had no need of.
    """

    continuation: Continuation
    kinds: list[str]
    items: list[Item]
    cells: tuple[str, ...]
    values: dict[str, object]
    namespace: Any
    scope: dict[str, Any]
    last: list[object]
    fresh: frozenset[str] = frozenset()
    further: dict[str, CellType] = field(default_factory=dict)


class Handover(list[Any]):
    """The list that a stub fills: structural items, top one first, then cells.

    Called with nothing it starts the continuation (returns what runs it); called with the slots of a pair it appends
    what they stand for.
    """

    __slots__ = ("_mark", "passage")

    def __init__(self, passage: Passage) -> None:
        super().__init__()
        self.passage: Passage | None = passage
        self._mark = -1

    def __contains__(self, first: object) -> bool:
        """Whether the first slot of a `for` is a sequence with a tagged index behind it (3.15+), and no iterator.

        If it is, the elements that are left of the loop follow.
        """
        if hasattr(type(first), "__next__"):
            return False
        self._mark = len(self)
        return True

    def __call__(self, *slots: Any) -> Any:
        """Starts the continuation, or takes in the slots of a pair; the cold code calls it."""
        if not slots:
            try:
                return self._start()
            except BaseException:
                if signals.is_going_on():
                    signals.gone_on()
                raise
        if self._mark >= 0:
            (sequence,) = slots
            left = len(self) - self._mark
            del self[self._mark :]
            self._mark = -1
            self.append(_iterator_at(sequence, max(0, len(sequence) - left)))
        elif len(slots) == 2:
            self.append(MethodType(slots[1], slots[0]))
        else:
            self.append(slots[0])
        return self

    def _start(self) -> Callable[[], Any]:
        passage = self.passage
        assert passage is not None
        self.passage = None
        handed = list(self)
        self.clear()
        state = _arrange(passage, handed)
        handed.clear()
        run = _runner(passage, state)
        state.reverse()  # `take` pops
        if state:
            _thread.pending.append(state)
        elif signals.is_going_on():
            signals.gone_on()
        return run


def _iterator_at(sequence: Any, position: int) -> Any:
    iterator: Any = iter(sequence)
    if hasattr(iterator, "__setstate__"):
        iterator.__setstate__(position)
    else:
        for _ in range(position):
            next(iterator)
    return iterator


def _arrange(passage: Passage, handed: list[Any]) -> list[object]:
    """The state in the order in which the prefix takes it: locals and cells as one tuple, items, the last thing."""
    continuation = passage.continuation
    places = iter(handed)
    handled: object = next(places) if SAVED in passage.kinds else None
    items: list[object] = []
    for kind in reversed(passage.kinds):
        if kind in (INDEX, EXIT_SELF):
            continue
        value = next(places)
        if kind == SAVED:
            # The prefix makes `value` again when it pushes what was being handled inside this block.
            items.append(handled)
            handled = value
        else:
            items.append(value)
    items.reverse()
    cells = dict(zip(passage.cells, places, strict=False))
    handed.clear()
    gone = {name: cells.pop(name) for name in passage.fresh & cells.keys()}
    cells.update(passage.further)
    passage.further = {}
    code = continuation.located.flow.code
    names = set(cells_at_start(code))
    slots: list[object] = []
    for name in continuation.slots:
        if name in names:
            slots.append(cells[name] if name in cells else _cell(passage.values, name))
        else:
            slots.append(cells[name].cell_contents if name in cells else passage.values[name])
    passage.values.clear()
    for name in list(gone):
        _let_go_of(gone, name)
    state: list[object] = [tuple(slots)] if slots else []
    start = continuation.start
    wanted = sum(1 for kind, _ in start.stack if kind not in (INDEX, EXIT_SELF))
    state += items[: wanted - start.supplied]
    state += passage.last
    passage.last = []
    passage.cells = ()
    if code.co_freevars:
        state.append(tuple(cells[name] if name in cells else _cell({}, name) for name in code.co_freevars))
    return state


def _let_go_of(cells: dict[str, Any], name: str) -> None:
    """Takes a cell out, and empties it if nobody has it but the dead frame, whose slot cannot be emptied."""
    cell = cells.pop(name)
    if sys.getrefcount(cell) <= _REFERENCES_OF_ITS_OWN:
        with contextlib.suppress(ValueError):
            del cell.cell_contents


def _count(cells: dict[str, Any], name: str) -> int:
    cell = cells.pop(name)
    return sys.getrefcount(cell)


_slot: Final = [CellType()]
#: What is counted of a cell that has one owner.
_REFERENCES_OF_ITS_OWN: Final = _count({"": _slot[0]}, "")


def _cell(values: dict[str, object], name: str) -> CellType:
    """A new cell for a local of the old body that is a cell in the new one."""
    return CellType(values[name]) if name in values else CellType()


def _runner(passage: Passage, state: list[object]) -> Callable[[], Any]:
    """A callable without arguments that runs the continuation."""
    code = passage.continuation.code
    closure: Any = state.pop() if code.co_freevars else None
    if (
        code.co_flags & inspect.CO_OPTIMIZED
        or passage.namespace is None
        or passage.namespace is passage.scope
    ):
        function = FunctionType(code, passage.scope, code.co_name, (None,) * code.co_argcount, closure)
        first = code.co_argcount
        if code.co_kwonlyargcount:
            function.__kwdefaults__ = dict.fromkeys(code.co_varnames[first : first + code.co_kwonlyargcount])
        function.__qualname__ = code.co_qualname
        return function
    if closure is not None:
        return functools.partial(exec, code, passage.scope, passage.namespace, closure=closure)
    return functools.partial(exec, code, passage.scope, passage.namespace)


# -- what the cold code calls, by way of `daifu_bc` ---------------------------------------------------------------


def take(_module: object) -> object:
    """The next part of the state for a continuation's prefix."""
    pending = _thread.pending
    state = pending[-1]
    value = state.pop()
    if not state:
        pending.pop()
        if signals.is_going_on():
            signals.gone_on()
    return value


def follow(_module: object, result: object) -> Handover | None:
    """The handover of a continuation that has crashed again and goes on; None when it is done."""
    if type(result) is Handover:
        if _thread.crashed and _thread.crashed[-1] is result:
            _thread.crashed.pop()
        return result
    if result is None and _thread.crashed:
        return _thread.crashed.pop()
    return None


def note_crash(handover: Handover) -> None:
    """Keeps the handover of a continuation that cannot return it, until `follow` asks."""
    _thread.crashed.append(handover)


def trimmed(frame: FrameType, exception: BaseException) -> bool:
    """Whether an exception at a stub of `frame` has left the continuation that it called, behind all stubs.

    It has been judged where it was raised; the frame is taken out of its traceback.
    """
    traceback = traceback_of(exception)
    if traceback is None or traceback.tb_frame is not frame or traceback.tb_lasti <= frame.f_lasti:
        return False
    set_traceback(exception, traceback.tb_next)
    return True


def trim(_module: object, exception: BaseException) -> None:
    """Takes the frame that ran continuations out of the traceback of what left the last of them."""
    traceback = traceback_of(exception)
    if traceback is not None and traceback.tb_frame is sys._getframe(1):
        set_traceback(exception, traceback.tb_next)
    if isinstance(exception, GeneratorExit) and _thread.crashed:
        _finish(_thread.crashed.pop())


def _finish(handover: Handover | None) -> None:
    """Runs the rest of a generator or coroutine that was held while it was being closed; nobody takes its handover.

    Raises:
        RuntimeError: it yields or awaits something, which closing does not allow.
    """
    while handover is not None:
        rest = handover()()
        try:
            rest.send(None)
        except StopIteration as end:
            handover = follow(None, end.value)
        else:
            kind = "coroutine" if inspect.iscoroutine(rest) else "generator"
            raise RuntimeError(f"{kind} ignored GeneratorExit")


class Delegate:
    """Passes on what is sent to, thrown into and yielded by the continuation of an asynchronous generator."""

    __slots__ = ("_generator", "_thrown")

    def __init__(self, generator: Any) -> None:
        self._generator = generator
        self._thrown: BaseException | None = None

    def __call__(self, value: Any, kind: bool | None = None) -> Any:
        """One argument: the awaitable of the next step. With True: `value` was thrown. With False: is it the end?"""
        if kind is None:
            thrown, self._thrown = self._thrown, None
            return self._generator.asend(value) if thrown is None else self._generator.athrow(thrown)
        if kind:
            self._thrown = value
            return None
        return isinstance(value, StopAsyncIteration)


def delegate(_module: object, generator: Any) -> Delegate:
    """What drives the continuation of an asynchronous generator."""
    return Delegate(generator)


def read_locals(frame: FrameType, code: CodeType) -> dict[str, object]:
    """The values of the plain locals of a frame (no cells), and nothing of them kept by the frame's snapshot."""
    if not code.co_flags & inspect.CO_OPTIMIZED:
        return {}
    cells = set(cells_at_start(code))
    known = frame.f_locals
    # Names that an action has added are there too: a new body may have them as locals.
    values = {name: value for name, value in known.items() if name not in cells}
    if not pyversion.LOCALS_WRITE_THROUGH:
        known.clear()
    return values
