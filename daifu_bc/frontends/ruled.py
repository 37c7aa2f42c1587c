"""Rules answer a hold: the first one that matches and decides. Else it is left to whoever comes after them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from daifu_bc.errors import DaifuError
from daifu_bc.frontends import render, will
from daifu_bc.frontends.commands import read, run_command
from daifu_bc.frontends.patience import report_in_time
from daifu_bc.frontends.rule_file import HOLD, LAST_WILL, load
from daifu_bc.frontends.script import Command, ScriptError, parse
from daifu_bc.frontends.values import printable
from daifu_bc.recovery import attaching, interlude, journal, last_will, policy, rules, signals, streaks
from daifu_bc.recovery.interface import FrameLike, HoldLike, Responder
from daifu_bc.recovery.interrupts import Interruptible, close_to, open_sections, was_interrupted
from daifu_bc.recovery.matching import frame_for
from daifu_bc.recovery.repetition import limit
from daifu_bc.recovery.rules import Rule
from daifu_bc.recovery.telling import tell
from daifu_bc.recovery.turns import turns

#: For what is counted, as threads may be held at the same time.
_lock: Final = threading.Lock()


def responder() -> Responder:
    """Return what goes through the rules."""
    return answer


def prepare() -> None:
    """Read the file of rules that the environment names, if it has not been read.

    Raises:
        PolicyError: it cannot be read, or has mistakes.
    """
    name = rules.wanted_file()
    if name is not None:
        rules.take_file(name, load(name))


def answer(hold: HoldLike) -> None:
    """Have the rules decide about a hold, if they do."""
    if not getattr(hold, "crashed", True):  # a pause: somebody has asked for it, who wants to look
        return
    try:
        policy.prepare_rules()
    except DaifuError as error:
        # In a child process, or where the program has named another file: it was not told before.
        tell(f"daifu_bc: {error}")
        rules.take_file(rules.wanted_file() or "", ())
    streaks.begin(hold.frames)
    told = False
    for rule in rules.every():
        frame = frame_for(rule, hold)
        if frame is None:
            continue
        with signals.guarded(), interlude.asked(), turns.entered(hold, asks=False), journal.by(rule.name):
            number = streaks.count(rule.name, frame) + 1
            if not told:
                told = True
                tell(_heading(hold) if number > 1 else report_in_time(hold))
            ended = _Attempt(hold, rule, frame, number).make()
        if ended:
            return


def _heading(hold: HoldLike) -> str:
    held = next((frame for frame in hold.frames if frame.held), hold.selected)
    return f"-- daifu: hold {hold.number}: {render.error(hold.exception)} at {render.place(held)}, again"


class _Attempt:
    """A rule that is for a hold.

    Args:
        hold: the hold.
        rule: the rule.
        frame: the frame that it is about.
        number: for the how many-th time in a row.
    """

    def __init__(self, hold: HoldLike, rule: Rule, frame: FrameLike, number: int) -> None:
        self.hold = hold
        self.rule = rule
        self.frame = frame
        self.number = number
        self._word = ""
        #: Why it has been broken off; then nobody but people or the signal that did it has to decide.
        self._broken_off = ""
        #: Whether it leaves the hold to people.
        self._leaves = False

    def make(self) -> bool:
        """Have it decide; tell whether the rules that come after it need not be asked."""
        why_not = self._used_up()
        if why_not:
            self._tell(f"{why_not}; it is not done")
            journal.done(self.hold, "rule", seconds=0.0, outcome=why_not)
            return False
        selected = self.hold.selected
        if self._wait():
            self._do()
        _tell_news()
        name = signals.request_to_end()
        if name == KeyboardInterrupt.__name__ and policy.at_terminal() and self.hold.decision is None:
            # It has come in between; the person is asked.
            name, self._broken_off = "", self._broken_off or "it was interrupted"
        if name:
            self._let_go(name)
        elif self._broken_off:
            self._tell(f"{self._broken_off}, and it leaves the hold")
            journal.done(self.hold, "rule", outcome=self._broken_off)
        if self.hold.decision is not None:
            return True
        self._select(selected)
        return self._leaves or bool(self._broken_off)

    def _used_up(self) -> str:
        rule, before = self.rule, self.number - 1
        if rule.total is not None and rule.done >= rule.total:
            return f"it has been done {_times(rule.total)} in all"
        row = f"it has been done {_times(before)} in a row" if before > 1 else "it has been done"
        if rule.times is not None:
            return f"{row}, and has not helped" if before >= rule.times else ""
        most = limit()
        return f"{row}, and nothing has changed" if most is not None and before >= most else ""

    def _wait(self) -> bool:
        """Wait before it is done; tell whether it is to be done."""
        seconds = self.rule.pause(self.number)
        if seconds <= 0:
            return True
        most = f" of {self.rule.times}" if self.rule.times is not None else ""
        self._tell(f"it waits {seconds:g} s, time {self.number}{most} in a row")
        if interlude.wait(seconds):
            self._broken_off = "its wait was interrupted"
        return not self._broken_off

    def _do(self) -> None:
        hold, rule = self.hold, self.rule
        self._tell("it is done")
        words = rule.do if isinstance(rule.do, str) else self._asked(rule.do)
        why = ""
        if hold.decision is None:
            why = self._run(words)
        else:
            journal.done(hold, "rule", outcome="its function has decided")
        if hold.decision is not None:
            with _lock:
                rule.done += 1
            streaks.note(rule.name, self.frame, self.number, anew=self._runs_anew())
        elif why:
            self._tell(why)
            journal.done(hold, "rule", outcome=why)

    def _runs_anew(self) -> bool:
        """Whether the run goes on before the statement that failed, as far as that is known."""
        decided = self.hold.decision
        word = getattr(decided, "meant", "") or self._word or getattr(decided, "word", "")
        return word in ("goto", "restart", "unwind")

    def _asked(self, function: Callable[[HoldLike], object]) -> str:
        """Return the words that the program's function answers; empty if it says nothing."""
        hold, sections = self.hold, open_sections()
        self._select(self.frame)
        why = ""
        try:
            with Interruptible():
                words = function(hold)
            if words is None or isinstance(words, str):
                return words or ""
            why = f"it has returned no words but {type(words).__name__}"
        except KeyboardInterrupt:
            close_to(sections)
            self._broken_off = "it was interrupted"
            return ""
        except BaseException as error:  # noqa: BLE001 - rule 1: the next one is asked, and the program's exception stays
            why = f"it has failed: {render.error(error, known=hold.exception)}"
        self._tell(why)
        journal.done(hold, "rule", outcome=why.partition(":")[0])
        return ""

    def _run(self, text: str) -> str:
        """Run words; return why they have decided nothing, if something is wrong with them."""
        try:
            commands = parse(text)
        except ScriptError as error:
            return f"its words cannot be right: {error}"
        if not commands:
            return ""
        self._select(self.frame)
        for command in commands:
            tell("daifu> " + str(command).replace("\n", "\n...    "))
            why = self._run_one(command)
            _tell_news()
            if why or self._leaves or self._broken_off or self.hold.decision is not None:
                return why
        return "its words come to no decision"

    def _run_one(self, command: Command) -> str:
        if command.text == HOLD and command.body is None:
            if self.rule.limit is not None:
                attaching.limit_to(self.rule.limit)
            journal.done(self.hold, "rule", outcome="it leaves the hold to people")
            self._leaves = True
            return ""
        if command.text == LAST_WILL and command.body is None:
            self._last_will()
            return ""
        self._word = read(command)[0].name
        found = run_command(self.hold, command)
        if found.text:
            tell(found.text)
        if found.failed and was_interrupted():
            self._broken_off = "it was interrupted"
            return ""
        return printable(found.failed.rstrip("."))

    def _last_will(self) -> None:
        hold = self.hold
        why = will.perform(hold) if last_will.wanted() else "there is none"
        if why:
            self._tell(f"the last will failed: {why}")
        journal.done(hold, "last will", seconds=0.0, outcome=why.partition(":")[0] or "done")
        tell(hold.let_go())
        journal.done(hold, "raise")

    def _select(self, frame: FrameLike) -> None:
        frames = list(self.hold.frames)
        if frame in frames:
            self.hold.select(frames.index(frame))

    def _let_go(self, name: str) -> None:
        try:
            tell(self.hold.let_go(name))
            journal.done(self.hold, "raise", code=name, outcome="a signal asks the program to end")
        except DaifuError as refusal:
            tell(f"{name} cannot go on here: {refusal}")

    def _tell(self, text: str) -> None:
        tell(f"daifu rule {self.rule.name}: {text}.")


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _tell_news() -> None:
    for text in signals.news(person=False):
        tell(text)
