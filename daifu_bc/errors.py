"""The errors of daifu_bc: one root, a slug for each kind."""

from __future__ import annotations

from typing import ClassVar


class DaifuError(Exception):
    """Root of everything that daifu_bc raises on its own account.

    Args:
        what: what happened, one sentence.
        place: where (file, line, function), if there is a place.
        why: the reason, if it is not plain from `what`.
        remedy: what to do about it.
    """

    slug: ClassVar[str] = "error"

    def __init__(self, what: str, *, place: str = "", why: str = "", remedy: str = "") -> None:
        self.what = what
        self.place = place
        self.why = why
        self.remedy = remedy
        super().__init__(what)

    def __str__(self) -> str:
        text = self.what
        if self.place:
            text += f" (at {self.place})"
        if self.why:
            text += f", because {self.why}"
        if self.remedy:
            text += f". {self.remedy}"
        return text


class Refusal(DaifuError):
    """A word at the prompt cannot do what was asked; the hold stays as it was. Try what the text says."""

    slug = "refusal"


class NoPoint(Refusal):
    """There is no point at which the run could go on exactly."""

    slug = "no-point"


class BlocksFirst(NoPoint):
    """The run can go on there as soon as the blocks in between have been left by the exception.

    Args:
        then: how it goes on then, a sentence.
        target: the instruction at which it goes on then, if that is settled; else -1.
    """

    slug = "blocks-first"

    def __init__(self, then: str, target: int = -1) -> None:
        self.then = then
        self.target = target
        super().__init__("a `finally` has to run first", remedy="Choose a line inside the `try`.")


class CannotVaccinate(DaifuError):
    """A code object has to stay as it is; the program is not affected."""

    slug = "cannot-vaccinate"


class VerificationError(DaifuError):
    """The verifier refused a code object that daifu_bc built; it was not installed. A bug of ours: please report it."""

    slug = "verification"


class Unsupported(DaifuError):
    """This version of CPython is not known to daifu_bc; programs run unvaccinated on it."""

    slug = "unsupported"


class UsageError(DaifuError):
    """The caller gave daifu_bc something that it does not take."""

    slug = "usage"


class InternalError(DaifuError):
    """Something that daifu_bc relies on did not hold; the program's own exception goes its way. Please report it."""

    slug = "internal"
