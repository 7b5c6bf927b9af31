"""DescribeShareGroupOffsets (key 90), versions 0-1.

Generated from `schemas/describe_share_group_offsets.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class DescribeShareGroupOffsetsRequestTopic(Struct, gc=False):
    topic_name: str = ""
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class DescribeShareGroupOffsetsRequestGroup(Struct, gc=False):
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = []
    unknown_tags: UnknownTags = None


class DescribeShareGroupOffsetsRequest(Struct, gc=False):
    groups: list[DescribeShareGroupOffsetsRequestGroup] = []
    unknown_tags: UnknownTags = None


class DescribeShareGroupOffsetsResponsePartition(Struct, gc=False):
    partition_index: int = 0
    start_offset: int = 0
    leader_epoch: int = 0
    lag: int = -1
    error_code: int = 0
    error_message: str | None = None
    unknown_tags: UnknownTags = None


class DescribeShareGroupOffsetsResponseTopic(Struct, gc=False):
    topic_name: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = []
    unknown_tags: UnknownTags = None


class DescribeShareGroupOffsetsResponseGroup(Struct, gc=False):
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = []
    error_code: int = 0
    error_message: str | None = None
    unknown_tags: UnknownTags = None


class DescribeShareGroupOffsetsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
    unknown_tags: UnknownTags = None
