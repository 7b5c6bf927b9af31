"""AlterPartitionReassignments (45): move partitions to other brokers (KIP-455)."""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.core.replication.reassignment import reassign
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


@api(ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions=(0, 1))
def alter_partition_reassignments(
    ctx: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Start or call off the move of each partition, or say why not."""
    may_change_factor = request.allow_replication_factor_change

    if not request.topics:
        return AlterPartitionReassignmentsResponse()  # whose message is empty, not null

    def result(topic: str, partition: ReassignablePartition) -> ReassignablePartitionResponse:
        index = partition.partition_index
        try:
            reassign(
                ctx.cluster,
                topic,
                index,
                partition.replicas,
                may_change_factor=may_change_factor,
            )
        except ApiError as error:
            return ReassignablePartitionResponse(index, error.error, error.message)
        return ReassignablePartitionResponse(index, error_message=None)

    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change_factor,
        error_message=None,
        responses=[
            ReassignableTopicResponse(topic.name, [result(topic.name, p) for p in topic.partitions])
            for topic in request.topics
        ],
    )
