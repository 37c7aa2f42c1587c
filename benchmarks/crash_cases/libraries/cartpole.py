"""Plays gymnasium's cart-pole: a cart is pushed to the left or right so that the pole on it does not fall."""

from __future__ import annotations

import math
import random

GRAVITY = 9.8
CART, POLE = 1.0, 0.1
HALF_LENGTH = 0.5
FORCE = 10.0
SECONDS = 0.02
WIDEST = 12 * 2 * math.pi / 360
FARTHEST = 2.4

State = tuple[float, float, float, float]


class CartPole:
    """The environment.

    Args:
        limit: steps after which an episode is over.
    """

    def __init__(self, limit: int = 200) -> None:
        self.limit = limit
        self.steps = 0
        self.state: State = (0.0, 0.0, 0.0, 0.0)
        self._random = random.Random()

    def reset(self, *, seed: int | None = None) -> tuple[State, dict[str, object]]:
        """Begin an episode somewhere near the middle."""
        if seed is not None:
            self._random.seed(seed)
        draw = self._random.uniform
        self.state = (draw(-0.05, 0.05), draw(-0.05, 0.05), draw(-0.05, 0.05), draw(-0.05, 0.05))
        self.steps = 0
        return self.state, {}

    def step(self, action: int) -> tuple[State, float, bool, bool, dict[str, object]]:
        """Push to the left (0) or right (1); the state, the reward, whether the pole fell, whether time is over."""
        x, speed, angle, turning = self.state
        force = FORCE if action else -FORCE
        sine, cosine = math.sin(angle), math.cos(angle)
        inner = (force + POLE * HALF_LENGTH * turning**2 * sine) / (CART + POLE)
        bent = (GRAVITY * sine - cosine * inner) / (HALF_LENGTH * (4 / 3 - POLE * cosine**2 / (CART + POLE)))
        pushed = inner - POLE * HALF_LENGTH * bent * cosine / (CART + POLE)
        self.state = (
            x + SECONDS * speed,
            speed + SECONDS * pushed,
            angle + SECONDS * turning,
            turning + SECONDS * bent,
        )
        self.steps += 1
        fell = abs(self.state[0]) > FARTHEST or abs(self.state[2]) > WIDEST
        return self.state, 1.0, fell, self.steps >= self.limit, {}
