"""A hold is shown in a debugger: VS Code, or whatever else speaks the debug adapter protocol."""

from __future__ import annotations

import ast
import time
from types import FrameType
from typing import Any, cast

from daifu_bc import pyversion
from daifu_bc.errors import DaifuError
from daifu_bc.frontends.calls import calls
from daifu_bc.frontends.commands import ACTION, NAMES, TABLE, read, run_command
from daifu_bc.frontends.listening import sentence
from daifu_bc.frontends.patience import report_in_time
from daifu_bc.frontends.script import Command, ScriptError
from daifu_bc.frontends.service import METHODS, is_over
from daifu_bc.frontends.station import station
from daifu_bc.frontends.switching import ask_in_turn, news
from daifu_bc.frontends.terminal import flush_program_output
from daifu_bc.frontends.typed import parse_typed
from daifu_bc.frontends.values import printable
from daifu_bc.install.notice import say_once
from daifu_bc.integrations.debugpy import listen, listener
from daifu_bc.integrations.pydevd import hooks, known, watching
from daifu_bc.integrations.pydevd.stops import Answer, step_on, stop
from daifu_bc.recovery import attaching, debuggers, journal, signals
from daifu_bc.recovery.announcements import announce
from daifu_bc.recovery.attributes import arguments_of
from daifu_bc.recovery.hold import Hold
from daifu_bc.recovery.interface import HoldLike, Responder
from daifu_bc.recovery.interrupts import close_to, open_sections
from daifu_bc.recovery.lookups import drop_snapshot
from daifu_bc.recovery.prospects import may_go_to, next_place
from daifu_bc.recovery.telling import tell
from daifu_bc.recovery.turns import turns
from daifu_bc.recovery.ways import Place

#: How a word is called in Python: `daifu.skip()`.
PREFIX = "daifu"
_PAUSE = 0.05
#: Whether a hold is being shown.
_shown = False


def responder() -> Responder:
    """Return what waits for a debugger, where nobody else can be asked."""
    return answer


def answer(hold: HoldLike) -> None:
    """Show the hold in a debugger, whenever it is its turn, until it is decided or nobody has come in time."""
    began, limit = time.monotonic(), attaching.timeout()
    with signals.guarded(), turns.entered(hold, asks=True) as place:
        flush_program_output()
        tell("\n" + report_in_time(hold))

        def ask() -> None:
            first(hold)
            while hold.decision is None and turns.goes_on_asking(hold):
                name = signals.request_to_end()
                nobody = hooks.debugger() is None and not listen_as_wanted()  # its adapter may have died
                if name or nobody or (limit and time.monotonic() - began > limit):
                    _let_go(hold, name, limit)
                elif hooks.attached():
                    show(hold)
                else:
                    time.sleep(_PAUSE)

        ask_in_turn(hold, place, ask)


def _let_go(hold: HoldLike, name: str, limit: float | None) -> None:
    if name:
        reason = f"{name} asks the program to end"
    elif hooks.debugger() is None:
        reason = "no debugger can come"
    else:
        reason = f"no debugger has come for {limit:g} s"
        announce("timed out", hold, reason)
    tell(f"daifu_bc: hold {hold.number}: {reason}; {hold.let_go(name or None)}.")
    journal.done(hold, "raise", code=name, outcome=reason)


def first(hold: HoldLike) -> None:
    """Before anybody else is asked: listen for a debugger if one is wanted, and if one is there show the hold.

    Args:
        hold: it.
    """
    if debuggers.wanted():
        listen_as_wanted()
    if hooks.attached():
        show(hold)


def listen_as_wanted() -> bool:
    """Listen where the user wants it, and tell where; whether that could be done."""
    before = listener()
    try:
        found = listen()
    except (DaifuError, OSError) as error:
        if hooks.debugger() is None:
            say_once("debugger", f"{str(error).rstrip('.')}. Everything else works.")
        return hooks.debugger() is not None
    if found != before:
        tell(f"daifu_bc: {sentence(found)}")
    return True


def begin() -> None:
    """The program begins: where it costs nothing, a debugger may attach before anything is held."""
    if pyversion.MONITORING:
        listen_as_wanted()


def changed(attached: bool) -> None:
    """A debugger has come or has left; called in a thread of its own.

    Args:
        attached: whether it has come.
    """
    if attached and not _shown:
        calls.put(show)


