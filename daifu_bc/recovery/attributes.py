"""The traceback and the chain of an exception, as the interpreter sees them.

A class of the program's may have made anything of these attributes: a property that raises, or that says something
else. The descriptors of `BaseException` itself are not affected.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

_OWN: Final[Any] = BaseException.__dict__

#: These are called at each exception that meets a barrier, maybe on a full stack: no Python function lies between.
traceback_of: Final[Callable[[BaseException], TracebackType | None]] = _OWN["__traceback__"].__get__
set_traceback: Final[Callable[[BaseException, TracebackType | None], None]] = _OWN["__traceback__"].__set__
context_of: Final[Callable[[BaseException], BaseException | None]] = _OWN["__context__"].__get__
set_context: Final[Callable[[BaseException, BaseException | None], None]] = _OWN["__context__"].__set__
cause_of: Final[Callable[[BaseException], BaseException | None]] = _OWN["__cause__"].__get__
suppresses_context: Final[Callable[[BaseException], bool]] = _OWN["__suppress_context__"].__get__
arguments_of: Final[Callable[[BaseException], tuple[object, ...]]] = _OWN["args"].__get__
members_of: Final[Callable[[BaseException], tuple[BaseException, ...]]] = BaseExceptionGroup.__dict__[
    "exceptions"
].__get__


def plain_text(exception: BaseException) -> str:
    """Return an exception's text if it can be had without running anything of the program's; else nothing."""
    arguments = arguments_of(exception)
    if len(arguments) == 1 and type(arguments[0]) is str:
        return arguments[0]
    if type(exception).__str__ in _PLAIN_WRITERS and all(type(one) in _PLAIN for one in arguments):
        return str(exception)
    return ""


_PLAIN: Final = frozenset({str, int, float, bool, bytes, type(None)})
_PLAIN_WRITERS: Final = (BaseException.__str__, KeyError.__str__, OSError.__str__)
