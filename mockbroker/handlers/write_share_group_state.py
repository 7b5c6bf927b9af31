"""WriteShareGroupState (85): merge acknowledgements into the states of share partitions.

Brokers send it to the share coordinator (KIP-932); see `core.share.persister`.
"""

from __future__ import annotations

from mockbroker.core.security.acls import Operation
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)


@api(
    ApiKey.WRITE_SHARE_GROUP_STATE,
    versions=(0, 1),
    authorize=clusterwide(
        Operation.CLUSTER_ACTION, otherwise=" for every partition", repeats_code=True
    ),
    refusal=Refusal(repeats_code=True),
)
def write_share_group_state(
    ctx: RequestContext, request: WriteShareGroupStateRequest
) -> Parked[WriteShareGroupStateResponse]:
    """Answer once what the request wrote is replicated."""
    from mockbroker.core.share.operations import WRITE

    parked: Parked[WriteShareGroupStateResponse] = Parked()
    ctx.broker.share_coordinator.handle(WRITE, request, parked.complete)
    return parked
