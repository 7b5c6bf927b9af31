"""Connections that are left alone for a while because of a quota, on the cluster's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from mockbroker.core.broker import Broker
    from mockbroker.core.cluster import Cluster
    from mockbroker.handlers.base import ConnectionInfo


async def left_alone(cluster: Cluster, wait_ms: int) -> None:
    """Return when so many ms of the cluster's time have passed."""
    over = trio.Event()
    timer = cluster.timers.call_at(cluster.now_ms() + wait_ms, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()


async def admitted(cluster: Cluster, broker: Broker, info: ConnectionInfo) -> bool:
    """Whether a new connection is served.

    One too many of its address is not: it is closed, but late, so that a client that comes again
    at once does not come faster for it (ConnectionThrottledException).
    """
    throttling = cluster.quotas.throttling
    if throttling is None:
        return True
    wait_ms = throttling.connected(broker.node_id, info.client_host, cluster.now_ms())
    if wait_ms == 0:
        return True
    await left_alone(cluster, wait_ms)
    return False