def show(hold: HoldLike) -> None:
    """Show the hold until it is decided, the debugger has left, or it is another hold's turn."""
    global _shown
    flush_program_output()
    tell(f"daifu_bc: hold {hold.number} is shown in the debugger that is attached.")
    before, _shown = _shown, True
    try:
        _show(hold)
    finally:
        _shown = before
    if hooks.debugger() is None:  # its adapter has died
        watching.rest()
        if debuggers.wanted():
            listen_as_wanted()
    station.service.active = time.monotonic()
    if hold.decision is not None:
        known.tell("daifuResumed", {"hold": hold.number, "word": getattr(hold.decision, "word", "")})


def _show(hold: HoldLike) -> None:
    visit = Visit(cast(Hold, hold))
    how = known.EXCEPTION if hold.crashed else known.PAUSE
    while hooks.attached() and not is_over(hold):
        with station.minded(hold):
            wanted = stop(visit, visit.held.frame, hold.exception, visit.lines(), how)
        visit.drop_snapshots()
        if visit.asked_to_end():
            return
        if wanted and not is_over(hold):
            visit.go_on(wanted)
        elif visit.called():
            calls.run(hold)
            station.answer(hold, METHODS)
            visit.look_again()
        if hold.crashed:
            how = known.JUMP if visit.moved else known.EXCEPTION


