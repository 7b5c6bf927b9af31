"""WriteShareGroupState (85): merge acknowledgements into the states of share partitions."""

from __future__ import annotations

from mockbroker.core.share.operations import WRITE
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker.handlers.refusals import Refusal
from mockbroker.handlers.share_states import BY_BROKERS, answered
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)


@api(
    ApiKey.WRITE_SHARE_GROUP_STATE,
    versions=(0, 1),
    authorize=BY_BROKERS,
    refusal=Refusal(repeats_code=True),
)
def write_share_group_state(
    ctx: RequestContext, request: WriteShareGroupStateRequest
) -> Parked[WriteShareGroupStateResponse]:
    """Answer once the records of the request are replicated."""
    return answered(ctx, WRITE, request)
