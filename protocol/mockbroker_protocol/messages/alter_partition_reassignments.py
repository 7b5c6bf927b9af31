"""AlterPartitionReassignments (key 45), versions 0-1.

Generated from `schemas/alter_partition_reassignments.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class ReassignablePartition(Struct, gc=False):
    partition_index: int = 0
    replicas: list[int] | None = None
    unknown_tags: UnknownTags = None


class ReassignableTopic(Struct, gc=False):
    name: str = ""
    partitions: list[ReassignablePartition] = []
    unknown_tags: UnknownTags = None


class AlterPartitionReassignmentsRequest(Struct, gc=False):
    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: list[ReassignableTopic] = []
    unknown_tags: UnknownTags = None


class ReassignablePartitionResponse(Struct, gc=False):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""
    unknown_tags: UnknownTags = None


class ReassignableTopicResponse(Struct, gc=False):
    name: str = ""
    partitions: list[ReassignablePartitionResponse] = []
    unknown_tags: UnknownTags = None


class AlterPartitionReassignmentsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True
    error_code: int = 0
    error_message: str | None = ""
    responses: list[ReassignableTopicResponse] = []
    unknown_tags: UnknownTags = None
