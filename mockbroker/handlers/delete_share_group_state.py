"""DeleteShareGroupState (86): delete the states of share partitions."""

from __future__ import annotations

from mockbroker.core.share.operations import DELETE
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker.handlers.share_states import BY_BROKERS, answered
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)


@api(
    ApiKey.DELETE_SHARE_GROUP_STATE,
    versions=(0, 0),
    authorize=BY_BROKERS,
)
def delete_share_group_state(
    ctx: RequestContext, request: DeleteShareGroupStateRequest
) -> Parked[DeleteShareGroupStateResponse]:
    """Answer once the records of the request are replicated."""
    return answered(ctx, DELETE, request)
