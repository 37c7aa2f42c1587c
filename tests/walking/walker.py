"""Runs a program by its tree, so that it can go on at any place of any text of it. Nothing of the engine is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.programs.world import Overflow, World, is_injected, show
from tests.walking.tree import Function, Node, Program


class Open(NamedTuple):
    """A block that is being run.

    Attributes:
        node: whose block it is.
        block: its name.
        state: the iterator, the manager, the exception that is being handled, or what follows a ``finally``.
    """

    node: Node
    block: str
    state: Any


class Step(NamedTuple):
    """A step of the way to where a run goes on: a statement, the block of it that is open, and that block's state."""

    place: int
    block: str = ""
    state: Any = None


@dataclass(eq=False)
class Frame:
    """A call of a function.

    Attributes:
        function: what it runs.
        variables: its locals.
        open: the blocks that are being run, the outermost first.
        handled: exceptions that are being handled.
    """

    function: Function
    variables: dict[str, Any]
    open: list[Open] = field(default_factory=list)
    handled: list[BaseException] = field(default_factory=list)


@dataclass(frozen=True)
class Answer:
    """What is to happen with a crash.

    Attributes:
        verb: ``pass``, ``skip``, ``skip body``, ``skip loop``, ``return``, ``raise`` or ``surgery``.
        frame: which frame goes on.
        value: what ``return`` gives.
        program: the text in which it goes on after a surgery, and all calls from then on.
        way: where.
        leaves: the number of blocks that stay open.
        renamed: variables that have another name there.
    """

    verb: str
    frame: Frame | None = None
    value: Any = None
    program: Program | None = None
    way: tuple[Step, ...] = ()
    kept: int = 0
    renamed: dict[str, str] = field(default_factory=dict)


class Leave(BaseException):
    """Leaves blocks, as ``break``, ``continue`` and ``return`` do."""

    def __init__(self, kind: str, value: Any = None) -> None:
        self.kind = kind
        self.value = value


class Elsewhere(BaseException):
    """The frame goes on elsewhere."""

    def __init__(self, opened: list[Open], answer: Answer, error: BaseException) -> None:
        self.opened = opened
        self.answer = answer
        self.error = error


class Skipped(BaseException):
    """The statement is left out."""


