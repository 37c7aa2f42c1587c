"""How a person or a tool talks to a hold."""

from __future__ import annotations

from importlib import import_module

from daifu_bc.recovery import announcements, debuggers, journal, last_will, notification, policy
from daifu_bc.recovery.interface import HoldLike


def register() -> None:
    """Tell the layers below who can answer a hold, and who is told. Nothing is imported before somebody has to."""
    policy.set_rule_reader("daifu_bc.frontends.ruled:prepare")
    policy.set_responder_factory("rules", "daifu_bc.frontends.ruled:responder")
    policy.set_responder_factory("playbook", "daifu_bc.frontends.playbook:from_file")
    policy.set_responder_factory("terminal", "daifu_bc.frontends.terminal:responder")
    policy.set_responder_factory("attach", "daifu_bc.frontends.attached:responder")
    policy.set_responder_factory("debugger", "daifu_bc.frontends.debugging:responder")
    debuggers.set_watcher("daifu_bc.frontends.debugging:changed")
    last_will.front_end = "daifu_bc.frontends.will"
    policy.set_interpreter("daifu_bc.frontends.commands:run_words")
    announcements.listen(notification.notify)
    announcements.listen(_keep_values)


def _keep_values(kind: announcements.Kind, hold: HoldLike, reason: str) -> None:
    if journal.values_wanted():
        import_module("daifu_bc.frontends.kept_values").keep(kind, hold, reason)
