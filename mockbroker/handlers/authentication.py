"""How clients that have not proved who they are get refused."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

from mockbroker.core.cluster import Cluster
from mockbroker.handlers.base import Parked
from mockbroker_protocol import ApiKey, ErrorCode

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


def refusal(key: ApiKey, error: ErrorCode) -> object:
    """The response of an API that says `error` where it has a place for one, and nothing else."""
    module = import_module(f"mockbroker_protocol.messages.{key.name.lower()}")
    name = "".join(word.capitalize() for word in key.name.split("_"))
    response: Any = getattr(module, f"{name}Response")()
    for field in ("error_code", "error"):
        if hasattr(response, field):
            setattr(response, field, error)
    return response
