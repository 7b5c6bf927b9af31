"""Waiting for a condition that comes to hold in another thread or process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

TIMEOUT_S = 40.0

_PAUSE_FIRST_S = 0.001
_PAUSE_MAX_S = 0.02


def wait_until(
    condition: Callable[[], bool], timeout_s: float = TIMEOUT_S, what: str = "the condition"
) -> None:
    """Look until `condition` holds. The pause between two looks leaves the core to the others and
    doubles up to 20 ms: most conditions come to hold at once, the rest can wait that long.

    Raises:
        AssertionError: it did not come to hold within `timeout_s`.
    """
    nobody_sets_it = threading.Event()
    deadline = time.monotonic() + timeout_s
    pause_s = _PAUSE_FIRST_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come to hold"
        nobody_sets_it.wait(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)
