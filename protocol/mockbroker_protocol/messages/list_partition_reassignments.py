"""ListPartitionReassignments (key 46), versions 0.

Generated from `schemas/list_partition_reassignments.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class ListPartitionReassignmentsTopics(Struct, gc=False):
    name: str = ""
    partition_indexes: list[int] = []
    unknown_tags: UnknownTags = None


class ListPartitionReassignmentsRequest(Struct, gc=False):
    timeout_ms: int = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None
    unknown_tags: UnknownTags = None


class OngoingPartitionReassignment(Struct, gc=False):
    partition_index: int = 0
    replicas: list[int] = []
    adding_replicas: list[int] = []
    removing_replicas: list[int] = []
    unknown_tags: UnknownTags = None


class OngoingTopicReassignment(Struct, gc=False):
    name: str = ""
    partitions: list[OngoingPartitionReassignment] = []
    unknown_tags: UnknownTags = None


class ListPartitionReassignmentsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    topics: list[OngoingTopicReassignment] = []
    unknown_tags: UnknownTags = None