class Letting:
    """What becomes of an exception that is let go: where it arrives, and what happens there."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        #: When the statement has been reached: the ``finally`` bodies that it still has to run, and what follows.
        self.finals = 0
        self.then: Leave | None = None


#: Where a run crashed: the frame, the statement and the exception.
Answering = Callable[["Walker", Frame, Node, BaseException], Answer]

_LEAVING = {"skip body": "continue", "skip loop": "break", "return": "return"}


class Walker:
    """Runs one program.

    Args:
        program: what to run.
        world: what it can call.
        answering: says what happens with each crash that the plan asks for.
        beginning: called before each statement; whether to leave it out.
    """

    def __init__(
        self,
        program: Program,
        world: World,
        answering: Answering,
        beginning: Callable[[Node], bool] = lambda node: False,
    ) -> None:
        self.program = program
        self.world = world
        self.stack: list[Frame] = []
        self._answering = answering
        self._beginning = beginning
        self._let_go: dict[int, tuple[BaseException, Letting]] = {}
        self._names = world.names()
        for name in program.functions:
            self._names[name] = self._caller(name)

    def run(self) -> tuple[str, str]:
        """Run it; its result and its exception as text."""
        try:
            return show(self.call("main")), ""
        except (Exception, Overflow) as error:
            return "", show(error)

    def _caller(self, name: str) -> Callable[..., Any]:
        return lambda *arguments: self.call(name, *arguments)

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function."""
        function = self.program.functions[name]
        frame = Frame(function, dict(zip(function.parameters, arguments, strict=True)))
        self.stack.append(frame)
        way: tuple[Step, ...] = ()
        try:
            while True:
                going = None
                try:
                    self._block(frame, frame.function.body, way)
                except Leave as leave:
                    return leave.value
                except Elsewhere as elsewhere:
                    going = elsewhere
                if going is None:
                    return None
                way = self._gone(frame, going)
        finally:
            self.stack.pop()

    def _gone(self, frame: Frame, going: Elsewhere) -> tuple[Step, ...]:
        """Leave what is left, and take the new text."""
        answer, error = going.answer, going.error
        for node, block, state in reversed(going.opened[answer.kept :]):
            if node.kind == "with":
                state.__exit__(type(error), error, None)
            elif node.kind == "try" and block != "finalbody" and "finalbody" in node.blocks:
                self._block(frame, node.blocks["finalbody"], ())
        assert answer.program is not None
        self.program = answer.program
        frame.function = answer.program.functions[frame.function.name]
        names = answer.renamed
        frame.variables = {names.get(name, name): value for name, value in frame.variables.items()}
        return answer.way

    # -- statements ------------------------------------------------------------------------------------------------

    def _block(self, frame: Frame, nodes: list[Node], way: tuple[Step, ...]) -> None:
        first = way[0].place if way else 0
        for index in range(first, len(nodes)):
            node = nodes[index]
            inside = way if index == first and way and way[0].block else ()
            if not inside and self._beginning(node):
                continue
            try:
                self._kinds[node.kind](self, frame, node, inside)
            except Skipped:
                pass

    def _inside(self, frame: Frame, opened: Open, way: tuple[Step, ...]) -> None:
        frame.open.append(opened)
        try:
            self._block(frame, opened.node.blocks[opened.block], way[1:])
        finally:
            frame.open.pop()

    def _attempt(self, frame: Frame, node: Node, action: Callable[[], Any]) -> Any:
        """Do a part of a statement that can crash."""
        while True:
            try:
                return action()
            except (Leave, Elsewhere, Skipped):
                raise
            except BaseException as error:
                answer = self._answered(frame, node, error)
                if answer is None:
                    raise
                crash = error
            if answer.verb == "skip":
                raise Skipped
            if answer.verb == "surgery":
                raise Elsewhere(list(frame.open), answer, crash)
            if answer.verb in _LEAVING:
                self._leave(frame, answer, crash)

    def _answered(self, frame: Frame, node: Node, error: BaseException) -> Answer | None:
        """What is to happen with an exception here; None if it goes on."""
        if not is_injected(error):
            return None
        if id(error) not in self._let_go:
            self._let_go[id(error)] = error, Letting(self._answering(self, frame, node, error))
        _, letting = self._let_go[id(error)]
        if letting.answer.frame is not frame or letting.answer.verb == "raise" or letting.then is not None:
            return None
        if letting.answer.verb in ("pass", "skip", "surgery"):
            del self._let_go[id(error)]
        return letting.answer

    def _leave(self, frame: Frame, answer: Answer, crash: BaseException) -> None:
        """Leave blocks; where a ``finally`` is in the way to a loop, the exception leaves those up to the outermost."""
        leave = Leave(_LEAVING[answer.verb], answer.value)
        if leave.kind == "return":
            raise leave
        loops = [
            index
            for index, opened in enumerate(frame.open)
            if opened.node.kind in ("for", "while") and opened.block == "body"
        ]
        inner = frame.open[loops[-1] + 1 :]
        _, letting = self._let_go[id(crash)]
        letting.finals = sum(
            opened.node.kind == "try" and opened.block != "finalbody" and "finalbody" in opened.node.blocks
            for opened in inner
        )
        letting.then = leave
        raise crash if letting.finals else leave

    def _value(self, frame: Frame, node: Node) -> Any:
        return self._attempt(frame, node, lambda: eval(node.text, self._names, frame.variables))

    def _simple(self, frame: Frame, node: Node, way: tuple[Step, ...]) -> None:
        del way
        word, _, rest = node.text.partition(" ")
        if word in ("break", "continue"):
            raise Leave(word)
        if word == "raise" and not rest:
            raise frame.handled[-1]
        if word == "return":
            raise Leave(word, self._attempt(frame, node, lambda: eval(rest, self._names, frame.variables)))
        self._attempt(frame, node, lambda: exec(node.text, self._names, frame.variables))

    def _if(self, frame: Frame, node: Node, way: tuple[Step, ...]) -> None:
        block = way[0].block if way else "body" if self._value(frame, node) else "orelse"
        if block in node.blocks:
            self._inside(frame, Open(node, block, None), way)

    def _while(self, frame: Frame, node: Node, way: tuple[Step, ...]) -> None:
        self._loop(frame, node, way, None, lambda: bool(self._value(frame, node)))

    def _for(self, frame: Frame, node: Node, way: tuple[Step, ...]) -> None:
        iterator = way[0].state if way else iter(self._value(frame, node))

        def advance() -> bool:
            for value in iterator:
                frame.variables[node.target] = value
                return True
            return False

        self._loop(frame, node, way, iterator, advance)

    def _loop(
        self, frame: Frame, node: Node, way: tuple[Step, ...], state: Any, advance: Callable[[], bool]
    ) -> None:
        while not (way and way[0].block == "orelse") and (way or advance()):
            try:
                self._inside(frame, Open(node, "body", state), way)
            except Leave as leave:
                if leave.kind == "break":
                    return
                if leave.kind == "return":
                    raise
            way = ()
        if "orelse" in node.blocks:
            self._inside(frame, Open(node, "orelse", None), way)

    def _with(self, frame: Frame, node: Node, way: tuple[Step, ...]) -> None:
        def enter() -> Any:
            made = eval(node.text, self._names, frame.variables)
            made.__enter__()
            return made

        manager = way[0].state if way else self._attempt(frame, node, enter)
        try:
            self._inside(frame, Open(node, "body", manager), way)
        except Elsewhere:
            raise
        except Leave:
            manager.__exit__(None, None, None)
            raise
        except BaseException as error:
            manager.__exit__(type(error), error, None)
            raise
        manager.__exit__(None, None, None)

    def _try(self, frame: Frame, node: Node, way: tuple[Step, ...]) -> None:
        pending: BaseException | None = None
        if way and way[0].block == "finalbody":
            pending = way[0].state
        else:
            try:
                self._tried(frame, node, way)
            except Elsewhere:
                raise
            except BaseException as error:
                pending = error
            way = ()
        if "finalbody" in node.blocks:
            self._inside(frame, Open(node, "finalbody", pending), way)
            if pending is not None and id(pending) in self._let_go:
                _, letting = self._let_go[id(pending)]
                if letting.then is not None and letting.answer.frame is frame:
                    letting.finals -= 1
                    if not letting.finals:
                        raise letting.then
        if pending is not None:
            raise pending

    def _tried(self, frame: Frame, node: Node, way: tuple[Step, ...]) -> None:
        block = way[0].block if way else "body"
        handled: BaseException | None = way[0].state if way else None
        if block == "body":
            try:
                self._inside(frame, Open(node, "body", None), way)
            except (Elsewhere, Leave):
                raise
            except BaseException as error:
                if "handler" not in node.blocks or not isinstance(error, eval(node.text, self._names)):
                    raise
                handled = error
            way = ()
            block = "orelse" if handled is None else "handler"
        if block == "handler":
            assert handled is not None
            frame.handled.append(handled)
            try:
                self._inside(frame, Open(node, "handler", handled), way)
            finally:
                frame.handled.pop()
        elif block in node.blocks:
            self._inside(frame, Open(node, block, None), way)

    _kinds = {
        "simple": _simple,
        "if": _if,
        "while": _while,
        "for": _for,
        "with": _with,
        "try": _try,
    }
