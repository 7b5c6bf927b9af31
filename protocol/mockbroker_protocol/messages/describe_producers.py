"""DescribeProducers (key 61), versions 0.

Generated from `schemas/describe_producers.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class TopicRequest(Struct, gc=False):
    name: str = ""
    partition_indexes: list[int] = []
    unknown_tags: UnknownTags = None


class DescribeProducersRequest(Struct, gc=False):
    topics: list[TopicRequest] = []
    unknown_tags: UnknownTags = None


class ProducerState(Struct, gc=False):
    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1
    unknown_tags: UnknownTags = None


class PartitionResponse(Struct, gc=False):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: list[ProducerState] = []
    unknown_tags: UnknownTags = None


class TopicResponse(Struct, gc=False):
    name: str = ""
    partitions: list[PartitionResponse] = []
    unknown_tags: UnknownTags = None


class DescribeProducersResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    topics: list[TopicResponse] = []
    unknown_tags: UnknownTags = None
