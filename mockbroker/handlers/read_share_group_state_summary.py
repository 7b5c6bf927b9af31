"""ReadShareGroupStateSummary (87): read the states of share partitions without their batches."""

from __future__ import annotations

from mockbroker.core.share.operations import READ_SUMMARY
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker.handlers.share_states import BY_BROKERS, answered
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)


@api(
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    versions=(0, 1),
    authorize=BY_BROKERS,
    refusal=Refusal(repeats_code=True),
)
def read_share_group_state_summary(
    ctx: RequestContext, request: ReadShareGroupStateSummaryRequest
) -> Parked[ReadShareGroupStateSummaryResponse]:
    """Answer once the records of the request are replicated."""
    return answered(ctx, READ_SUMMARY, request)
