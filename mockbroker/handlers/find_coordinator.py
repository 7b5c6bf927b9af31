"""FindCoordinator: which broker coordinates a group, a transactional id or a share partition.

The internal topic comes into being with the first question. A broker of Kafka answers that first
one with COORDINATOR_NOT_AVAILABLE, because the controller needs a moment, and its client asks
again; here the topic is there at once, so the first answer names the coordinator.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from mockbroker.core.errors import ApiError
from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker.core.ids import uuid_from_text
from mockbroker.core.topic import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
    Topic,
)
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP, TRANSACTION, SHARE = 0, 1, 2
TOPICS = {
    GROUP: GROUP_METADATA_TOPIC,
    TRANSACTION: TRANSACTION_STATE_TOPIC,
    SHARE: SHARE_GROUP_STATE_TOPIC,
}
BATCHES_SINCE = 4
SHARE_SINCE = 6


class Found(NamedTuple):
    """A coordinator's address, or an error with the address of nobody."""

    error: ErrorCode
    node_id: int = -1
    host: str = ""
    port: int = -1


@api(ApiKey.FIND_COORDINATOR, versions=(0, 6))
def find_coordinator(
    ctx: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Since v4 for many keys at once, each with its own error."""
    if ctx.api_version < BATCHES_SINCE:
        found = _find(ctx, request.key_type, request.key)
        return FindCoordinatorResponse(
            error_code=found.error,
            # Kafka writes out even that there is no error.
            error_message=_message(found.error) or ErrorCode.NONE.name,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    known_type = request.key_type in TOPICS
    coordinators = []
    for key in request.coordinator_keys:
        found = _find(ctx, request.key_type, key)
        coordinators.append(
            Coordinator(
                key=key,
                error_code=found.error,
                # Kafka gives a message only where it refuses the request as a whole.
                error_message="" if known_type else _message(found.error),
                node_id=found.node_id,
                host=found.host,
                port=found.port,
            )
        )
    return FindCoordinatorResponse(coordinators=coordinators)


def _find(ctx: RequestContext, key_type: int, key: str) -> Found:
    topic_name = TOPICS.get(key_type)
    if topic_name is None:
        return Found(ErrorCode.INVALID_REQUEST)
    if key_type == SHARE and (ctx.api_version < SHARE_SINCE or not _is_share_key(key)):
        return Found(ErrorCode.INVALID_REQUEST)
    topic = _internal_topic(ctx, topic_name)
    if topic is None:
        return Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    leader_id = topic.partitions[coordinator_partition(key, len(topic.partitions))].leader_id
    leader = ctx.image.brokers.get(leader_id)
    if leader is None or leader.fenced:
        return Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    endpoint = leader.endpoints.get(ctx.listener)
    if endpoint is None:
        return Found(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Found(ErrorCode.NONE, leader_id, endpoint.host, endpoint.port)


def _internal_topic(ctx: RequestContext, name: str) -> Topic | None:
    """The topic, which the controller creates on first use if it can be asked."""
    topic = ctx.image.topics.get(name)
    if topic is None and ctx.broker.hears_controller:
        with suppress(ApiError):
            return ctx.cluster.ensure_internal_topic(name)
    return topic


def _is_share_key(key: str) -> bool:
    """Whether `key` has the form groupId:topicId:partition (SharePartitionKey.validate)."""
    parts = key.split(":")
    if len(parts) != 3 or not parts[0].strip():
        return False
    try:
        uuid_from_text(parts[1])
        int(parts[2])
    except ValueError:
        return False
    return True


def _message(error: ErrorCode) -> str | None:
    return None if error is ErrorCode.NONE else error.sentence
