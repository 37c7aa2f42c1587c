"""What crashes cost on the average, with checkpoints and without: the formulas, in seconds.

A run that is saved every T seconds, each time for C, that fails once in M and needs R to be started again, loses the
share C/T + (T/2 + R)/M: half of what lies between two checkpoints is done again. It is least at T = sqrt(2CM) (Young).
A run that is held and goes on after r loses r/M.
"""

from __future__ import annotations

import math

#: Mean time between failures, in seconds: 419 unexpected ones in 54 days, as reported for the training of Llama 3.
BETWEEN_FAILURES = 54 * 24 * 3600 / 419


def best_interval(cost: float, between: float = BETWEEN_FAILURES) -> float:
    """The distance of checkpoints that loses least.

    Args:
        cost: of a checkpoint.
        between: failures.
    """
    return math.sqrt(2 * cost * between)


def share_lost(interval: float, cost: float, restart: float, between: float = BETWEEN_FAILURES) -> float:
    """The share of the time that is lost with checkpoints.

    Args:
        interval: between checkpoints.
        cost: of one.
        restart: from the crash to the first step.
        between: failures.
    """
    return cost / interval + (interval / 2 + restart) / between


def same_loss(recovery: float, step: float) -> float:
    """How many steps apart checkpoints lie after which as much work is done again as a recovery in place takes.

    That is without what starting anew takes. Less than one is no distance that checkpoints can have.
    """
    return 2 * recovery / step
