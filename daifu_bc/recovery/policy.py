"""Who answers a hold: rules, else a playbook if there is one, else a person in a notebook's cell or at the terminal, else whoever attaches.

The layers above put in who can answer (`set_responder_factory`); this one only chooses. A batch job never hangs for
ever: nobody who might attach is waited for longer than is said, and with none of them the exception goes on at once.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Literal, TextIO, cast

from daifu_bc.errors import UsageError
from daifu_bc.recovery import attaching, debuggers, journal, rules
from daifu_bc.recovery.announcements import announce
from daifu_bc.recovery.interface import HoldLike, Responder
from daifu_bc.recovery.output import told_while_it_runs
from daifu_bc.recovery.telling import tell
from daifu_bc.recovery.working import came_from_outside, working

PLAYBOOK_VARIABLE = "DAIFU_PLAYBOOK"

Kind = Literal["rules", "playbook", "notebook", "terminal", "attach", "debugger"]
#: A function that returns a responder, or the name of one (`package.module:function`), imported when it is needed.
#: That of the playbook is called with the file's name, the others with nothing.
Factory = Callable[..., Responder] | str
#: Runs words against a hold and returns what they answer.
Interpreter = Callable[[HoldLike, str], str]

_factories: dict[Kind, Factory] = {}
_interpreter: Interpreter | str | None = None
_rule_reader: Callable[[], None] | str | None = None
_playbook: Responder | None = None
#: The file that `_playbook` was read from; None for one that was set by the program.
_playbook_file: str | None = None
#: Tells whether the cell that is being run has a line for input; None where there is no notebook.
_in_cell: Callable[[], bool] | None = None
#: Tells whether the terminal is not in use by a shell; None where there is none.
_terminal_free: Callable[[], bool] | None = None
#: The process that was found to have nobody who answers; a forked child asks anew.
_nobody = 0
#: Whether there are rules in a file that has not been read yet, found out at the same time.
_unread_rules = False


def set_responder_factory(kind: Kind, factory: Factory) -> None:
    """Say who makes the responder of a kind.

    Args:
        kind: `rules`, `playbook`, `notebook`, `terminal` or `attach`.
        factory: returns a responder, which is called in each thread that is held, maybe in several at once; or its
            name, `package.module:function`.
    """
    global _nobody
    _factories[kind] = factory
    _nobody = 0


def set_notebook(in_cell: Callable[[], bool] | None) -> None:
    """Say how to find out whether a person can be asked in a notebook's cell; None if there is no notebook any more."""
    global _in_cell
    _in_cell = in_cell
    ask_anew()


def set_terminal_free(is_free: Callable[[], bool] | None) -> None:
    """Say how to find out whether the terminal is the program's, and not that of a shell which waits for a line; None if it always is."""
    global _terminal_free
    _terminal_free = is_free
    ask_anew()


def in_cell() -> bool:
    """Tell whether a person can be asked in the notebook's cell that is being run."""
    return "notebook" in _factories and _in_cell is not None and _in_cell()


def set_interpreter(interpreter: Interpreter | str) -> None:
    """Say what runs words against a hold, as a function or by its name, `package.module:function`."""
    global _interpreter
    _interpreter = interpreter


def set_rule_reader(reader: Callable[[], None] | str) -> None:
    """Say what reads the file of rules that the environment names, as a function or by its name."""
    global _rule_reader
    _rule_reader = reader


def run_words(hold: HoldLike, text: str) -> str:
    """Run the words of a text against a hold and return what they answer.

    Raises:
        UsageError: no front end has been registered.
    """
    if _interpreter is None:
        raise UsageError("nothing understands words yet", remedy="Import daifu_bc first.")
    return cast("Interpreter", _resolve(_interpreter))(hold, text)


def set_playbook(responder: Responder | None) -> None:
    """Let this one answer every hold from now on; None takes it back."""
    global _playbook, _playbook_file
    _playbook = responder
    _playbook_file = None


def prepare() -> None:
    """Read the rules and the playbook that the environment names, so that their faults are known before the program starts.

    Raises:
        DaifuError: one cannot be read, or there is a mistake in it.
    """
    prepare_rules()
    _prepare_playbook()


def prepare_rules() -> None:
    """Read the rules that the environment names.

    Raises:
        DaifuError: they cannot be read, or there is a mistake in them.
    """
    ask_anew()
    if rules.wanted_file() is not None and _rule_reader is not None:
        cast("Callable[[], None]", _resolve(_rule_reader))()


