"""All endpoints of `/v1`."""

from __future__ import annotations

from mockbroker.admin.v1 import (
    clients,
    clock,
    cluster,
    controller,
    coordinators,
    faults,
    groups,
    journal,
    journal_entries,
    quiescence,
    snapshots,
    topics,
)
from mockbroker.admin.v1.api import Api
from mockbroker.admin.v1.endpoint import Endpoint


def endpoints(api: Api) -> list[Endpoint]:
    """Every endpoint, in the order of the document."""
    return [
        *cluster.endpoints(api),
        *topics.endpoints(api),
        *controller.endpoints(api),
        *coordinators.endpoints(api),
        *clients.endpoints(api),
        *groups.endpoints(api),
        *faults.endpoints(api),
        *clock.endpoints(api),
        *journal.endpoints(api),
        *journal_entries.endpoints(api),
        *snapshots.endpoints(api),
        *quiescence.endpoints(api),
    ]
