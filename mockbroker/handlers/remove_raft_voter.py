"""RemoveRaftVoter (81): a voter leaves the metadata quorum (KIP-853).

The only voter cannot, so every request is refused, as a real leader of such a quorum refuses it.
"""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.handlers.add_raft_voter import check_reconfigurable, check_voter
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)


@api(ApiKey.REMOVE_RAFT_VOTER, versions=(0, 0))
def remove_raft_voter(
    ctx: RequestContext, request: RemoveRaftVoterRequest
) -> RemoveRaftVoterResponse:
    """Say why not, in Kafka's order (KafkaRaftClient, RemoveVoterHandler)."""
    try:
        check_voter(ctx.cluster, request.cluster_id, request.voter_id, request.voter_directory_id)
        check_reconfigurable(ctx.cluster)
    except ApiError as error:
        return RemoveRaftVoterResponse(error_code=error.error, error_message=error.message)
    return RemoveRaftVoterResponse(
        error_code=ErrorCode.VOTER_NOT_FOUND,
        error_message=f"Controller {request.voter_id} is not among the voters that may leave.",
    )
