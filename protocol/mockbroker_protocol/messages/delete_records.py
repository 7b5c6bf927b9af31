"""DeleteRecords (key 21), versions 0-2.

Generated from `schemas/delete_records.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class DeleteRecordsPartition(Struct, gc=False):
    partition_index: int = 0
    offset: int = 0
    unknown_tags: UnknownTags = None


class DeleteRecordsTopic(Struct, gc=False):
    name: str = ""
    partitions: list[DeleteRecordsPartition] = []
    unknown_tags: UnknownTags = None


class DeleteRecordsRequest(Struct, gc=False):
    topics: list[DeleteRecordsTopic] = []
    timeout_ms: int = 0
    unknown_tags: UnknownTags = None


class DeleteRecordsPartitionResult(Struct, gc=False):
    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0
    unknown_tags: UnknownTags = None


class DeleteRecordsTopicResult(Struct, gc=False):
    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = []
    unknown_tags: UnknownTags = None


class DeleteRecordsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    topics: list[DeleteRecordsTopicResult] = []
    unknown_tags: UnknownTags = None
