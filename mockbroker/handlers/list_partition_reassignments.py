"""ListPartitionReassignments (46): the ongoing reassignments (KIP-455)."""

from __future__ import annotations

from collections.abc import Iterable

from mockbroker.core.cluster import Cluster
from mockbroker.core.metadata.topic import Topic
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


@api(
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    versions=(0, 0),
    authorize=clusterwide(AclOperation.DESCRIBE),
    forwarded=True,
    refusal=Refusal(rows=("topics", "partitions")),
)
def list_partition_reassignments(
    ctx: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """List the reassignments of the partitions in the request, or of all."""
    cluster = ctx.cluster
    wanted: list[tuple[Topic | None, Iterable[int]]] = (
        [(topic, range(len(topic.partitions))) for topic in cluster.topics.values()]
        if request.topics is None
        else [(cluster.topics.get(t.name), t.partition_indexes) for t in request.topics]
    )
    topics = []
    for topic, indexes in wanted:
        ongoing = [] if topic is None else _ongoing(cluster, topic, indexes)
        if topic is not None and ongoing:
            topics.append(OngoingTopicReassignment(name=topic.name, partitions=ongoing))
    return ListPartitionReassignmentsResponse(error_message=None, topics=topics)


def _ongoing(
    cluster: Cluster, topic: Topic, indexes: Iterable[int]
) -> list[OngoingPartitionReassignment]:
    return [
        OngoingPartitionReassignment(
            partition_index=index,
            replicas=topic.partitions[index].replicas,
            adding_replicas=ongoing.adding,
            removing_replicas=ongoing.removing,
        )
        for index in indexes
        if (ongoing := cluster.reassignments.get((topic.topic_id, index))) is not None
    ]
