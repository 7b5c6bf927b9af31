"""ElectLeaders (43): bring back preferred leaders, or any leader to leaderless partitions
(KIP-460).
"""

from __future__ import annotations

from collections.abc import Callable

from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ApiError
from mockbroker.core.replication.elections import elect_preferred_leader, elect_unclean_leader
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

_ELECTIONS: dict[int, Callable[[Cluster, str, int], None]] = {
    0: elect_preferred_leader,
    1: elect_unclean_leader,
}


@api(ApiKey.ELECT_LEADERS, versions=(0, 2))
def elect_leaders(ctx: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Hold the election in each partition named; without names, in every one that needs it."""
    elect = _ELECTIONS.get(request.election_type)
    named = request.topic_partitions
    if named is None:
        wanted = [(t.name, list(range(len(t.partitions)))) for t in ctx.image.topics.values()]
    else:
        wanted = [(topic.topic, topic.partitions) for topic in named]
    if elect is None:
        return _refuse(request.election_type, wanted if named is not None else [])
    # Kafka judges every partition by its state before the request: one that is named twice has one
    # result, told twice.
    elected = {
        (topic, i): _result(ctx.cluster, elect, topic, i)
        for topic, i in dict.fromkeys((topic, i) for topic, indexes in wanted for i in indexes)
    }
    results = [
        ReplicaElectionResult(topic, [elected[topic, i] for i in indexes])
        for topic, indexes in wanted
    ]
    if named is None:
        for result in results:
            result.partition_result = [
                partition
                for partition in result.partition_result
                if partition.error_code != ErrorCode.ELECTION_NOT_NEEDED
            ]
    return ElectLeadersResponse(replica_election_results=results)


def _refuse(election_type: int, wanted: list[tuple[str, list[int]]]) -> ElectLeadersResponse:
    error, message = ErrorCode.INVALID_REQUEST, f"There is no election of type {election_type}."
    return ElectLeadersResponse(
        error_code=error,
        replica_election_results=[
            ReplicaElectionResult(topic, [PartitionResult(i, error, message) for i in indexes])
            for topic, indexes in wanted
        ],
    )


def _result(
    cluster: Cluster, elect: Callable[[Cluster, str, int], None], topic: str, index: int
) -> PartitionResult:
    try:
        elect(cluster, topic, index)
    except ApiError as error:
        return PartitionResult(index, error.error, error.message)
    return PartitionResult(index, error_message=None)
