"""The common part of the share coordinator's APIs (KIP-932). Brokers send them: `share.persister`.

An answer is sent once all that the coordinator has written is replicated.
"""

from __future__ import annotations

from mockbroker.core.security.acls import AclOperation
from mockbroker.core.share.operations import A, Q, StateOperation
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import Parked, RequestContext

BY_BROKERS = clusterwide(
    AclOperation.CLUSTER_ACTION, otherwise=" for every partition", repeats_code=True
)


def answered(ctx: RequestContext, operation: StateOperation[Q, A], request: Q) -> Parked[A]:
    """The answer of this broker's share coordinator."""
    parked: Parked[A] = Parked()
    ctx.broker.share_coordinator.handle(operation, request, parked.complete)
    return parked
