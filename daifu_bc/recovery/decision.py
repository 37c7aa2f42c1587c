"""What the one who answers a hold has decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import CellType, FrameType
from typing import Any

from daifu_bc.analysis.flow import Flow
from daifu_bc.recovery.capture import Capture
from daifu_bc.rewrite.continuation import Start


@dataclass(frozen=True)
class Decision:
    """How a hold ends.

    Attributes:
        word: the word that decided; `unwind` if that is carried out further out.
        meant: that word then, if it is settled.
        start: where the run goes on; None if the exception goes on.
        flow: the body in which it goes on.
        last: what a continuation raises or returns, in a list of one.
        extra: locals of the new body that come from the runtime.
        fresh: names of cells that the frame begins without; it gets new ones.
        renamed: variables that have another name in the body in which it goes on, old name -> new name.
        cells: further ones of variables around the function.
        unwinding: where the run goes on after the exception has taken down blocks and frames.
    """

    word: str
    start: Start | None = None
    flow: Flow | None = None
    last: list[Any] = field(default_factory=list)
    extra: dict[str, object] = field(default_factory=dict)
    fresh: frozenset[str] = frozenset()
    renamed: dict[str, str] = field(default_factory=dict)
    cells: dict[str, CellType] = field(default_factory=dict)
    unwinding: Unwinding | None = None
    meant: str = ""


@dataclass
class Unwinding:
    """The held exception goes on its way until a frame goes on: what lies in between is left as it leaves it.

    Attributes:
        frame: the frame that goes on.
        exception: what takes the blocks and frames inside it down.
        decide: how it goes on, asked at each barrier of that frame at which the exception arrives; NoPoint is raised
            where it cannot be, as long as a `finally` has to run first.
        told: called when that frame is about to go on.
        instead: what clauses on the way have raised in the place of the exception.
        left: whether it has come by a barrier of that frame already.
    """

    frame: FrameType
    exception: BaseException
    decide: Callable[[Capture, BaseException], Decision]
    told: Callable[[], None] | None = None
    left: bool = False
    instead: list[BaseException] = field(default_factory=list)
