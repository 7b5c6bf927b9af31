"""DescribeQuorum (55): the metadata quorum (KIP-595).

Its only voter is the broker with the active controller; the other brokers are observers. If that
broker stops, the next one is the leader with a higher epoch.
"""

from __future__ import annotations

from mockbroker.core.metadata.topic import CLUSTER_METADATA_TOPIC
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)


@api(
    ApiKey.DESCRIBE_QUORUM,
    versions=(0, 2),
    authorize=clusterwide(AclOperation.DESCRIBE, has_message=False),
    forwarded=True,
    refusal=Refusal(repeats_code=True),
)
def describe_quorum(ctx: RequestContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Describe the partition of the metadata topic; any other one is unknown."""
    asked = [(t.topic_name, [p.partition_index for p in t.partitions]) for t in request.topics]
    if asked != [(CLUSTER_METADATA_TOPIC, [0])]:
        return DescribeQuorumResponse(
            topics=[
                ResponseTopicData(name, [_unknown(index) for index in indexes])
                for name, indexes in asked
            ]
        )
    cluster = ctx.cluster
    voters = [_state(ctx, cluster.controller_id)]
    others = [b for b in cluster.brokers.values() if b.node_id != cluster.controller_id]
    observers = [_state(ctx, broker.node_id) for broker in others if not broker.fenced]
    partition = ResponsePartitionData(
        leader_id=cluster.controller_id,
        leader_epoch=cluster.controller.epoch,
        high_watermark=ctx.image.epoch,
        current_voters=voters,
        observers=observers,
    )
    return DescribeQuorumResponse(
        topics=[ResponseTopicData(CLUSTER_METADATA_TOPIC, [partition])],
        # The controller shares the brokers' process: it has no listener of its own.
        nodes=[Node(node_id=cluster.controller_id)],
    )


def _unknown(index: int) -> ResponsePartitionData:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ResponsePartitionData(index, error, error.message)


def _state(ctx: RequestContext, node_id: int) -> ReplicaState:
    return ReplicaState(
        replica_id=node_id,
        log_end_offset=ctx.image.epoch,
        last_fetch_timestamp=ctx.now_ms,
        last_caught_up_timestamp=ctx.now_ms,
    )
