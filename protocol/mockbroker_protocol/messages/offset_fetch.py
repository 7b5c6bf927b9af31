"""OffsetFetch (key 9), versions 1-10.

Generated from `schemas/offset_fetch.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class OffsetFetchRequestTopic(Struct, gc=False):
    name: str = ""
    partition_indexes: list[int] = []
    unknown_tags: UnknownTags = None


class OffsetFetchRequestTopics(Struct, gc=False):
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partition_indexes: list[int] = []
    unknown_tags: UnknownTags = None


class OffsetFetchRequestGroup(Struct, gc=False):
    group_id: str = ""
    member_id: str | None = None
    member_epoch: int = -1
    topics: list[OffsetFetchRequestTopics] | None = []
    unknown_tags: UnknownTags = None


class OffsetFetchRequest(Struct, gc=False):
    group_id: str = ""
    topics: list[OffsetFetchRequestTopic] | None = []
    groups: list[OffsetFetchRequestGroup] = []
    require_stable: bool = False
    unknown_tags: UnknownTags = None


class OffsetFetchResponsePartition(Struct, gc=False):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0
    unknown_tags: UnknownTags = None


class OffsetFetchResponseTopic(Struct, gc=False):
    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = []
    unknown_tags: UnknownTags = None


class OffsetFetchResponsePartitions(Struct, gc=False):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0
    unknown_tags: UnknownTags = None


class OffsetFetchResponseTopics(Struct, gc=False):
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: list[OffsetFetchResponsePartitions] = []
    unknown_tags: UnknownTags = None


class OffsetFetchResponseGroup(Struct, gc=False):
    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = []
    error_code: int = 0
    unknown_tags: UnknownTags = None


class OffsetFetchResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    topics: list[OffsetFetchResponseTopic] = []
    error_code: int = 0
    groups: list[OffsetFetchResponseGroup] = []
    unknown_tags: UnknownTags = None
