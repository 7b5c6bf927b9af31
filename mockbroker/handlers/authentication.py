"""The response to a failed authentication."""

from __future__ import annotations

from typing import TypeVar

from mockbroker.core.cluster import Cluster
from mockbroker.handlers.base import Parked

R = TypeVar("R")


def delayed_failure(cluster: Cluster, now_ms: int, response: R) -> Parked[R]:
    """A response after `connection.failed.authentication.delay.ms`, against guessed passwords.

    Then the connection is closed.
    """
    parked: Parked[R] = Parked()
    delay_ms = cluster.config_int("connection.failed.authentication.delay.ms")
    if delay_ms == 0:
        parked.complete(response)
    else:
        cluster.runtime.timers.call_at(now_ms + delay_ms, lambda: parked.complete(response))
    return parked
