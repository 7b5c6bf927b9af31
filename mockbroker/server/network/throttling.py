"""Throttled connections: closed late, or not read for a time (KIP-219), on the cluster's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from mockbroker.core.brokers.broker import Broker
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.runtime import Runtime
    from mockbroker.handlers.base import ConnectionInfo


async def sleep_ms(runtime: Runtime, wait_ms: int) -> None:
    """Sleep for `wait_ms` of the cluster's time."""
    over = trio.Event()
    timer = runtime.timers.call_at(runtime.now_ms() + wait_ms, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()


def connection_throttle_ms(cluster: Cluster, broker: Broker, info: ConnectionInfo) -> int:
    """The ms after which a new connection is closed, because its address has too many; else 0.

    The delay keeps a client that reconnects at once from connecting faster
    (ConnectionThrottledException).
    """
    throttling = cluster.quotas.throttling
    if throttling is None:
        return 0
    return throttling.connected(broker.node_id, info.client_host, cluster.runtime.now_ms())
