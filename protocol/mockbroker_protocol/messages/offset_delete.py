"""OffsetDelete (key 47), versions 0.

Generated from `schemas/offset_delete.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct


class OffsetDeleteRequestPartition(Struct, gc=False):
    partition_index: int = 0


class OffsetDeleteRequestTopic(Struct, gc=False):
    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = []


class OffsetDeleteRequest(Struct, gc=False):
    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = []


class OffsetDeleteResponsePartition(Struct, gc=False):
    partition_index: int = 0
    error_code: int = 0


class OffsetDeleteResponseTopic(Struct, gc=False):
    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = []


class OffsetDeleteResponse(Struct, gc=False):
    error_code: int = 0
    throttle_time_ms: int = 0
    topics: list[OffsetDeleteResponseTopic] = []
