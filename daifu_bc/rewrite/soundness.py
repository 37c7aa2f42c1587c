"""Follows every path of a code object and sees what it does to the stack, the locals and the cells.

What may go wrong on some path is refused: a slot that is used as what it is not, a stack that is too short, too high
or of two depths, a local that is loaded unchecked and may be unbound, a cell that may not be there.
"""

from __future__ import annotations

import inspect

from daifu_bc.rewrite.effects import Effect
from daifu_bc.rewrite.kinds import (
    ACCEPTS,
    GENERATOR,
    MERGED,
    NO_GENERATOR,
    NOT_RESUMED,
    PAIR,
    WANTED,
    WORDS,
    no_cell,
    unbound,
)
from daifu_bc.rewrite.listing import GENERATOR_FLAGS, Covering, Listing


class Walk:
    """One walk over all paths; `stacks` has the stack before each instruction where paths may meet, or None.

    Args:
        listing: the decoded code object.

    Raises:
        VerificationError: some path is unsound.
    """

    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        code = listing.code
        self.stacks: list[str | None] = [None] * len(listing.starts)
        self.masks = [0] * len(listing.starts)
        self._limit = code.co_stacksize
        self._work: list[int] = []
        self._meets = bytearray(len(listing.starts) + 1)
        for target in listing.targets:
            self._meets[target] = 1  # that of -1 is never asked for
        for entry in listing.entries:
            self._meets[entry.target] = 1
        self._meets[-1] = 0
        self._go(0, "", self._first_mask())
        self._run()

    def _first_mask(self) -> int:
        listing = self.listing
        code = listing.code
        parameters = code.co_argcount + code.co_kwonlyargcount
        parameters += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        mask = NOT_RESUMED | (NO_GENERATOR if code.co_flags & GENERATOR_FLAGS else 0)
        for slot in range(parameters, listing.slots):
            mask |= unbound(slot)
        for slot in listing.cells:
            mask |= no_cell(slot)
        return mask

    def _go(self, place: int, stack: str, mask: int) -> None:
        """A path leads to `place` with this state."""
        known = self.stacks[place]
        if known is None:
            self.stacks[place] = stack
            self.masks[place] = mask
            self._work.append(place)
            return
        old = self.masks[place]
        if known == stack and old | mask == old:
            return
        if len(known) != len(stack):
            self.listing.refuse(
                "two paths bring stacks of different depths",
                place,
                f"one has {len(known)} slots, one {len(stack)}",
            )
        merged = "".join(map(MERGED.__getitem__, zip(known, stack, strict=True))) if known != stack else known
        if merged != known or old | mask != old:
            self.stacks[place] = merged
            self.masks[place] = old | mask
            self._work.append(place)

    def _run(self) -> None:
        listing = self.listing
        effects, targets, covering, meets = listing.effects, listing.targets, listing.covering, self._meets
        stacks, limit, go = self.stacks, self._limit, self._go
        work = self._work
        while work:
            place = work.pop()
            stack = stacks[place]
            mask = self.masks[place]
            assert stack is not None
            while True:
                effect = effects[place]
                pops = effect.pops
                taken = stack[-pops:] if pops else ""
                pushed = effect.results.get(taken)
                if pushed is None:
                    pushed = self._judge(effect, taken, place)
                entry = covering[place]
                if entry is not None and (effect.raises or entry.ours):
                    self._raise(place, effect, entry, stack, mask)
                if effect.touches:
                    if effect.clears:
                        pushed = self._put_aside(effect.arg, mask)
                    elif effect.releases and "b" in stack[:-1]:
                        listing.refuse(
                            "it may free an object that the stack has borrowed from the local", place
                        )
                    mask = self._touch(effect, taken, mask, place)
                target = targets[place]
                if target >= 0:
                    stack = self._jump(place, effect, stack, mask)
                if effect.ends:
                    if effect.returns and len(stack) != pops:
                        listing.refuse(f"it returns with {len(stack) - pops} slots left on the stack", place)
                    break
                stack = stack[:-pops] + pushed if pops else stack + pushed
                if len(stack) > limit:
                    self._refuse_height(place, len(stack))
                place += 1
                if meets[place]:
                    go(place, stack, mask)
                    break

    def _judge(self, effect: Effect, taken: str, place: int) -> str:
        """Checks a combination of inputs that this instruction has not had yet; what takes their place."""
        refuse = self.listing.refuse
        if len(taken) < effect.pops:
            refuse(f"the stack is too short: it takes {effect.pops} slots", place, f"there are {len(taken)}")
        for depth, (kind, wanted) in enumerate(zip(taken, effect.inputs, strict=True)):
            if kind not in ACCEPTS[wanted]:
                refuse(
                    f"it takes {WANTED[wanted]} as slot {effect.pops - depth} from the top",
                    place,
                    f"that may hold {WORDS[kind]}",
                )
        pushed = effect.results[taken] = effect.result(taken)
        return pushed

    def _raise(self, place: int, effect: Effect, entry: Covering, stack: str, mask: int) -> None:
        """The instruction may raise, and goes on at its handler."""
        depth = entry.depth
        if depth > len(stack) - effect.left:
            if effect.name == "END_ASYNC_FOR" and PAIR and not entry.ours:
                return  # behind the loop of a generator expression the compiler's depth is one too many (3.15)
            self.listing.refuse(
                f"its handler wants {depth} slots below the exception",
                place,
                f"only {len(stack) - effect.left} are certainly left when it raises",
            )
        below = stack[:depth]
        if effect.name == "YIELD_VALUE" and depth == len(stack):
            below = below[:-1] + "o"
        elif effect.name == "RESUME":
            mask &= ~NOT_RESUMED
        state = (below, mask)
        if entry.seen == state:
            return
        entry.seen = state
        stack = below + entry.pushed
        if len(stack) > self._limit:
            self._refuse_height(place, len(stack))
        self._go(entry.target, stack, mask)

    def _touch(self, effect: Effect, taken: str, mask: int, place: int) -> int:
        """The bits after the instruction."""
        if effect.need & mask:
            self._refuse_bits(effect, effect.need & mask, place)
        for depth, slot in enumerate(effect.stores):
            kind = taken[-1 - depth]
            mask &= ~(unbound(slot) | no_cell(slot))
            if kind in "nm":
                mask |= unbound(slot)
            if kind not in "hk":
                mask |= no_cell(slot)
        if effect.name == "COPY_FREE_VARS":
            for slot in range(self.listing.slots - effect.arg, self.listing.slots):
                mask &= ~(unbound(slot) | no_cell(slot))
        return mask & effect.keep | effect.sets

    def _put_aside(self, slot: int, mask: int) -> str:
        """The kind of what an inlined comprehension puts aside of the local whose slot it uses."""
        if mask & unbound(slot):
            return "m"
        return "k" if slot in self.listing.cells and not mask & no_cell(slot) else "o"

    def _jump(self, place: int, effect: Effect, stack: str, mask: int) -> str:
        """The instruction may jump; the stack if it does not."""
        pops = effect.pops
        taken = stack[-pops:] if pops else ""
        below = staying = stack[:-pops] if pops else stack
        if taken == "c" and effect.name.endswith("IF_FALSE"):
            below = _narrowed(below, "x", "n")  # it is no plain sequence: then the second slot is a NULL
        elif taken == "a" and effect.name.endswith("IF_NONE"):
            staying = _narrowed(below, "a", "H")
        elif taken == "a" and effect.name.endswith("IF_NOT_NONE"):
            below = _narrowed(below, "a", "H")
        going = below + effect.jump_result(taken)
        if len(going) > self._limit:
            self._refuse_height(place, len(going))
        self._go(self.listing.targets[place], going, mask)
        return staying + taken

    def _refuse_height(self, place: int, height: int) -> None:
        self.listing.refuse(
            "the stack grows over its size", place, f"it has {height} slots where {self._limit} are promised"
        )

    def _refuse_bits(self, effect: Effect, bits: int, place: int) -> None:
        listing = self.listing
        code = listing.code
        if bits & GENERATOR:
            what = "the generator may have been made already"
        elif bits & NO_GENERATOR:
            what = "the generator may not have been made yet"
        elif bits & NOT_RESUMED:
            what = "there may have been no RESUME before it"
        else:
            slots = [slot for slot in range(listing.slots) if bits & unbound(slot)]
            names = [*code.co_varnames, *(name for name in code.co_cellvars if name not in code.co_varnames)]
            names += code.co_freevars
            if slots:
                what = f"it loads `{names[slots[0]]}` unchecked, which may be unbound"
            else:
                what = f"`{names[effect.index]}` may not have its cell yet"
        listing.refuse(what, place)


def _narrowed(stack: str, kind: str, known: str) -> str:
    """The stack when more is known of the topmost slot of a kind."""
    at = stack.rfind(kind)
    return stack[:at] + known + stack[at + 1 :] if at >= 0 else stack
