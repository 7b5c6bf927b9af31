"""OffsetCommit (key 8), versions 2-10.

Generated from `schemas/offset_commit.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class OffsetCommitRequestPartition(Struct, gc=False):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""
    unknown_tags: UnknownTags = None


class OffsetCommitRequestTopic(Struct, gc=False):
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: list[OffsetCommitRequestPartition] = []
    unknown_tags: UnknownTags = None


class OffsetCommitRequest(Struct, gc=False):
    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    topics: list[OffsetCommitRequestTopic] = []
    unknown_tags: UnknownTags = None


class OffsetCommitResponsePartition(Struct, gc=False):
    partition_index: int = 0
    error_code: int = 0
    unknown_tags: UnknownTags = None


class OffsetCommitResponseTopic(Struct, gc=False):
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: list[OffsetCommitResponsePartition] = []
    unknown_tags: UnknownTags = None


class OffsetCommitResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    topics: list[OffsetCommitResponseTopic] = []
    unknown_tags: UnknownTags = None
