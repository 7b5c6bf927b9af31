"""OffsetForLeaderEpoch (key 23), versions 2-4.

Generated from `schemas/offset_for_leader_epoch.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class OffsetForLeaderPartition(Struct, gc=False):
    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0
    unknown_tags: UnknownTags = None


class OffsetForLeaderTopic(Struct, gc=False):
    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = []
    unknown_tags: UnknownTags = None


class OffsetForLeaderEpochRequest(Struct, gc=False):
    replica_id: int = -2
    topics: list[OffsetForLeaderTopic] = []
    unknown_tags: UnknownTags = None


class EpochEndOffset(Struct, gc=False):
    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1
    unknown_tags: UnknownTags = None


class OffsetForLeaderTopicResult(Struct, gc=False):
    topic: str = ""
    partitions: list[EpochEndOffset] = []
    unknown_tags: UnknownTags = None


class OffsetForLeaderEpochResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    topics: list[OffsetForLeaderTopicResult] = []
    unknown_tags: UnknownTags = None
