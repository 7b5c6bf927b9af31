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


def refused_ms(cluster: Cluster, broker: Broker, info: ConnectionInfo) -> int:
    """0 for a new connection that is served; for others, after how many ms it is closed.

    One too many of its address is closed late, so that a client that comes again at once does not
    come faster for it (ConnectionThrottledException).
    """
    throttling = cluster.quotas.throttling
    if throttling is None:
        return 0
    return throttling.connected(broker.node_id, info.client_host, cluster.now_ms())
