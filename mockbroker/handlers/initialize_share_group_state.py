"""InitializeShareGroupState (83): begin the states of share partitions.

Brokers send it to the share coordinator (KIP-932); see `core.share.persister`.
"""

from __future__ import annotations

from mockbroker.core.security.acls import Operation
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)


@api(
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    versions=(0, 0),
    authorize=clusterwide(
        Operation.CLUSTER_ACTION, otherwise=" for every partition", repeats_code=True
    ),
)
def initialize_share_group_state(
    ctx: RequestContext, request: InitializeShareGroupStateRequest
) -> Parked[InitializeShareGroupStateResponse]:
    """Answer once what the request wrote is replicated."""
    from mockbroker.core.share.operations import INITIALIZE

    parked: Parked[InitializeShareGroupStateResponse] = Parked()
    ctx.broker.share_coordinator.handle(INITIALIZE, request, parked.complete)
    return parked
