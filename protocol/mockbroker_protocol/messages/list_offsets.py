"""ListOffsets (key 2), versions 1-11.

Generated from `schemas/list_offsets.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class ListOffsetsPartition(Struct, gc=False):
    partition_index: int = 0
    current_leader_epoch: int = -1
    timestamp: int = 0
    unknown_tags: UnknownTags = None


class ListOffsetsTopic(Struct, gc=False):
    name: str = ""
    partitions: list[ListOffsetsPartition] = []
    unknown_tags: UnknownTags = None


class ListOffsetsRequest(Struct, gc=False):
    replica_id: int = 0
    isolation_level: int = 0
    topics: list[ListOffsetsTopic] = []
    timeout_ms: int = 0
    unknown_tags: UnknownTags = None


class ListOffsetsPartitionResponse(Struct, gc=False):
    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1
    unknown_tags: UnknownTags = None


class ListOffsetsTopicResponse(Struct, gc=False):
    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = []
    unknown_tags: UnknownTags = None


class ListOffsetsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    topics: list[ListOffsetsTopicResponse] = []
    unknown_tags: UnknownTags = None
