"""Clients by their ids: their requests, bytes and Fetch times."""

from __future__ import annotations

from mockbroker.admin.v1.api import Api
from mockbroker.admin.v1.endpoint import Call, Endpoint
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.core.views.clients import ClientCounts, ClientView

PAGE_ENTRIES = 2_000  # counted without a pause for requests of clients


def endpoints(api: Api) -> list[Endpoint]:
    async def clients(call: Call) -> list[ClientView]:  # noqa: ARG001
        journal = api.server.cluster.runtime.journal
        if journal is None:
            raise ProblemError(409, "no journal", "journal_bytes is 0")
        counts, after, last = ClientCounts(), 0, journal.last_seq
        while after < last:
            since = after
            _, entries = await api.cluster(lambda _, at=since: journal.since(at, PAGE_ENTRIES))  # type: ignore[misc]
            if not entries:
                break
            counts.count(entries)
            after = entries[-1].seq
        return counts.views()

    return [
        Endpoint(
            "GET",
            "/v1/clients",
            "Requests, bytes and Fetch times by client id",
            clients,
            list[ClientView],
            problems=(409,),
        )
    ]