def _prepare_playbook() -> None:
    global _playbook, _playbook_file
    ask_anew()
    name = os.environ.get(PLAYBOOK_VARIABLE)
    if not name or (_playbook is not None and _playbook_file in (None, name)):
        return
    if "playbook" in _factories:
        # Its place in the file is kept by the responder: a second one would begin at the first block again.
        _playbook = _make("playbook", name)
        _playbook_file = name


def at_terminal() -> bool:
    """Tell whether a person can be asked: the process's own stdin and stderr are both a terminal.

    The program may have put other objects in `sys.stdin` and `sys.stderr`; the person is still there. In a child
    process of multiprocessing stdin is closed, so that children do not compete for the keyboard.
    """
    if _terminal_free is not None and not _terminal_free():
        return False
    return _is_terminal(sys.__stdin__) and _is_terminal(sys.__stderr__)


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except (OSError, ValueError):  # closed
        return False


def somebody_answers() -> bool:
    """Tell whether a hold would be answered by anything; if not, it need not be made.

    Asked of each exception that passes a barrier: that there is nobody is found out once for each process.
    """
    return rules.loaded() or somebody_looks() or _unread_rules


def somebody_looks() -> bool:
    """Tell whether a hold would be answered by more than rules, which are for crashes alone."""
    global _nobody, _unread_rules
    if _playbook is not None or debuggers.attached():
        return True
    if _nobody == os.getpid() or working.busy:
        return False
    # Where the standard library is vaccinated too, what is asked here meets barriers, which ask again.
    working.busy = True
    try:
        # The one that is found out soonest is first.
        if _may_attach() or (os.environ.get(PLAYBOOK_VARIABLE) and "playbook" in _factories):
            return True
        if in_cell() or ("terminal" in _factories and at_terminal()):
            return True
        if _may_be_debugged():
            return True
        _unread_rules = rules.wanted_file() is not None
        _nobody = os.getpid()
        return False
    finally:
        working.busy = False


def somebody_was_asked_for() -> bool:
    """Tell whether somebody has said who answers holds: a playbook, rules, or who attaches."""
    return bool(os.environ.get(PLAYBOOK_VARIABLE)) or rules.present() or attaching.asked_for()


def ask_anew() -> None:
    """Find out again whether anybody answers: it has been said otherwise meanwhile."""
    global _nobody
    _nobody = 0


def _may_be_debugged() -> bool:
    return "debugger" in _factories and (debuggers.attached() or debuggers.wanted())


def _may_attach() -> bool:
    return "attach" in _factories and attaching.wanted()


def respond(hold: HoldLike) -> None:
    """Have a hold answered; when this returns, it is decided.

    Whatever goes wrong on the way, the exception goes on.
    """
    announce("held", hold)
    try:
        # What an action has come to is not that action: its output is nobody else's, and it waits as long as is said.
        with told_while_it_runs(None), attaching.own_limit():
            _ask(hold)
    except Exception as error:
        if came_from_outside(error):
            raise
        # Rule 1: a fault of ours must not take the exception's place.
        reason = str(error).rstrip(".")
        _complain(f"daifu_bc: the hold could not be answered ({type(error).__name__}: {reason}).")
    if hold.decision is None:
        hold.let_go()
        journal.done(hold, "raise", outcome="nobody has decided")
    announce("resumed", hold, getattr(hold.decision, "word", ""))


def _ask(hold: HoldLike) -> None:
    if rules.present() and "rules" in _factories:
        _ask_rules(hold)
        if hold.decision is not None:
            return
    _prepare_playbook()
    if _playbook is not None:
        _playbook(hold)
    elif in_cell():
        _make("notebook")(hold)
    elif "terminal" in _factories and at_terminal():
        _make("terminal")(hold)
        if hold.decision is None and _may_attach():  # the terminal has gone meanwhile
            _make("attach")(hold)
    elif _may_attach():
        _make("attach")(hold)
    elif _may_be_debugged():
        _make("debugger")(hold)


def _ask_rules(hold: HoldLike) -> None:
    try:
        _make("rules")(hold)
    except Exception as error:
        if came_from_outside(error):
            raise
        tell(f"daifu_bc: the rules have failed ({type(error).__name__}: {error}).")


def _make(kind: Kind, *arguments: str) -> Responder:
    return cast("Callable[..., Responder]", _resolve(_factories[kind]))(*arguments)


def _resolve(function: object) -> object:
    """Return a function that may be given by its name."""
    if not isinstance(function, str):
        return function
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(module), name)


def _complain(text: str) -> None:
    tell(f"{text} The exception goes on.")
