"""The kinds of things that lie on the value stack."""

from __future__ import annotations

from typing import Final

from daifu_bc import pyversion

# What enclosing blocks keep between two statements ...
ITERATOR: Final = "iterator"  # of a `for`, `async for`
INDEX: Final = "index"  # the second slot of a `for` (3.15+): NULL or a tagged index
EXIT: Final = "exit"  # of a `with`: the bound __exit__, or from 3.14 the function
EXIT_SELF: Final = "exit self"  # its second slot (3.14+), may be NULL
SAVED: Final = "saved exception"  # what was being handled outside, in an `except` or `finally` body
EXCEPTION: Final = "exception"
LASTI: Final = "lasti"
GROUP: Final = "list of exceptions"  # of an `except*`
VALUE: Final = "value"  # parked: a return value over a `finally`, a loop's next element, what __enter__ gave
# ... and everything else.
ENTER: Final = "enter"  # `__enter__` and its self, until it is called (3.14+)
TEMPORARY: Final = "temporary"

#: Kinds that take two slots, with the kind of the second one.
SECOND: Final = ({EXIT: EXIT_SELF} if pyversion.EXIT_IS_A_PAIR else {}) | (
    {ITERATOR: INDEX} if pyversion.ITERATOR_IS_A_PAIR else {}
)
# The second slots; what ends at once; and a saved lasti, which only the interpreter's own clean-up code finds below it.
NEVER_ALONE: Final = frozenset({EXIT_SELF, INDEX, LASTI, ENTER})

Item = tuple[str, int]
Stack = tuple[Item, ...]
