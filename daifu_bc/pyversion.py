"""What differs between the CPython versions, as named behaviours. No other module asks for the version."""

from __future__ import annotations

import opcode
import sys
from typing import Final

VERSION: Final = sys.version_info[:2]

#: CPython versions on which the whole test suite is green.
SUPPORTED: Final = sys.implementation.name == "cpython" and (3, 11) <= VERSION <= (3, 15)

# Whether an interpreter built without the GIL runs us: not supported, frames move between threads there.
FREE_THREADED: Final = not getattr(sys, "_is_gil_enabled", lambda: True)()

#: 3.11 has PRECALL before each CALL.
HAS_PRECALL: Final = "PRECALL" in opcode.opmap

#: Up to 3.12 the NULL of a call is pushed before the callable, from 3.13 behind it (gh-105859).
NULL_BEFORE_CALLABLE: Final = VERSION < (3, 13)

#: From 3.12 the compiler emits unchecked loads where it has proved that a local is bound (gh-93143).
UNCHECKED_LOADS: Final = VERSION >= (3, 12)

#: From 3.14 small numbers need not stand among the constants.
SMALL_INTS: Final = "LOAD_SMALL_INT" in opcode.opmap

#: From 3.14 only a function that returns nothing but None is a script that another interpreter may run, and that is
#: looked up in its instructions (`_PyCode_ReturnsOnlyNone` in Objects/codeobject.c): each return stands behind the
#: load of None.
SCRIPTS_RETURN_NONE: Final = VERSION >= (3, 14)

#: From 3.14 some stack slots hold references that are borrowed from a local (gh-130704).
BORROWED_LOADS: Final = VERSION >= (3, 14)

#: From 3.14 a `with` keeps (exit function, self or NULL), before that one bound method.
EXIT_IS_A_PAIR: Final = VERSION >= (3, 14)

#: From 3.15 a `for` keeps (iterator, NULL) or (sequence, tagged index), before that one iterator.
ITERATOR_IS_A_PAIR: Final = VERSION >= (3, 15)

#: From 3.14 the saved lasti on the stack is a tagged integer and no object.
LASTI_IS_TAGGED: Final = VERSION >= (3, 14)

#: From 3.13 an exception that comes out of a Python callee is looked up in the exception table one unit before the
#: instruction that called (`resume_with_error` in Python/ceval.c sets `next_instr` to that instruction).
LOOKS_BEFORE_CALL: Final = VERSION >= (3, 13)

#: From 3.13 `frame.f_locals` of a function writes through (PEP 667); before it is a snapshot.
LOCALS_WRITE_THROUGH: Final = VERSION >= (3, 13)

#: From 3.12 code can be watched without a trace function, which costs nothing where nothing is watched (PEP 669).
MONITORING: Final = hasattr(sys, "monitoring")

#: From 3.14 what a tool of `sys.monitoring` has watched in single functions ends when it gives its number back.
FREED_TOOL_WATCHES_NOTHING: Final = VERSION >= (3, 14)

#: From 3.13 two locals can be stored by one instruction.
STORES_IN_PAIRS: Final = "STORE_FAST_STORE_FAST" in opcode.opmap

#: From 3.12 comprehensions are inlined (PEP 709); before each is a function of its own.
COMPREHENSIONS_INLINED: Final = VERSION >= (3, 12)

#: From 3.13 a generator's RESUME arguments carry flag bits above the kind.
RESUME_KIND_MASK: Final = 0x3

#: From 3.12 the interpreter keeps the last uncaught exception in `sys.last_exc`, and drops it on its way out.
HAS_LAST_EXC: Final = VERSION >= (3, 12)


#: From 3.12 there is `sys.monitoring` (PEP 669); on 3.11 only tracing.
HAS_MONITORING: Final = VERSION >= (3, 12)


def import_argument(name: int) -> int:
    """The argument of IMPORT_NAME; from 3.15 its low bits say whether the import is lazy (PEP 810), 2: it is not."""
    return name << 2 | 2 if VERSION >= (3, 15) else name


#: Whether a fork warns of threads that were started, in the parent, by what is called after it.
WARNS_OF_THREADS_AFTER_FORK: Final = VERSION == (3, 13)
