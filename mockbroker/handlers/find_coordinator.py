"""FindCoordinator (10): the broker that coordinates a group, transactional id or share partition.

The first request creates the internal topic. Kafka answers it with COORDINATOR_NOT_AVAILABLE,
because the controller needs a moment; here the topic exists at once.
"""

from __future__ import annotations

from contextlib import suppress

from mockbroker.core.errors import ApiError
from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker.core.ids import uuid_from_text
from mockbroker.core.metadata.image import Endpoint
from mockbroker.core.metadata.topic import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
    Topic,
)
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import (
    AuthHelper,
    by_handler,
    on_cluster,
    on_group,
    on_transactional_id,
    requires,
)
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from mockbroker_protocol.types import parse_integer

GROUP, TRANSACTION, SHARE = 0, 1, 2
TOPICS = {
    GROUP: GROUP_METADATA_TOPIC,
    TRANSACTION: TRANSACTION_STATE_TOPIC,
    SHARE: SHARE_GROUP_STATE_TOPIC,
}
BATCHES_SINCE = 4
SHARE_SINCE = 6


@api(
    ApiKey.FIND_COORDINATOR,
    versions=(0, 6),
    authorize=by_handler(
        requires(on_group(AclOperation.DESCRIBE)),
        requires(on_transactional_id(AclOperation.DESCRIBE)),
        requires(
            on_cluster(AclOperation.CLUSTER_ACTION),
            about="for share partitions",
            otherwise="`CLUSTER_AUTHORIZATION_FAILED`",
        ),
    ),
    refusal=Refusal(
        fixed={
            "FindCoordinatorResponse": {"node_id": -1, "port": -1},
            "Coordinator": {"node_id": -1, "port": -1},
        },
        repeats_code=True,
    ),
)
def find_coordinator(
    ctx: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """A request has several keys since v4, each with its own error."""
    if ctx.api_version < BATCHES_SINCE:
        node_id, endpoint = _find(ctx, request.key_type, request.key)
        return FindCoordinatorResponse(
            error_message=ErrorCode.NONE.name,  # Kafka's message without an error
            node_id=node_id,
            host=endpoint.host,
            port=endpoint.port,
        )
    coordinators = []
    for key in request.coordinator_keys:
        try:
            node_id, endpoint = _find(ctx, request.key_type, key)
        except ApiError as error:
            if error.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                raise  # it refuses the whole request
            # Kafka has no message here for these types.
            message = "" if request.key_type in TOPICS else error.error.message
            coordinators.append(Coordinator(key, -1, "", -1, error.error, message))
        else:
            host, port = endpoint.host, endpoint.port
            coordinators.append(Coordinator(key, node_id, host, port, error_message=""))
    return FindCoordinatorResponse(coordinators=coordinators)


def _find(ctx: RequestContext, key_type: int, key: str) -> tuple[int, Endpoint]:
    """The coordinator's node id and endpoint, or ApiError."""
    topic_name = TOPICS.get(key_type)
    if topic_name is None or (key_type == SHARE and ctx.api_version < SHARE_SINCE):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    _check_authorized(AuthHelper(ctx), key_type, key)
    if key_type == SHARE and not _is_share_key(key):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    topic = _internal_topic(ctx, topic_name)
    if topic is not None:
        leader_id = topic.partitions[coordinator_partition(key, len(topic.partitions))].leader_id
        leader = ctx.image.brokers.get(leader_id)
        if leader is not None and not leader.fenced and ctx.listener in leader.endpoints:
            return leader_id, leader.endpoints[ctx.listener]
    raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _check_authorized(auth: AuthHelper, key_type: int, key: str) -> None:
    if key_type == GROUP and not auth.group(AclOperation.DESCRIBE, key):
        raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if key_type == TRANSACTION and not auth.transactional_id(AclOperation.DESCRIBE, key):
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if key_type == SHARE and not auth.cluster(AclOperation.CLUSTER_ACTION):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _internal_topic(ctx: RequestContext, name: str) -> Topic | None:
    """The topic; it is created if the broker has a session with the controller."""
    topic = ctx.image.topics.get(name)
    if topic is None and ctx.broker.has_newest_image:
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
    except ValueError:
        return False
    return parse_integer(parts[2]) is not None
