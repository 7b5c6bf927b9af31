"""A generator of numbers that draws what `random.Random` draws from the same seed, in half the
time: a simulation draws some thousand times.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Draws(random.Random):
    """`randint` and `choice` without the steps between them and the bits."""

    def randint(self, a: int, b: int) -> int:
        """As `Random.randint`. Raises ValueError where b < a."""
        width = b - a + 1
        if width <= 0:
            raise ValueError(f"there is no number from {a} to {b}")
        bits = width.bit_length()
        drawn = self.getrandbits(bits)
        while drawn >= width:
            drawn = self.getrandbits(bits)
        return a + drawn

    def choice(self, seq: Sequence[T] | Any) -> Any:
        """As `Random.choice`. Raises IndexError where there is nothing to choose."""
        count = len(seq)
        if not count:
            raise IndexError("there is nothing to choose")
        bits = count.bit_length()
        drawn = self.getrandbits(bits)
        while drawn >= count:
            drawn = self.getrandbits(bits)
        return seq[drawn]
