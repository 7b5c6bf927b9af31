"""AlterShareGroupOffsets (key 91), versions 0.

Generated from `schemas/alter_share_group_offsets.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class AlterShareGroupOffsetsRequestPartition(Struct, gc=False):
    partition_index: int = 0
    start_offset: int = 0
    unknown_tags: UnknownTags = None


class AlterShareGroupOffsetsRequestTopic(Struct, gc=False):
    topic_name: str = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = []
    unknown_tags: UnknownTags = None


class AlterShareGroupOffsetsRequest(Struct, gc=False):
    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = []
    unknown_tags: UnknownTags = None


class AlterShareGroupOffsetsResponsePartition(Struct, gc=False):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    unknown_tags: UnknownTags = None


class AlterShareGroupOffsetsResponseTopic(Struct, gc=False):
    topic_name: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: list[AlterShareGroupOffsetsResponsePartition] = []
    unknown_tags: UnknownTags = None


class AlterShareGroupOffsetsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = []
    unknown_tags: UnknownTags = None
