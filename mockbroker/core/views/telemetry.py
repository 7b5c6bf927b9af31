"""Metrics that clients pushed (KIP-714)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster


class TelemetryView(msgspec.Struct, frozen=True):
    """One number of a push. `kind` is "gauge" or "sum"; `time_ms` is when the broker got it, by the
    cluster's clock. `client` has the attributes by which subscriptions select clients.
    """

    name: str
    kind: str
    value: float
    attributes: dict[str, str]
    time_ms: int
    broker: int
    instance_id: str
    client: dict[str, str]


def telemetry_views(cluster: Cluster) -> list[TelemetryView]:
    """Every number that is kept, the oldest push first."""
    return [
        TelemetryView(
            name=point.name,
            kind=point.kind,
            value=point.value,
            attributes=point.attributes,
            time_ms=push.time_ms,
            broker=push.broker_id,
            instance_id=push.instance_id,
            client=dict(push.attributes),
        )
        for push, point in cluster.telemetry.points()
    ]
