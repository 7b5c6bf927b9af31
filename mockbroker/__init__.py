"""A whole Kafka cluster in one Python process, for tests.

    from mockbroker import Cluster

    with Cluster(brokers=3, topics={"orders": 4}) as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})

Importing this package costs next to nothing; the broker is imported with the first name from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockbroker.api.aio.cluster import AsyncCluster
    from mockbroker.api.cluster import Cluster
    from mockbroker.api.expected import ExpectedRecord
    from mockbroker.core.journal.events import JournalEvent
    from mockbroker.core.views.stored import StoredRecord
    from mockbroker.server.config import ListenerSpec, SeedRecord, TopicSpec

__all__ = [
    "AsyncCluster",
    "Cluster",
    "ExpectedRecord",
    "JournalEvent",
    "ListenerSpec",
    "SeedRecord",
    "StoredRecord",
    "TopicSpec",
]

_HOMES = {
    "AsyncCluster": "mockbroker.api.aio.cluster",
    "Cluster": "mockbroker.api.cluster",
    "ExpectedRecord": "mockbroker.api.expected",
    "JournalEvent": "mockbroker.core.journal.events",
    "ListenerSpec": "mockbroker.server.config",
    "SeedRecord": "mockbroker.server.config",
    "StoredRecord": "mockbroker.core.views.stored",
    "TopicSpec": "mockbroker.server.config",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
