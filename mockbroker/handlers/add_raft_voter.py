"""AddRaftVoter (80): a controller wants to vote in the metadata quorum (KIP-853).

The quorum here is the active controller alone, and no other controller exists that could be asked
to join. So every request is refused, as a real leader of such a quorum refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable

from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ApiError
from mockbroker.core.ids import ZERO_UUID
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.add_raft_voter import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    Listener,
)

CONTROLLER_LISTENER = "CONTROLLER"
RECONFIGURABLE_SINCE = 1  # kraft.version


@api(ApiKey.ADD_RAFT_VOTER, versions=(0, 1))
def add_raft_voter(ctx: RequestContext, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """Say why not, in Kafka's order (KafkaRaftClient, AddVoterHandler)."""
    try:
        check_voter(ctx.cluster, request.cluster_id, request.voter_id, request.voter_directory_id)
        _check_listeners(request.listeners)
        check_reconfigurable(ctx.cluster)
    except ApiError as error:
        return AddRaftVoterResponse(error_code=error.error, error_message=error.message)
    if request.voter_id == ctx.cluster.controller_id:
        return AddRaftVoterResponse(
            error_code=ErrorCode.DUPLICATE_VOTER,
            error_message=f"Controller {request.voter_id} is a voter already.",
        )
    return AddRaftVoterResponse(
        error_code=ErrorCode.REQUEST_TIMED_OUT,
        error_message=f"Controller {request.voter_id} takes no requests.",
    )


def check_voter(
    cluster: Cluster, cluster_id: str | None, voter_id: int, directory_id: bytes
) -> None:
    """Raise ApiError unless the request means this cluster and names a voter in full."""
    if cluster_id is not None and cluster_id != cluster.cluster_id:
        raise ApiError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"This is cluster {cluster.cluster_id}, not {cluster_id}.",
        )
    if voter_id < 0 or directory_id == ZERO_UUID:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "A voter has an id that is not negative, and a directory."
        )


def check_reconfigurable(cluster: Cluster) -> None:
    """Raise ApiError while the cluster's `kraft.version` has voters that never change."""
    level = cluster.features.level("kraft.version")
    if level < RECONFIGURABLE_SINCE:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION, f"At kraft.version {level} the voters never change."
        )


def _check_listeners(listeners: Iterable[Listener]) -> None:
    if all(listener.name != CONTROLLER_LISTENER for listener in listeners):
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"The voter has no listener {CONTROLLER_LISTENER}."
        )
