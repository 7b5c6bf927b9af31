"""DescribeQuorum (key 55), versions 0-2.

Generated from `schemas/describe_quorum.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class RequestPartitionData(Struct, gc=False):
    partition_index: int = 0
    unknown_tags: UnknownTags = None


class RequestTopicData(Struct, gc=False):
    topic_name: str = ""
    partitions: list[RequestPartitionData] = []
    unknown_tags: UnknownTags = None


class DescribeQuorumRequest(Struct, gc=False):
    topics: list[RequestTopicData] = []
    unknown_tags: UnknownTags = None


class ReplicaState(Struct, gc=False):
    replica_id: int = 0
    replica_directory_id: bytes = ZERO_UUID
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1
    unknown_tags: UnknownTags = None


class ResponsePartitionData(Struct, gc=False):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: list[ReplicaState] = []
    observers: list[ReplicaState] = []
    unknown_tags: UnknownTags = None


class ResponseTopicData(Struct, gc=False):
    topic_name: str = ""
    partitions: list[ResponsePartitionData] = []
    unknown_tags: UnknownTags = None


class Listener(Struct, gc=False):
    name: str = ""
    host: str = ""
    port: int = 0
    unknown_tags: UnknownTags = None


class Node(Struct, gc=False):
    node_id: int = 0
    listeners: list[Listener] = []
    unknown_tags: UnknownTags = None


class DescribeQuorumResponse(Struct, gc=False):
    error_code: int = 0
    error_message: str | None = ""
    topics: list[ResponseTopicData] = []
    nodes: list[Node] = []
    unknown_tags: UnknownTags = None
