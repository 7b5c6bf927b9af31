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


def refusal(key: ApiKey, request: Any, error: ErrorCode) -> object:
    """The response of an API that says `error` where it has a place for one.

    Clients that lose their place between their tokens ask for Metadata or a coordinator; there the
    error is told for each thing they asked about, elsewhere for the request as a whole.
    """
    module = import_module(f"mockbroker_protocol.messages.{key.name.lower()}")
    name = "".join(word.capitalize() for word in key.name.split("_"))
    response: Any = getattr(module, f"{name}Response")()
    if hasattr(response, "error_code"):
        response.error_code = error
    if key is ApiKey.METADATA:
        response.topics = [
            module.MetadataResponseTopic(error, topic.name, topic.topic_id)
            for topic in request.topics or ()
        ]
    elif key is ApiKey.FIND_COORDINATOR:
        response.error_message = error.sentence
        response.node_id = response.port = -1
        response.coordinators = [
            module.Coordinator(wanted, -1, "", -1, error, error.sentence)
            for wanted in request.coordinator_keys
        ]
    return response
