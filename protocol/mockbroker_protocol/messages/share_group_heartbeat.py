"""ShareGroupHeartbeat (key 76), versions 1.

Generated from `schemas/share_group_heartbeat.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class ShareGroupHeartbeatRequest(Struct, gc=False):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    rack_id: str | None = None
    subscribed_topic_names: list[str] | None = None
    unknown_tags: UnknownTags = None


class TopicPartitions(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class Assignment(Struct, gc=False):
    topic_partitions: list[TopicPartitions] = []
    unknown_tags: UnknownTags = None


class ShareGroupHeartbeatResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None
    unknown_tags: UnknownTags = None
