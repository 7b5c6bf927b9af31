"""ShareAcknowledge (79): acknowledge records of a share group without fetching (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.errors import ApiError
from mockbroker.core.security.acls import AclOperation
from mockbroker.core.share.states import FINAL_EPOCH
from mockbroker.handlers.authorization import by_handler, on_group, on_topic, requires
from mockbroker.handlers.base import Parked, api
from mockbroker.handlers.leader_hints import LeaderHints
from mockbroker.handlers.share_requests import (
    HINTED,
    Acknowledged,
    Acknowledgements,
    TopicAccess,
    lock_duration_ms,
    refused,
    target_of,
)
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

if TYPE_CHECKING:
    from mockbroker.handlers.base import RequestContext


@api(
    ApiKey.SHARE_ACKNOWLEDGE,
    versions=(1, 2),
    authorize=by_handler(
        requires(on_group(AclOperation.READ), otherwise="`GROUP_AUTHORIZATION_FAILED`"),
        requires(on_topic(AclOperation.READ)),
    ),
)
def share_acknowledge(
    ctx: RequestContext, request: ShareAcknowledgeRequest
) -> ShareAcknowledgeResponse | Parked[ShareAcknowledgeResponse]:
    """Answer when the states are written; then the session ends, if the epoch is -1."""
    group_id, member_id = request.group_id, request.member_id
    error = refused(ctx, group_id, member_id)
    if error is not None:
        return ShareAcknowledgeResponse(error_code=error)
    assert group_id is not None
    assert member_id is not None
    manager = ctx.broker.share_partitions
    key = group_id, member_id
    access = TopicAccess(ctx)
    try:
        manager.sessions.acknowledged(key, request.share_session_epoch)
        access.check_names(
            target_of(ctx, topic.topic_id, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
        )
    except ApiError as invalid:
        return ShareAcknowledgeResponse(error_code=invalid.error)
    reply: Parked[ShareAcknowledgeResponse] = Parked()

    def acknowledged(rows: list[Acknowledged]) -> None:
        if request.share_session_epoch == FINAL_EPOCH:
            manager.release_session(key)
        reply.complete(_response(ctx, group_id, rows))

    Acknowledgements(
        ctx, group_id, member_id, access, acknowledged, is_renew=request.is_renew_ack
    ).start(request.topics)
    return reply.response if reply.done else reply


def _response(
    ctx: RequestContext, group_id: str, rows: list[Acknowledged]
) -> ShareAcknowledgeResponse:
    hints = LeaderHints(ctx)
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    for target, error, message in rows:
        data = PartitionData(target.partition, error, message)
        partition = ctx.image.partition(target.topic or "", target.partition)
        if error in HINTED and partition is not None:
            data.current_leader = LeaderIdAndEpoch(*hints.add_leader(partition))
        topic = topics.setdefault(
            target.topic_id, ShareAcknowledgeTopicResponse(target.topic_id, [])
        )
        topic.partitions.append(data)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=lock_duration_ms(ctx, group_id),
        responses=list(topics.values()),
        node_endpoints=hints.endpoints(NodeEndpoint),
    )
