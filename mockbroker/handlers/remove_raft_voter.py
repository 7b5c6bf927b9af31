"""RemoveRaftVoter (81): remove a voter from the metadata quorum (KIP-853).

The only voter cannot be removed, so every request is refused, as in Kafka.
"""

from __future__ import annotations

from mockbroker.core.errors import ApiError
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.add_raft_voter import check_reconfigurable, check_voter
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)


@api(
    ApiKey.REMOVE_RAFT_VOTER,
    versions=(0, 0),
    authorize=clusterwide(AclOperation.ALTER, has_message=False),
    forwarded=True,
    refusal=Refusal(repeats_code=True),
)
def remove_raft_voter(
    ctx: RequestContext, request: RemoveRaftVoterRequest
) -> RemoveRaftVoterResponse:
    """Refuse it after the checks of KafkaRaftClient and RemoveVoterHandler, in their order."""
    check_voter(ctx.cluster, request, "Remove")
    check_reconfigurable(ctx.cluster, "removing")
    raise ApiError(
        ErrorCode.VOTER_NOT_FOUND,
        f"Controller {request.voter_id} is not among the voters that may leave.",
    )
