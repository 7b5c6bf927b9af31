"""AlterPartitionReassignments (45): reassign partitions to other brokers (KIP-455)."""

from __future__ import annotations

from collections.abc import Callable

from mockbroker.core.errors import ApiError
from mockbroker.core.replication.reassignment import plan_reassignment
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


@api(
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    versions=(0, 1),
    authorize=clusterwide(AclOperation.ALTER),
    forwarded=True,
    refusal=Refusal(rows=("responses",)),
)
def alter_partition_reassignments(
    ctx: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Begin or cancel the reassignment of each partition, or answer its error.

    As in Kafka each is checked by the state before the request, also a partition named twice.
    """
    may_change_factor = request.allow_replication_factor_change
    if not request.topics:
        return AlterPartitionReassignmentsResponse()  # its message is empty, not null
    moves: list[Callable[[], object]] = []

    def result(topic: str, partition: ReassignablePartition) -> ReassignablePartitionResponse:
        index = partition.partition_index
        try:
            moves.append(
                plan_reassignment(
                    ctx.cluster.replication_control,
                    topic,
                    index,
                    partition.replicas,
                    may_change_factor=may_change_factor,
                )
            )
        except ApiError as error:
            return ReassignablePartitionResponse(index, error.error, error.message)
        return ReassignablePartitionResponse(index, error_message=None)

    responses = [
        ReassignableTopicResponse(topic.name, [result(topic.name, p) for p in topic.partitions])
        for topic in request.topics
    ]
    for move in moves:
        move()
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change_factor,
        error_message=None,
        responses=responses,
    )
