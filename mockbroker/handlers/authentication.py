"""How clients that have not proved who they are get refused."""

from __future__ import annotations

from typing import TypeVar

from mockbroker.core.cluster import Cluster
from mockbroker.handlers.base import Parked

R = TypeVar("R")


def told_late(cluster: Cluster, now_ms: int, response: R) -> Parked[R]:
    """A refusal, told after `connection.failed.authentication.delay.ms`; then Kafka closes.

    The wait is there against those who try password after password.
    """
    parked: Parked[R] = Parked()
    delay_ms = cluster.config_int("connection.failed.authentication.delay.ms")
    if delay_ms == 0:
        parked.complete(response)
    else:
        cluster.timers.call_at(now_ms + delay_ms, lambda: parked.complete(response))
    return parked
