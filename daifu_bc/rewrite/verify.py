"""Verifies what the rewriter has built before any frame may run it.

Two questions are asked of a code object, with an own decoder and an own table of effects, so that a slip of the
builder's is not repeated here: is it sound on every path (`listing`, `soundness`), and is it still the pristine code
object with nothing but barriers added (this module)?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType
from typing import Final, NamedTuple

from daifu_bc.rewrite.listing import Covering, Listing, starts_in
from daifu_bc.rewrite.soundness import Walk

_SAME: Final = (
    "co_name", "co_qualname", "co_filename", "co_firstlineno", "co_flags", "co_argcount", "co_posonlyargcount",
    "co_kwonlyargcount", "co_nlocals", "co_varnames", "co_cellvars", "co_freevars",
)  # fmt: skip
_PLAIN: Final = (str, bytes, int, bool, float, complex, type(None), type(...))


# Kinds of entries in a line table (CPython's Objects/locations.md), and how many numbers some have.
_SHORT, _ONE_LINE, _NO_PLACE = 9, 12, 15
_NUMBERS: Final = {13: 1, 14: 4, _NO_PLACE: 0}


class _Body(NamedTuple):
    """Where the pristine instructions are.

    Attributes:
        first: offset of the first one.
        last: offset behind the last one.
        moved: a pristine offset of an instruction -> its offset now.
        whole: whether not a byte has changed.
    """

    first: int
    last: int
    moved: Callable[[int], int]
    whole: bool = True


class _Handler(NamedTuple):
    """Where an exception goes; what two entries of exception tables are compared by."""

    target: int
    depth: int
    lasti: bool


def verify(built: CodeType, pristine: CodeType) -> None:
    """Checks a vaccinated code object, or a continuation.

    Args:
        built: what was built.
        pristine: the code object that it was built from.

    Raises:
        VerificationError: it must not be run.
    """
    raw, old_raw = built.co_code, pristine.co_code
    if raw.startswith(old_raw):
        body = _Body(0, len(old_raw), lambda offset: offset)
    else:
        body = _find_body(built, pristine)
    listing = Listing(built, body[:2])
    _check_identity(listing, pristine)
    _check_lines(listing, pristine, body)
    _check_jumps(listing, body)
    _check_barriers(listing, pristine, body)
    Walk(listing)


def _find_body(built: CodeType, pristine: CodeType) -> _Body:
    """Finds the pristine instructions in a continuation; loads may have become checked ones."""
    size = len(pristine.co_code)
    starts = starts_in(built.co_code)
    shift = built.co_code.find(pristine.co_code)
    while shift >= 0 and shift not in starts:
        shift = built.co_code.find(pristine.co_code, shift + 1)
    if shift >= 0:
        return _Body(shift, shift + size, lambda offset: offset + shift)
    new = Listing(built, (0, len(built.co_code)))
    old = Listing(pristine, (0, size))
    reached = 0
    places: list[int] = []
    for start in range(len(new.starts) - len(old.starts) + 1):
        places = _align(old, new, start)
        if len(places) > len(old.starts):
            break
        reached = max(reached, len(places))
    else:
        new.refuse_all(
            "it does not contain the pristine instructions, in their order",
            f"none like that at offset {old.starts[max(reached - 1, 0)]} follows those before it",
        )
    ends = [*new.starts, new.ends[-1]]
    moved = {old.starts[place]: ends[now] for place, now in enumerate(places[:-1])}
    moved[size] = ends[places[-1]]
    return _Body(ends[places[0]], moved[size], moved.__getitem__, whole=False)


def _align(old: Listing, new: Listing, start: int) -> list[int]:
    """The place of each pristine instruction, and of what follows them, if they start at `start`; as far as they agree."""
    places: list[int] = []
    now = start
    for effect in old.effects:
        places.append(now)
        if now >= len(new.effects):
            return places
        present = new.effects[now]
        if present.name == effect.name and (present.arg == effect.arg or effect.target):
            now += 1
            continue
        for names, slot in _singles(effect.name, effect.arg):
            if now >= len(new.effects) or new.effects[now].name not in names or new.effects[now].arg != slot:
                return places
            now += 1
        if now == places[-1]:
            return places
    places.append(now)
    for place, target in enumerate(old.targets):
        if target >= 0 and new.targets[places[place]] != places[target]:
            return places[: place + 1]
    return places


_LOADS: Final = ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW")


def _singles(name: str, arg: int) -> list[tuple[tuple[str, ...], int]]:
    """The instructions that may stand for a load, or for a fused pair of a load and something: names and slot."""
    if name in _LOADS:
        return [(_LOADS, arg)]
    if name in ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"):
        return [(_LOADS, arg >> 4), (_LOADS, arg & 15)]
    if name == "STORE_FAST_LOAD_FAST":
        return [(("STORE_FAST",), arg >> 4), (_LOADS, arg & 15)]
    return []


# -- what has to be as it was ----------------------------------------------------------------------------------


def _check_identity(listing: Listing, pristine: CodeType) -> None:
    built = listing.code
    for name in _SAME:
        if getattr(built, name) != getattr(pristine, name):
            listing.refuse_all(f"{name} has changed", f"it was {getattr(pristine, name)!r}")
    if built.co_names[: len(pristine.co_names)] != pristine.co_names:
        listing.refuse_all("co_names has changed, where only additions are due")
    consts = built.co_consts
    for index, constant in enumerate(pristine.co_consts):
        if index >= len(consts) or not (consts[index] is constant or _alike(consts[index], constant)):
            listing.refuse_all(f"constant {index} has changed")
    for index in range(len(pristine.co_consts), len(consts)):
        if not _is_plain(consts[index]):
            listing.refuse_all(
                f"the added constant {index} is a {type(consts[index]).__name__}",
                "code objects are not garbage-collected, and they have to be marshalled for the cache",
            )
    if built.co_stacksize < pristine.co_stacksize:
        listing.refuse_all("the stack is smaller than it was")


def _alike(one: object, other: object) -> bool:
    """Whether two constants are the same for everybody: 1, 1.0 and True are not."""
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    return one == other and repr(one) == repr(other)


def _is_plain(constant: object) -> bool:
    if type(constant) is tuple:
        return all(map(_is_plain, constant))
    return type(constant) in _PLAIN


def _line_entries(listing: Listing, position: int) -> Iterator[tuple[int, bool]]:
    """(length in units, whether it has a line) of each entry of the line table from `position` on.

    CPython reads it without looking where it ends.
    """
    table = listing.code.co_linetable
    size = len(table)
    while position < size:
        head = table[position]
        kind = head >> 3 & 15
        start = position = position + 1
        while position < size and not table[position] & 0x80:
            position += 1
        rest = table[start:position]
        if kind <= _SHORT:
            whole = len(rest) == 1
        elif kind <= _ONE_LINE:
            whole = len(rest) == 2
        else:
            numbers = sum(not byte & 64 for byte in rest)
            whole = numbers == _NUMBERS[kind] and not (rest and rest[-1] & 64)
        if not head & 0x80 or not whole:
            listing.refuse_all("the line table cannot be read", f"the entry at byte {start - 1} is none")
        yield (head & 7) + 1, kind != _NO_PLACE


def _check_lines(listing: Listing, pristine: CodeType, body: _Body) -> None:
    """The body has its lines, and so has everything else: `inspect.stack()` fails where there is none."""
    built = listing.code
    first, last = body.first, body.last
    table, old_table = built.co_linetable, pristine.co_linetable
    kept = first == 0 and table.startswith(old_table)
    offset = last if kept else 0
    for units, has_line in _line_entries(listing, len(old_table) if kept else 0):
        end = offset + 2 * units
        if not has_line and (offset < first or end > last):
            at = offset if offset < first else max(offset, last)
            listing.refuse(
                "it has no line", next(place for place, stop in enumerate(listing.ends) if stop > at)
            )
        offset = end
    if offset != listing.ends[-1]:
        listing.refuse_all(f"the line table covers {offset} bytes of {listing.ends[-1]}")
    _check_added_lines(listing, pristine, body)
    if kept:
        return
    old = list(pristine.co_positions())
    new = list(built.co_positions())
    starts = range(0, 2 * len(old), 2) if body.whole else Listing(pristine, (0, 2 * len(old))).starts
    for start in starts:
        if new[body.moved(start) // 2] != old[start // 2]:
            listing.refuse_all("the body's positions have changed", where=f", offset {body.moved(start)}")


def _check_added_lines(listing: Listing, pristine: CodeType, body: _Body) -> None:
    """What was added has lines that can be those of a file: tracebacks and debuggers look them up."""
    first, last = body.first, body.last
    for start, end, line in listing.code.co_lines():
        # 3.11 gives None for a line below 0; entries without a line have been refused before.
        if (line is not None and line >= 1) or (start >= first and end <= last):
            continue
        if line is not None and line in {known for _, _, known in pristine.co_lines()}:
            continue  # compiled from a tree with lines of its own
        at = start if start < first else max(start, last)
        place = next(place for place, stop in enumerate(listing.ends) if stop > at)
        found = "below 0" if line is None else str(line)
        listing.refuse(f"its line is {found}", place, "lines are counted from 1")


def _check_jumps(listing: Listing, body: _Body) -> None:
    """What runs without an exception keeps to its part; only what lies in front of the body leads into it."""
    place_at, targets = listing.place_at, listing.targets
    first = place_at[body.first]
    last = place_at.get(body.last, len(targets))
    for begin, end, lowest, highest in (
        (0, first, 0, last),
        (first, last, first, last),
        (last, len(targets), last, len(targets)),
    ):
        part = [target for target in targets[begin:end] if target >= 0]
        if part and not (lowest <= min(part) and max(part) < highest):
            place = next(
                place
                for place in range(begin, end)
                if targets[place] >= 0 and not lowest <= targets[place] < highest
            )
            listing.refuse("it jumps out of its part of the code", place)
        if end > begin and not listing.effects[end - 1].ends:
            listing.refuse("it runs on into another part of the code", end - 1)


# -- the barriers ----------------------------------------------------------------------------------------------


def _handler(listing: Listing, entry: Covering | None) -> _Handler | None:
    return None if entry is None else _Handler(listing.starts[entry.target], entry.depth, entry.lasti)


def _pristine_table(code: CodeType, body: _Body) -> list[tuple[int, int, _Handler]]:
    """The entries of the pristine table, where they are now."""
    table: list[tuple[int, int, _Handler]] = []
    numbers: list[int] = []
    value = 0
    for byte in code.co_exceptiontable:
        value = value << 6 | byte & 63
        if not byte & 64:
            numbers.append(value)
            value = 0
    moved = body.moved
    for start, length, target, depth in zip(*[iter(numbers)] * 4, strict=True):
        handler = _Handler(moved(2 * target), depth >> 1, bool(depth & 1))
        table.append((moved(2 * start), moved(2 * (start + length)), handler))
    return table


def _check_barriers(listing: Listing, pristine: CodeType, body: _Body) -> None:
    """Each instruction has its pristine handler, or a barrier that re-raises to that very handler."""
    first, last = body.first, body.last
    table = _pristine_table(pristine, body)
    cuts = {first, last}
    cuts.update(offset for start, end, _ in table for offset in (start, end))
    for entry in listing.entries:
        if entry.start < last and entry.end > first:
            cuts.add(max(entry.start, first))
            cuts.add(min(entry.end, last))
    points = sorted(cuts)
    displaced: dict[int, _Handler | None] = {}
    following = iter(table)
    pending = next(following, None)
    for start in points[:-1]:
        while pending is not None and pending[1] <= start:
            pending = next(following, None)
        old = pending[2] if pending is not None and pending[0] <= start else None
        place = listing.place_at[start]
        new = _handler(listing, listing.covering[place])
        if new == old:
            continue
        if new is None:
            listing.refuse("it has lost its handler", place)
        if new.target < last:
            listing.refuse("its handler is neither its own nor a barrier", place)
        if not new.lasti:
            listing.refuse("its barrier has no lasti", place, "the traceback would lose the line")
        if displaced.setdefault(new.target, old) != old:
            listing.refuse("its barrier stands for two different handlers", place)
    _check_stubs(listing, body, displaced)


def _check_stubs(listing: Listing, body: _Body, displaced: dict[int, _Handler | None]) -> None:
    effects, covering, starts = listing.effects, listing.covering, listing.starts
    inside: int | None = None
    raised: set[int] = set()
    behind = range(listing.place_at.get(body.last, len(starts)), len(starts))
    for place in behind:
        left = covering[place]
        if left is None or not left.lasti or starts[left.target] < body.last:
            continue
        # What has left a continuation has met the handlers there; a barrier may only let it out of the frame.
        if displaced.setdefault(starts[left.target], None) is not None:
            listing.refuse(
                "what leaves a continuation here would be re-raised to a handler of the body", place
            )
    for place in behind:
        start = starts[place]
        if start in displaced:
            inside = start
        effect = effects[place]
        entry = covering[place]
        reraises = effect.name == "RERAISE" and effect.arg > 0
        if reraises:
            if inside is None:
                listing.refuse("it re-raises for no barrier", place)
            if _handler(listing, entry) != displaced[inside]:
                listing.refuse("it does not re-raise to the handler that its barrier has displaced", place)
            raised.add(inside)
        elif entry is not None and starts[entry.target] < body.last:
            listing.refuse(
                "it is covered by a handler of the body",
                place,
                "the blocks there are the continuation's by now, and would be left twice",
            )
    for missing in sorted(displaced.keys() - raised):
        listing.refuse("this barrier cannot re-raise", listing.place_at[missing])
