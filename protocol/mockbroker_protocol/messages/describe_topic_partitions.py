"""DescribeTopicPartitions (key 75), versions 0.

Generated from `schemas/describe_topic_partitions.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class TopicRequest(Struct, gc=False):
    name: str = ""
    unknown_tags: UnknownTags = None


class RequestCursor(Struct, gc=False):
    topic_name: str = ""
    partition_index: int = 0
    unknown_tags: UnknownTags = None


class DescribeTopicPartitionsRequest(Struct, gc=False):
    topics: list[TopicRequest] = []
    response_partition_limit: int = 2000
    cursor: RequestCursor | None = None
    unknown_tags: UnknownTags = None


class DescribeTopicPartitionsResponsePartition(Struct, gc=False):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: list[int] = []
    isr_nodes: list[int] = []
    eligible_leader_replicas: list[int] | None = None
    last_known_elr: list[int] | None = None
    offline_replicas: list[int] = []
    unknown_tags: UnknownTags = None


class DescribeTopicPartitionsResponseTopic(Struct, gc=False):
    error_code: int = 0
    name: str | None = ""
    topic_id: bytes = ZERO_UUID
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    topic_authorized_operations: int = -2147483648
    unknown_tags: UnknownTags = None


class ResponseCursor(Struct, gc=False):
    topic_name: str = ""
    partition_index: int = 0
    unknown_tags: UnknownTags = None


class DescribeTopicPartitionsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: ResponseCursor | None = None
    unknown_tags: UnknownTags = None
