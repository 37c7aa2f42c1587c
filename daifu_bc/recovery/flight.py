"""An exception on its way outward, as a class: what the handlers that it meets would make of it."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from types import FrameType
from typing import Final, NamedTuple, cast

from daifu_bc.analysis.expressions import GLOBAL, Call, Display, Expression, Name
from daifu_bc.analysis.handlers import Clause, Handler
from daifu_bc.recovery.lookups import (
    UNKNOWN,
    Scope,
    evaluate,
    frame_scope,
    is_a,
    is_subclass,
    matches,
)

#: They mean something to the interpreter, and nothing has gone wrong.
CONTROL_FLOW: Final = (StopIteration, StopAsyncIteration, GeneratorExit, SystemExit)

_BUILT_IN: Final = frozenset(
    id(value)
    for value in vars(builtins).values()
    if isinstance(value, type) and issubclass(value, BaseException)
)
_group_members: Final = BaseExceptionGroup.__dict__["exceptions"].__get__


def leaves_of(exception: BaseException) -> tuple[type[BaseException], ...] | None:
    """The classes of the exceptions in a group, nested ones included; None if it is no group."""
    if not is_a(exception, BaseExceptionGroup):
        return None
    found: list[type[BaseException]] = []
    work: list[BaseException] = [exception]
    while work:
        member = work.pop()
        if is_a(member, BaseExceptionGroup):
            work.extend(_group_members(member))
        else:
            found.append(type(member))
    return tuple(found)


class Meeting(NamedTuple):
    """What is known of a clause before an exception comes.

    Attributes:
        clause: it.
        names: the global names that it takes, if its type is such a name or a display of them.
        how: how it takes what matches; empty if that depends.
    """

    clause: Clause
    names: tuple[str, ...]
    how: str


def meetings_of(handler: Handler) -> tuple[Meeting, ...]:
    """The clauses of a handler, prepared."""
    found = []
    for clause in handler.clauses:
        types = clause.types
        items = types.items if type(types) is Display else (types,)
        names = tuple(item.name for item in items if type(item) is Name and item.scope == GLOBAL)
        if clause.bare or clause.group or len(names) != len(items):
            names = ()
        how = ""
        if clause.swallows:
            how = "may handle" if clause.reraises or clause.raises else "handles"
        found.append(Meeting(clause, names, how))
    return tuple(found)


class Flight:
    """What is on its way.

    Attributes:
        kind: its class; another one after a clause has raised something else instead.
        leaves: for a group, the classes of its members.
    """

    __slots__ = ("kind", "leaves")

    def __init__(self, kind: type[BaseException], leaves: tuple[type[BaseException], ...] | None) -> None:
        self.kind = kind
        self.leaves = leaves

    def meet(self, meetings: tuple[Meeting, ...], frame: FrameType) -> tuple[Clause | None, str]:
        """Lets it meet the clauses of an except chain in `frame`.

        Returns:
            The clause that takes it, and how: "handles", "may handle" or "" if none does.
        """
        for meeting in meetings:
            clause, names, how = meeting
            matched = self._matches_names(names, frame) if names else None
            if matched is None:
                value = BaseException if clause.bare else evaluate(clause.types, frame_scope(frame))
                if value is UNKNOWN:
                    if clause.swallows:
                        return clause, "may handle"
                    continue
                if clause.group:
                    answer = self._split(clause, value, frame_scope(frame))
                    if answer:
                        return clause, answer
                    continue
                matched = matches(self.kind, value)
            if matched:
                return clause, how or self._taken(clause, frame)
            if matched is None:
                self._become((TypeError,))
                return None, ""
        return None, ""

    def _matches_names(self, names: tuple[str, ...], frame: FrameType) -> bool | None:
        """Whether it matches the classes that global names stand for; None if one of them needs a closer look."""
        kind, found = self.kind, False
        variables, built_in = frame.f_globals, frame.f_builtins
        if type(variables) is not dict or type(built_in) is not dict:
            return None
        for name in names:
            value = variables.get(name, UNKNOWN)
            if value is UNKNOWN:
                value = built_in.get(name, UNKNOWN)
            if value is kind:
                found = True
            elif id(value) in _BUILT_IN or (type(value) is type and issubclass(value, BaseException)):
                found = found or issubclass(kind, value)
            else:
                return None
        return found

    def _taken(self, clause: Clause, frame: FrameType) -> str:
        if clause.reraises or not clause.raises:
            return ""
        scope = frame_scope(frame)
        instead = [raised_class(what, scope) for what in clause.raises]
        if any(kind is None for kind in instead) or len(set(map(id, instead))) > 1:
            return "may handle"
        assert instead[0] is not None
        self._become((instead[0],))
        return "handles" if is_control_flow(self.kind) else ""

    def _become(self, kinds: tuple[type[BaseException], ...]) -> None:
        self.kind, self.leaves = kinds[0], None

    def _split(self, clause: Clause, value: object, scope: Scope) -> str:
        """Lets a clause of `except*` take its part."""
        whole = matches(self.kind, value)
        if whole is None:
            self._become((TypeError,))
            return ""
        members = self.leaves if self.leaves is not None else (self.kind,)
        rest = tuple(kind for kind in members if not whole and not matches(kind, value))
        if len(rest) == len(members):
            return ""
        if clause.swallows:
            if not rest or clause.reraises or clause.raises:
                return "handles" if not rest and not clause.reraises and not clause.raises else "may handle"
            self.regroup(rest)
        elif clause.raises and not clause.reraises:
            instead = [raised_class(what, scope) for what in clause.raises]
            if any(kind is None for kind in instead):
                return "may handle"
            self.regroup((*rest, *(kind for kind in instead if kind is not None)))
        else:
            self.regroup(members)
        return ""

    def regroup(self, members: Iterable[type[BaseException]]) -> None:
        """Makes it a group of these."""
        self.leaves = tuple(members)
        ordinary = all(is_subclass(Exception, kind) for kind in self.leaves)
        self.kind = ExceptionGroup if ordinary else BaseExceptionGroup


def is_control_flow(kind: type[BaseException]) -> bool:
    """Whether the interpreter raises it to say something."""
    return issubclass(kind, CONTROL_FLOW)


def raised_class(what: Expression | None, scope: Scope) -> type[BaseException] | None:
    """The class of what `raise what` raises, or None if that cannot be told."""
    value = evaluate(what.function if type(what) is Call else what, scope)
    if is_a(value, type):
        cls = cast(type, value)
        return cls if is_subclass(BaseException, cls) else None
    return (
        cast(type[BaseException], type(value))
        if type(what) is not Call and is_a(value, BaseException)
        else None
    )
