"""Clients by their ids: what they asked for, and how long it took."""

from __future__ import annotations

from mockbroker.admin.v1.api import Api
from mockbroker.admin.v1.endpoint import Call, Endpoint
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.core.views.clients import ClientCounts, ClientView

PAGE_ENTRIES = 2_000  # counted at one go, between the requests of clients


def endpoints(api: Api) -> list[Endpoint]:
    async def clients(call: Call) -> list[ClientView]:  # noqa: ARG001
        journal = api.server.cluster.journal
        if journal is None:
            raise ProblemError(
                409, "no journal", "this cluster keeps none: its journal_bytes are 0"
            )
        counts, after, last = ClientCounts(), 0, journal.last_seq
        while after < last:
            since = after
            _, entries = await api.cluster(lambda _, at=since: journal.since(at, PAGE_ENTRIES))  # type: ignore[misc]
            if not entries:
                break
            counts.take(entries)
            after = entries[-1].seq
        return counts.views()

    return [
        Endpoint(
            "GET",
            "/v1/clients",
            "What clients asked for, and how long that took",
            clients,
            list[ClientView],
            problems=(409,),
        )
    ]
