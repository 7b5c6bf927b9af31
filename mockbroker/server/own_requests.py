"""Requests of the cluster's operator: a broker handles and journals them as those of a client.

They have no connection, so no rule, ACL or quota applies to them. Appended records leave the same
journal entries as records of a producer, so the audit covers them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from mockbroker.core.brokers.broker_life import RUNNING
from mockbroker.core.errors import ActionError, ApiError
from mockbroker.handlers.base import ConnectionInfo, Parked, RequestContext
from mockbroker.server.network.routes import route_of
from mockbroker_protocol import ApiKey
from mockbroker_protocol.headers import RequestHeader, encode_request_header

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster

CLIENT_ID = "mockbroker-admin"
NO_CONNECTION = 0  # connections are numbered from 1


async def send(cluster: Cluster, node_id: int, api: ApiKey, version: int, request: Any) -> Any:
    """The response of broker `node_id` to a request; a parked reply is awaited.

    Called in the cluster's run. Raises ActionError if the broker does not run.
    """
    broker = cluster.processes.get(node_id)
    if broker is None or broker.state != RUNNING:
        state = "stopped" if broker is None else broker.state
        raise ActionError(f"broker {node_id} does not answer: it is {state}")
    route = route_of((int(api), version))
    assert route is not None, (api, version)
    header = RequestHeader(int(api), version, 0, CLIENT_ID)
    head = encode_request_header(header)
    # A frame, as from a client: the handler writes offsets into it.
    frame = bytearray(b"".join((head, *route.request.encode(request))))
    received, _ = route.request.decode(memoryview(frame), len(head))
    now_ms = cluster.runtime.now_ms()
    info = ConnectionInfo(NO_CONNECTION, "", 0)
    listener = next(iter(broker.endpoints))
    context = RequestContext(cluster, broker, listener, header, info, now_ms)
    journal = cluster.runtime.journal
    if journal is not None:
        context.seq = journal.request(now_ms, node_id, NO_CONNECTION, frame)
    try:
        response: Any = route.api.handle(context, received)
    except ApiError as error:
        response = context.failure(received, error)
    if isinstance(response, Parked):
        response = await _completed(response)
    if journal is not None:
        journal.response(
            cluster.runtime.now_ms(),
            node_id,
            NO_CONNECTION,
            context.seq,
            int(api),
            version,
            0,
            route.response.encode(response),
        )
    return response


async def _completed(parked: Parked[Any]) -> Any:
    if not parked.done:
        event = trio.Event()
        parked.on_complete = event.set
        await event.wait()
    return parked.response
