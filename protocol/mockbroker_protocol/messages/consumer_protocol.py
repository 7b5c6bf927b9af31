"""The blobs inside JoinGroup and SyncGroup of protocol type "consumer".

Generated from `schemas/consumer_protocol.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct


class TopicPartition(Struct, gc=False):
    topic: str = ""
    partitions: list[int] = []


class ConsumerProtocolSubscription(Struct, gc=False):
    topics: list[str] = []
    user_data: bytes | None = None
    owned_partitions: list[TopicPartition] = []
    generation_id: int = -1
    rack_id: str | None = None


class ConsumerProtocolAssignment(Struct, gc=False):
    assigned_partitions: list[TopicPartition] = []
    user_data: bytes | None = None
