"""ConsumerGroupHeartbeat (key 68), versions 0-1.

Generated from `schemas/consumer_group_heartbeat.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class RequestTopicPartitions(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class ConsumerGroupHeartbeatRequest(Struct, gc=False):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: list[RequestTopicPartitions] | None = None
    unknown_tags: UnknownTags = None


class ResponseTopicPartitions(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class Assignment(Struct, gc=False):
    topic_partitions: list[ResponseTopicPartitions] = []
    unknown_tags: UnknownTags = None


class ConsumerGroupHeartbeatResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None
    unknown_tags: UnknownTags = None
