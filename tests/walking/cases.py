"""Cases for the properties of edits and of frames: a program, where it crashes, what is said, and what must come of it."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.programs.run import Outcome
from tests.programs.world import Plan, World
from tests.walking.mapping import Ambiguous, Impossible, where
from tests.walking.tree import Node, Program
from tests.walking.walker import Answer, Frame, Walker
from tests.walking.writing import Editor, Writer

MOST_EVENTS = 500
RAISE = Answer("raise")


@dataclass
class Case:
    """What is played, and what must come of it.

    Attributes:
        program: the program.
        plan: where it crashes.
        words: the answers to its holds.
        expected: what it must do; None if the words may be refused.
        let_go: what it must do if they are refused.
        edited: the text that a surgery installs.
        did: what kind of case it is.
    """

    program: str
    plan: Plan
    words: list[list[str]]
    expected: Outcome | None
    let_go: Outcome
    edited: str = ""
    did: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<{self.did}, {self.plan.keys}, {self.words}>\n{self.program}\n--- edited\n{self.edited}"


def walked(
    program: Program, plan: Plan, answering: Callable[[Walker, Frame, Node, BaseException], Answer]
) -> Outcome:
    """What the program does by its tree."""
    world = World(plan)
    result, error = Walker(program, world, answering).run()
    return Outcome(events=world.events, result=result, error=error, failures=world.failures)


def a_crash(choose: Callable[[int], int], program: Program) -> Plan | None:
    """A call that is made, as the one that fails; None if there is none."""
    world = World(Plan())
    Walker(program, world, lambda *_: RAISE).run()
    keys = sorted(key for key in world.calls_of if isinstance(key, int))
    if not keys or len(world.events) > MOST_EVENTS:
        return None
    key = keys[choose(len(keys) - 1)]
    return Plan("keyed", keys={str(key): [1 + choose(min(world.calls_of[key], 3) - 1)]})


def an_edit(choose: Callable[[int], int], most: int = 2) -> Case | None:
    """A crash that is answered by a surgery."""
    writer = Writer(choose)
    program = writer.program()
    plan = a_crash(choose, program)
    if plan is None:
        return None
    crash: list[tuple[Frame, Node]] = []

    def note(walker: Walker, frame: Frame, node: Node, error: BaseException) -> Answer:
        crash.append((copy.copy(frame), node))
        crash[-1][0].open = list(frame.open)
        return RAISE

    let_go = walked(program, plan, note)
    frame, node = crash[0]
    edited, editor = _edited(writer, program, frame, most)
    try:
        compile(edited.source, "edited", "exec")
    except SyntaxError:
        return None
    try:
        way, kept = where(frame, node, edited.functions[frame.function.name].body)
    except Ambiguous:
        return None
    except Impossible:
        return Case(program.source, plan, [["surgery", "pass"]], None, let_go, edited.source, editor.did)

    def mend(walker: Walker, frame: Frame, node: Node, error: BaseException) -> Answer:
        way, kept = where(frame, node, edited.functions[frame.function.name].body)
        return Answer("surgery", frame, program=edited, way=way, kept=kept, renamed=editor.renamed)

    expected = walked(program, plan, mend)
    return Case(program.source, plan, [["surgery", "pass"]], expected, let_go, edited.source, editor.did)


def a_frame(choose: Callable[[int], int]) -> Case | None:
    """A crash that is answered by a frame of its stack and how that goes on."""
    writer = Writer(choose, clean_up=True)
    program = writer.program(most=3)
    plan = a_crash(choose, program)
    if plan is None:
        return None
    chosen: list[tuple[int, Answer]] = []

    def note(walker: Walker, frame: Frame, node: Node, error: BaseException) -> Answer:
        number = choose(len(walker.stack) - 1)
        chosen.append((number, _verb(writer, walker.stack[number])))
        return RAISE

    let_go = walked(program, plan, note)
    number, answer = chosen[0]

    def go_on(walker: Walker, frame: Frame, node: Node, error: BaseException) -> Answer:
        name[:] = [walker.stack[number].function.name]
        return dataclasses.replace(answer, frame=walker.stack[number])

    name: list[str] = []
    expected = walked(program, plan, go_on)
    word = f"return {answer.value}" if answer.verb == "return" else answer.verb
    return Case(program.source, plan, [[f"frame {name[0]}", word]], expected, let_go, did=[answer.verb])


def _verb(writer: Writer, frame: Frame) -> Answer:
    """How a frame goes on."""
    verbs = ["pass", "skip", "return"]
    if any(opened.node.kind in ("for", "while") and opened.block == "body" for opened in frame.open):
        verbs += ["skip body", "skip loop"]
    verb = writer.one_of(verbs)
    return Answer(verb, value=writer.choose(9) if verb == "return" else None)


def _edited(writer: Writer, program: Program, frame: Frame, most: int) -> tuple[Program, Editor]:
    edited = copy.deepcopy(program)
    function = edited.functions[frame.function.name]
    near, block = [function.body], function.body
    for opened in frame.open:
        owner = next(node for node in block if node.ident == opened.node.ident)
        block = owner.blocks[opened.block]
        near.append(block)
    # The innermost ones count most.
    editor = Editor(writer, function, [*near[:-1], near[-1], near[-1]])
    for _ in range(1 + writer.choose(most - 1)):
        editor.edit()
    if writer.chance(15):
        editor.rename()
    edited.above = writer.choose(2)
    return edited, editor
