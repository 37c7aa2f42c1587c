"""Where a held frame would go on, told without deciding anything."""

from __future__ import annotations

from daifu_bc.errors import BlocksFirst
from daifu_bc.recovery.hold import Hold
from daifu_bc.recovery.ways import Place


def next_place(hold: Hold) -> Place:
    """Return where `pass` would go on.

    Raises:
        Refusal: it cannot go on.
    """
    if hold.was_interrupted():
        hold.after_interruption()
        found = hold.interruption
        assert found is not None
        return Place(found.frame.f_code.co_filename, found.line, "", new=False)
    return hold.ways_of_selected().place_next()


def may_go_to(hold: Hold, line: int) -> str:
    """Say how the run would go on at a line.

    Raises:
        Refusal: it cannot go on there.
    """
    try:
        return hold.ways_of_selected().goto(line)[1]
    except BlocksFirst as first:
        return first.then