class Visit:
    """What a debugger's client does at a hold.

    Args:
        hold: it.

    Attributes:
        held: the frame that is held.
    """

    def __init__(self, hold: Hold) -> None:
        self.hold = hold
        self.held = next(view for view in hold.frames if view.held)
        #: The line that the editor's `goto` has chosen.
        self._chosen = 0
        #: The frame that the editor looked at last.
        self._looked_at: FrameType | None = None
        self._refused = ""
        self._request = signals.request_to_end()
        self._first = self._next = self._find_next()
        self._status = self._describe()

    # -- what is seen ------------------------------------------------------------------------------------------------

    @property
    def moved(self) -> bool:
        """Whether the run would go on elsewhere than at the crashed statement."""
        return bool(self._chosen) or self._next != self._first

    def lines(self) -> dict[FrameType, int]:
        """The lines at which frames are shown."""
        found = {view.frame: view.line for view in self.hold.frames}
        if self._chosen:
            found[self.held.frame] = self._chosen
        elif self.moved and self._next is not None:
            found[self.held.frame] = self._next.line
        return found

    def _find_next(self) -> Place | None:
        """Where the held frame would go on."""
        selected = self.hold.selected
        self._select(self.held.frame)
        try:
            self._refused = ""
            return next_place(self.hold)
        except DaifuError as refusal:
            self._refused = str(refusal)
            return None
        finally:
            self._select(selected.frame)

    def _select(self, frame: FrameType) -> None:
        for number, view in enumerate(self.hold.frames):
            if view.frame is frame:
                self.hold.select(number)

    def status(self) -> dict[str, Any]:
        """Return what is told of the hold; it was put together in the held thread."""
        return self._status

    def _describe(self) -> dict[str, Any]:
        hold, place = self.hold, self._next
        arguments = arguments_of(hold.exception)
        text = arguments[0] if len(arguments) == 1 and type(arguments[0]) is str else ""
        next_place = None
        if place is not None:
            next_place = {"path": place.path, "line": place.line, "text": place.text, "new": place.new}
            if self._chosen:
                next_place |= {"line": self._chosen, "text": self._text_of(self._chosen)}
        return {
            "held": True,
            "hold": hold.number,
            "thread": hold.thread_name,
            "error": {"type": type(hold.exception).__name__, "text": text},
            "next": next_place,
            "refused": "" if next_place else self._refused,
            "words": [
                {"name": word.name, "usage": list(word.usage), "summary": word.summary} for word in TABLE
            ],
        }

    def _text_of(self, line: int) -> str:
        return next((text.strip() for number, text in self.held.source or () if number == line), "")

    def drop_snapshots(self) -> None:
        """What the debugger has read of frames is not to keep anything alive."""
        for view in self.hold.frames:
            code = view.code
            drop_snapshot(view.frame, code.co_varnames + code.co_cellvars + code.co_freevars)

    def called(self) -> bool:
        """Tell whether the thread is wanted elsewhere: for what an attached client has typed, or for its end."""
        return station.wants_thread() or self.asked_to_end()

    def asked_to_end(self) -> bool:
        """Tell whether a signal has asked the program to end since the hold is shown."""
        return signals.request_to_end() != self._request

    def look_again(self) -> None:
        """Something may have been changed elsewhere."""
        self._next = self._find_next()
        self._status = self._describe()

    # -- what is done ------------------------------------------------------------------------------------------------

    def evaluate(self, text: str, frame: FrameType | None, context: str) -> Answer | None:
        """Run words that were typed; None if it is an expression for the debugger.

        Args:
            text: what was typed.
            frame: the frame that the editor looks at.
            context: `repl`, or `daifu` if it can only be meant for us.
        """
        words = text.strip()
        if context == "repl":
            words = _called(words) or (
                "" if not _is_word(words) or self._is_variable(words, frame) else words
            )
            if not words:
                return None
        frame = frame or self.held.frame
        if frame is not self._looked_at:
            self._looked_at = frame
            self._select(frame)
        told, failed = self._run(words)
        before, self._next = self._next, self._find_next()
        if self._next != before:
            self._chosen = 0
        self._status = self._describe()
        decided = self.hold.decision is not None
        if not decided:
            known.tell("daifuHeld", self._status)
        over = decided or self._next != before or not turns.goes_on_asking(self.hold)
        body = {"result": told, "variablesReference": 0}
        if context == "daifu":
            body["daifu"] = {"failed": failed, "decided": decided, "status": self._status}
            return Answer(body, over=over)
        return Answer(body, refused=told if failed else "", over=over)

    def _is_variable(self, text: str, frame: FrameType | None) -> bool:
        frame = frame or self.held.frame
        return text.isidentifier() and (text in frame.f_locals or text in frame.f_globals)

    def _run(self, words: str) -> tuple[str, str]:
        """Run words until one fails or decides; what they answer, and why the last one failed."""
        try:
            commands = parse_typed(words)
        except ScriptError as error:
            return str(error), str(error)
        texts, failed, sections = [], "", open_sections()
        for command in commands:
            found = run_command(self.hold, command)
            close_to(sections)
            failed = found.failed
            if found.text:
                texts.append(found.text)
            if failed or self.hold.decision is not None:
                break
        texts += [printable(text) for text in (*signals.news(person=True), *news(self.hold))]
        return "\n".join(texts), failed

    def go_on(self, wanted: str) -> None:
        """The editor's Continue, or a step of it.

        Args:
            wanted: `continue`, or the step's command.
        """
        self._select(self.held.frame)
        told, failed = self._run(f"goto {self._chosen}" if self._chosen else "pass")
        if failed:
            known.tell("output", {"category": "stderr", "output": f"{told}\n"})
        elif wanted != "continue":
            step_on(wanted)

    def reachable(self, path: str, line: int) -> str:
        """Return why the run cannot go on at a line, or nothing."""
        if path != self.held.filename:
            return f"{path} is not the file of {self.held.name}, which is held"
        selected = self.hold.selected
        self._select(self.held.frame)
        try:
            may_go_to(self.hold, line)
        except DaifuError as refusal:
            return str(refusal)
        finally:
            self._select(selected.frame)
        return ""

    def go_to(self, line: int) -> Answer:
        """The run is to go on at a line as soon as the editor lets it."""
        refused = self.reachable(self.held.filename, line)
        if refused:
            return Answer(refused=refused)
        self._chosen = line
        self._status = self._describe()
        return Answer(over=True)


def _is_word(text: str) -> bool:
    """Tell whether a text begins with a word of ours; what is no word is Python, which is the debugger's."""
    first = text.partition("\n")[0].strip()
    if not first:
        return False
    word, _ = read(Command(1, first))
    return word is not ACTION or first.startswith(("action ", "!"))


def _called(text: str) -> str:
    """Return the word that `daifu.WORD(…)` calls, with its arguments; nothing if the text is no such call."""
    if not text.startswith(f"{PREFIX}."):
        return ""
    try:
        call = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.keywords:
        return ""
    # `pass`, `return` and `raise` cannot be attributes.
    name = call.func.attr.removesuffix("_")
    if name not in NAMES or not isinstance(call.func.value, ast.Name):
        return ""
    arguments = [
        one.value if isinstance(one, ast.Constant) and isinstance(one.value, str) else ast.unparse(one)
        for one in call.args
    ]
    return " ".join([name, *arguments])
