"""ReadShareGroupStateSummary (87): read the states of share partitions without their batches.

Brokers send it to the share coordinator (KIP-932); see `core.share.persister`.
"""

from __future__ import annotations

from mockbroker.core.security.acls import Operation
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)


@api(
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    versions=(0, 1),
    authorize=clusterwide(
        Operation.CLUSTER_ACTION, otherwise=" for every partition", repeats_code=True
    ),
    refusal=Refusal(repeats_code=True),
)
def read_share_group_state_summary(
    ctx: RequestContext, request: ReadShareGroupStateSummaryRequest
) -> Parked[ReadShareGroupStateSummaryResponse]:
    """Answer once what the request wrote is replicated."""
    from mockbroker.core.share.operations import READ_SUMMARY

    parked: Parked[ReadShareGroupStateSummaryResponse] = Parked()
    ctx.broker.share_coordinator.handle(READ_SUMMARY, request, parked.complete)
    return parked
