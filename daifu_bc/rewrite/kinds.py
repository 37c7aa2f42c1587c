"""The state that the verifier follows through a code object: a string for the stack, a bit mask for everything else.

A stack is a string, one letter for the kind of each slot, bottom first:

    o  object              n  NULL              l  saved lasti (a tagged integer from 3.14)
    e  exception           m  object or NULL    x  second slot of a `for` (NULL or tagged, 3.15+)
    s  saved exception     i  iterator          L S D  list, set, dict under construction
    k  cell (only where one is put aside)       b  object that is borrowed from a local (3.14+)
    g  generator function, or its code          ?  anything

and for what the cold code and the prefix get from the runtime:

    d  the package         r t  its functions `_intercept`, `_take`
    a  answer of `_intercept`: None, or         H  the list that is handed over
    h  what `_take` gives: of the kind that is wanted where it goes
    c  whether the `i` below is a plain sequence

A bit says what *may* be the case on some path, so that two states are joined by `|`.
"""

from __future__ import annotations

from typing import Final

from daifu_bc import pyversion

TAGGED: Final = pyversion.LASTI_IS_TAGGED
PAIR: Final = pyversion.ITERATOR_IS_A_PAIR

#: Kinds that are objects.
OBJECTS: Final = "ohesiLSDgkbcdrtaH" + ("" if TAGGED else "l")
_ANY: Final = "ohesiLSDgkbcdrtaHlnmx?"

#: What an input asks for -> the kinds that it takes.
ACCEPTS: Final[dict[str, frozenset[str]]] = {
    letter: frozenset(kinds)
    for letter, kinds in {
        "o": OBJECTS,
        "n": OBJECTS + "nm",  # NULL is allowed
        "N": "n",
        "p": _ANY if TAGGED else OBJECTS,  # POP_TOP and COPY look away from NULL and tagged integers (3.14+)
        "u": _ANY,  # not looked at
        "L": "LhH",
        "S": "Sh",
        "D": "Dh",
        "e": "eh",
        "s": "s",
        "l": "l",
        "i": "ih",
        "x": "xn",
    }.items()
}

WORDS: Final = dict.fromkeys(_ANY, "an object") | {
    "e": "an exception", "s": "a saved exception", "i": "an iterator", "L": "a list", "S": "a set", "D": "a dict",
    "n": "NULL", "m": "perhaps NULL", "l": "a saved lasti", "x": "the tagged slot of a loop", "?": "something unknown",
    "a": "None", "b": "a borrowed object", "k": "a cell",
}  # fmt: skip

WANTED: Final = {
    "o": "an object", "n": "an object or NULL", "N": "NULL", "p": "an object", "L": "a list", "S": "a set",
    "D": "a dict", "e": "an exception", "s": "a saved exception", "l": "a saved lasti", "i": "an iterator",
    "x": "the second slot of a loop", "u": "anything",
}  # fmt: skip

# Bits of the state beside the stack. They say what *may* be the case on some path.
NO_GENERATOR: Final = 1  # the generator has not been made yet
GENERATOR: Final = 2  # it has
NOT_RESUMED: Final = 4
_FIRST_LOCAL: Final = 3


def unbound(slot: int) -> int:
    """The bit that says that a local may be unbound."""
    return 1 << (_FIRST_LOCAL + 2 * slot)


def no_cell(slot: int) -> int:
    """The bit that says that a slot may hold something else than a cell."""
    return 1 << (_FIRST_LOCAL + 2 * slot + 1)


def _merged(one: str, other: str) -> str:
    if one == other:
        return one
    if one in OBJECTS and other in OBJECTS:
        if "b" in (one, other):
            return "b"
        return other if one == "h" else one if other == "h" else "o"
    pair = {one, other}
    if pair <= set(OBJECTS + "nm"):
        return "m"
    return "x" if pair == {"n", "x"} else "?"


#: Two kinds -> the kind of a slot that may hold either.
MERGED: Final = {(one, other): _merged(one, other) for one in _ANY for other in _ANY}
