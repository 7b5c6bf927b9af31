"""Clients by their ids: their requests, bytes and Fetch times."""

from __future__ import annotations

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.core.views.clients import ClientCounts, ClientView

PAGE_ENTRIES = 2_000  # counted without a pause for requests of clients

endpoints = ApiEndpoints()


@endpoints.get("/v1/clients", "Requests, bytes and Fetch times by client id", problems=(409,))
async def clients(backend: AdminBackend, _call: EndpointCall) -> list[ClientView]:
    journal = backend.server.cluster.runtime.journal
    if journal is None:
        raise ProblemError(409, "no journal", "journal_bytes is 0")
    counts, after, last = ClientCounts(), 0, journal.last_seq
    while after < last:
        since = after
        _, entries = await backend.cluster(lambda _, at=since: journal.since(at, PAGE_ENTRIES))  # type: ignore[misc]
        if not entries:
            break
        counts.count(entries)
        after = entries[-1].seq
    return counts.views()
