"""DescribeProducers (61): the producer states of a replica (KIP-664).

Followers answer as well, from their own logs (`--broker-id` of kafka-transactions.sh).
"""

from __future__ import annotations

from mockbroker.core.errors import LimitError
from mockbroker.core.limits import RESPONSE_ELEMENTS_MAX
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.metadata.topic import why_invalid_name
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import AuthHelper, by_handler, on_topic, requires
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.rows import Rows
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)


@api(
    ApiKey.DESCRIBE_PRODUCERS,
    versions=(0, 0),
    authorize=by_handler(requires(on_topic(AclOperation.READ))),
    rows=Rows("topics", "topics"),
)
def describe_producers(
    ctx: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Describe every producer of each partition that this broker has a replica of."""
    auth = AuthHelper(ctx)
    return DescribeProducersResponse(
        topics=[TopicResponse(each.name, _partitions(ctx, auth, each)) for each in request.topics]
    )


def _partitions(
    ctx: RequestContext, auth: AuthHelper, wanted: TopicRequest
) -> list[PartitionResponse]:
    """The partitions of a topic. Raises LimitError if it repeats those of very many producers.

    The response is made in one piece.
    """
    described: dict[int, PartitionResponse] = {}
    repeated, repeated_max = 0, ctx.cluster.config_int(RESPONSE_ELEMENTS_MAX)
    for index in wanted.partition_indexes:
        if index not in described:
            described[index] = _describe(ctx, auth, wanted.name, index)
        else:
            repeated += len(described[index].active_producers)
            if repeated > repeated_max:
                raise LimitError(
                    ErrorCode.INVALID_REQUEST,
                    f"Topic {wanted.name}: partitions with more than {repeated_max:,} producers "
                    f"({RESPONSE_ELEMENTS_MAX}) are named again.",
                    RESPONSE_ELEMENTS_MAX,
                )
    return [described[index] for index in wanted.partition_indexes]


def _describe(ctx: RequestContext, auth: AuthHelper, topic: str, index: int) -> PartitionResponse:
    reason = why_invalid_name(topic)
    if reason is not None:
        return PartitionResponse(index, ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if not auth.topic(AclOperation.READ, topic):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return PartitionResponse(index, error, error.message)
    if topic not in ctx.image.topics:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return PartitionResponse(index, error, error.message)
    partition = ctx.image.partition(topic, index)
    if partition is None:
        return PartitionResponse(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    replica = partition.replica(ctx.broker.node_id)
    if replica is None:
        return PartitionResponse(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    log = replica.log
    if ctx.now_ms >= log.producers.next_check_ms:
        partition.expire_producers(log, ctx.now_ms)
    return PartitionResponse(index, active_producers=_states(log))


def _states(log: ReplicaLog) -> list[ProducerState]:
    return [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=entry.epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.last_timestamp,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=entry.transaction_start,
        )
        for producer_id, entry in log.producers.entries.items()
    ]
