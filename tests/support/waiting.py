"""Waiting for a condition that comes to hold in another thread or process."""

from __future__ import annotations

import time
from collections.abc import Callable

TIMEOUT_S = 40.0


def wait_until(
    condition: Callable[[], bool], timeout_s: float = TIMEOUT_S, what: str = "the condition"
) -> None:
    """Ask until `condition` holds; each question gives the cluster's thread its turn.

    Raises:
        AssertionError: it did not come to hold within `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come to hold"
