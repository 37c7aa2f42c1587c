"""Text to learn from: each word depends on the one before."""

from __future__ import annotations

import random
from collections.abc import Iterator

WORDS = 40


def sentence_words(size: int, seed: int) -> Iterator[str]:
    """Yield words of a chain in which each has three likely followers.

    Args:
        size: how many.
        seed: of the text; the chain is always the same.
    """
    chain = random.Random(0)
    followers = [chain.sample(range(WORDS), 3) for _ in range(WORDS)]
    draw = random.Random(seed)
    word = 0
    for _ in range(size):
        yield f"w{word}"
        word = draw.choice(followers[word]) if draw.random() < 0.9 else draw.randrange(WORDS)
