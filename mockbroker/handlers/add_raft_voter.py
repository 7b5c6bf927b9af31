"""AddRaftVoter (80): add a controller to the voters of the metadata quorum (KIP-853).

The active controller is the only controller here. So every request is refused, as by the leader of
such a quorum in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable

from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ApiError
from mockbroker.core.ids import ZERO_UUID
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.add_raft_voter import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    Listener,
)
from mockbroker_protocol.messages.remove_raft_voter import RemoveRaftVoterRequest

CONTROLLER_LISTENER = "CONTROLLER"
RECONFIGURABLE_SINCE = 1  # kraft.version


@api(
    ApiKey.ADD_RAFT_VOTER,
    versions=(0, 1),
    authorize=clusterwide(AclOperation.ALTER, has_message=False),
    forwarded=True,
    refusal=Refusal(repeats_code=True),
)
def add_raft_voter(ctx: RequestContext, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """Refuse it after the checks of KafkaRaftClient and AddVoterHandler, in their order."""
    check_voter(ctx.cluster, request, "Add")
    _check_listeners(request.listeners)
    check_reconfigurable(ctx.cluster, "adding")
    if request.voter_id == ctx.cluster.controller_id:
        raise ApiError(
            ErrorCode.DUPLICATE_VOTER, f"Controller {request.voter_id} is a voter already."
        )
    raise ApiError(ErrorCode.REQUEST_TIMED_OUT, f"Controller {request.voter_id} takes no requests.")


def check_voter(
    cluster: Cluster, request: AddRaftVoterRequest | RemoveRaftVoterRequest, what: str
) -> None:
    """Raise ApiError unless the request means this cluster and names a voter in full. `what` is the
    request's name in the message.
    """
    cluster_id = request.cluster_id
    if cluster_id is not None and cluster_id != cluster.cluster_id:
        raise ApiError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f'The given id "{cluster_id}" doesn\'t match the cluster id "{cluster.cluster_id}"',
        )
    if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"{what} voter request didn't include a valid voter"
        )


def check_reconfigurable(cluster: Cluster, doing: str) -> None:
    """Raise ApiError if the cluster's `kraft.version` has static voters."""
    level = cluster.features.level("kraft.version")
    if level < RECONFIGURABLE_SINCE:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Cluster doesn't support {doing} voter because the kraft.version feature is {level}",
        )


def _check_listeners(listeners: Iterable[Listener]) -> None:
    endpoints = {
        listener.name: f"{listener.host}/<unresolved>:{listener.port}" for listener in listeners
    }
    if CONTROLLER_LISTENER not in endpoints:
        shown = ", ".join(f"ListenerName({name})={at}" for name, at in endpoints.items())
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{shown}}})) for "
            f"the default listener ListenerName({CONTROLLER_LISTENER})",
        )
