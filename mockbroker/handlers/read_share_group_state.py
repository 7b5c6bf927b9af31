"""ReadShareGroupState (84): read the states of share partitions, for their new leader."""

from __future__ import annotations

from mockbroker.core.share.operations import READ
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker.handlers.share_states import BY_BROKERS, answered
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)


@api(
    ApiKey.READ_SHARE_GROUP_STATE,
    versions=(0, 0),
    authorize=BY_BROKERS,
    refusal=Refusal(repeats_code=True),
)
def read_share_group_state(
    ctx: RequestContext, request: ReadShareGroupStateRequest
) -> Parked[ReadShareGroupStateResponse]:
    """Answer once the records of the request are replicated."""
    return answered(ctx, READ, request)
