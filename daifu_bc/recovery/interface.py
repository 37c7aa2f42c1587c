"""What the one who answers a hold may see of it and ask of it, as types only.

Front ends, policy and journal are written against these, so that they can be tried without an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FrameType
from typing import Protocol

from daifu_bc.recovery.repetition import Repetition


class VerdictLike(Protocol):
    """Why an exception is held, or would not be."""

    @property
    def hold(self) -> bool:
        """Whether nobody is going to handle the exception."""

    @property
    def reasons(self) -> Sequence[str]:
        """Sentences that say what was found on the way outward."""


class ActionLike(Protocol):
    """What running code in a frame gave."""

    @property
    def output(self) -> str:
        """What the code printed; the repr of its value, if it was one expression."""

    @property
    def error(self) -> BaseException | None:
        """What it raised."""

    @property
    def traceback(self) -> str:
        """The traceback of what it raised, without frames of ours."""


class FrameLike(Protocol):
    """A frame of the user's, as a hold shows it."""

    @property
    def frame(self) -> FrameType:
        """The frame itself."""

    @property
    def code(self) -> CodeType:
        """Its code as the user wrote it."""

    @property
    def name(self) -> str:
        """The qualified name of its function."""

    @property
    def filename(self) -> str:
        """The file that its code came from."""

    @property
    def line(self) -> int:
        """The line that it is at."""

    @property
    def held(self) -> bool:
        """Whether this is the frame that the exception stopped in."""

    @property
    def vaccinated(self) -> bool:
        """Whether verbs can act on it."""

    @property
    def source(self) -> Sequence[tuple[int, str]] | None:
        """Numbered lines of its function, or None if there is no source."""

    def locals(self) -> Mapping[str, object]:
        """Return its local names and their values."""

    def names_in_line(self) -> Sequence[str]:
        """Return the names that its present line reads."""

    def disassembly(self) -> str:
        """Return its instructions, with the starts of statements and the present place marked."""


class HoldLike(Protocol):
    """A thread that is held at the statement that crashed."""

    @property
    def number(self) -> int:
        """Counts the holds of this process from 1."""

    @property
    def exception(self) -> BaseException:
        """What was raised."""

    @property
    def crashed(self) -> bool:
        """Whether something was raised; else the thread was only paused."""

    @property
    def repetition(self) -> Repetition:
        """How often the same has happened here before, after retries."""

    @property
    def thread_name(self) -> str:
        """The name of the held thread."""

    @property
    def started(self) -> float:
        """When the hold began, as `time.time()` tells it; the computer's clock may be set meanwhile."""

    @property
    def began(self) -> float:
        """When the hold began, as `time.monotonic()` tells it."""

    asked: float
    """When the last word was given; until then, when the hold began. As `time.monotonic()` tells it."""

    @property
    def frames(self) -> Sequence[FrameLike]:
        """The user's frames, outermost first."""

    @property
    def selected(self) -> FrameLike:
        """The frame that words act on."""

    @property
    def verdict(self) -> VerdictLike:
        """Why it is held."""

    @property
    def decision(self) -> object:
        """None until a verb has decided how to go on."""

    def where_next(self) -> str:
        """Say what `pass` would run next."""

    def select(self, which: int | str) -> FrameLike:
        """Select a frame by its number in `frames` or by its function's name."""

    def up(self, n: int = 1) -> FrameLike:
        """Select the frame `n` further out."""

    def down(self, n: int = 1) -> FrameLike:
        """Select the frame `n` further in."""

    def evaluate(self, expression: str) -> object:
        """Return an expression's value in the selected frame; raises what it raises."""

    def act(self, source: str, filename: str = "<action>") -> ActionLike:
        """Run code in the selected frame."""

    def retry(self) -> str:
        """Go on: run the statement again. Each verb returns a sentence, or raises Refusal."""

    def skip(self, what: str = "") -> str:
        """Go on after the statement, with the loop's next iteration (`body`), or after the loop (`loop`)."""

    def restart(self) -> str:
        """Go on at the first statement of the function."""

    def goto(self, line: int) -> str:
        """Go on at the statement of a line."""

    def give(self, value_expression: str | None) -> str:
        """Let the frame return a value."""

    def let_go(self, expression: str | None = None, always: bool = False) -> str:
        """Let the exception go on, or another one instead."""

    def leave(self, code: int) -> str:
        """End the process with an exit code."""

    def surgery(
        self,
        *,
        from_disk: bool = False,
        file: str | None = None,
        name: str | None = None,
        source: str | None = None,
        line: int | None = None,
        check: bool = False,
    ) -> str:
        """Replace functions by edited ones; say what changed."""

    def last_change(self) -> str:
        """Return the diff of the last surgery that is in force, for the journal."""

    def undo(self) -> str:
        """Take the last surgery back; say what it was."""

    def patch(self) -> str:
        """Return the diff of all surgeries against the files on disk."""


Responder = Callable[[HoldLike], None]
