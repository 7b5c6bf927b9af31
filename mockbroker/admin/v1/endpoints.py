"""All endpoints of `/v1`."""

from __future__ import annotations

from collections.abc import AsyncIterator

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
from mockbroker.admin.v1.api import Api
from mockbroker.admin.v1.endpoint import Call, Endpoint, Line


def endpoints(api: Api) -> list[Endpoint]:
    """Every endpoint, in the order of the document."""
    found = [
        *cluster.endpoints(api),
        *browse.endpoints(api),
        *topics.endpoints(api),
        *records.endpoints(api),
        *controller.endpoints(api),
        *coordinators.endpoints(api),
        *clients.endpoints(api),
        *groups.endpoints(api),
        *faults.endpoints(api),
        *cookbook.endpoints(api),
        *clock.endpoints(api),
        *journal.endpoints(api),
        *journal_entries.endpoints(api),
        *journal_entry.endpoints(api),
        *timeline.endpoints(api),
        *past.endpoints(api),
        *audit.endpoints(api),
        *about.endpoints(api),
        *snapshots.endpoints(api),
        *quiescence.endpoints(api),
    ]
    return [each if each.method == "GET" else _durable(api, each) for each in found]


def _durable(api: Api, endpoint: Endpoint) -> Endpoint:
    """The endpoint, whose answer waits for the data directory as a broker's response does."""

    async def call(arguments: Call) -> object:
        answer = await endpoint.call(arguments)
        await api.durable()
        return answer

    if endpoint.lines is None:
        return endpoint._replace(call=call)
    lines = endpoint.lines

    async def call_with_lines(arguments: Call, given: AsyncIterator[Line]) -> object:
        answer = await lines.call(arguments, given)
        await api.durable()
        return answer

    return endpoint._replace(call=call, lines=lines._replace(call=call_with_lines))
