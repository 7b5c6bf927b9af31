"""InitializeShareGroupState (83): begin the states of share partitions."""

from __future__ import annotations

from mockbroker.core.share.operations import INITIALIZE
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker.handlers.share_states import BY_BROKERS, answered
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)


@api(
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    versions=(0, 0),
    authorize=BY_BROKERS,
)
def initialize_share_group_state(
    ctx: RequestContext, request: InitializeShareGroupStateRequest
) -> Parked[InitializeShareGroupStateResponse]:
    """Answer once the records of the request are replicated."""
    return answered(ctx, INITIALIZE, request)
