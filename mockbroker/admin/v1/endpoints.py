"""All endpoints of `/v1`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mockbroker.admin.v1 import (
    about,
    audit,
    browse,
    clients,
    clock,
    cluster,
    controller,
    cookbook,
    coordinators,
    faults,
    groups,
    journal,
    journal_entries,
    journal_entry,
    past,
    quiescence,
    records,
    snapshots,
    timeline,
    topics,
)
from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.endpoint import Endpoint

# In the order of the document.
ENDPOINTS: Sequence[Endpoint[AdminBackend]] = (
    *cluster.endpoints,
    *browse.endpoints,
    *topics.endpoints,
    *records.endpoints,
    *controller.endpoints,
    *coordinators.endpoints,
    *clients.endpoints,
    *groups.endpoints,
    *faults.endpoints,
    *cookbook.endpoints,
    *clock.endpoints,
    *journal.endpoints,
    *journal_entries.endpoints,
    *journal_entry.endpoints,
    *timeline.endpoints,
    *past.endpoints,
    *audit.endpoints,
    *about.endpoints,
    *snapshots.endpoints,
    *quiescence.endpoints,
)
BY_KEY: Mapping[tuple[str, str], Endpoint[AdminBackend]] = {each.key: each for each in ENDPOINTS}
