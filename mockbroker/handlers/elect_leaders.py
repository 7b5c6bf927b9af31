"""ElectLeaders (43): elect preferred leaders, or leaders outside the ISR (KIP-460)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from mockbroker.core.errors import ApiError
from mockbroker.core.replication.elections import elect_preferred_leader, elect_unclean_leader
from mockbroker.core.replication.replication_control import ReplicationControl
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

_Election: TypeAlias = Callable[[ReplicationControl, str, int, int], None]

_ELECTIONS: dict[int, _Election] = {
    0: elect_preferred_leader,
    1: elect_unclean_leader,
}


@api(
    ApiKey.ELECT_LEADERS,
    versions=(0, 2),
    authorize=clusterwide(AclOperation.ALTER),
    forwarded=True,
    refusal=Refusal(rows=("replica_election_results",)),
)
def elect_leaders(ctx: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Elect a leader of each partition named; without names, of all that need an election."""
    elect = _ELECTIONS.get(request.election_type)
    named = request.topic_partitions
    if named is None:
        wanted = [(t.name, list(range(len(t.partitions)))) for t in ctx.image.topics.values()]
    else:
        wanted = [(topic.topic, topic.partitions) for topic in named]
    if elect is None:
        message = f"Unknown election type {request.election_type}"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)
    # The state before the request decides, so a partition named twice has two equal results.
    times = Counter((topic, i) for topic, indexes in wanted for i in indexes)
    elected = {
        (topic, i): _result(ctx.cluster.replication_control, elect, topic, i, count)
        for (topic, i), count in times.items()
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


def _result(
    control: ReplicationControl, elect: _Election, topic: str, index: int, times: int
) -> PartitionResult:
    try:
        elect(control, topic, index, times)
    except ApiError as error:
        return PartitionResult(index, error.error, error.message)
    return PartitionResult(index, error_message=None)
