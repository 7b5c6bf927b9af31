"""AlterPartition (key 56), versions 2-3.

Generated from `schemas/alter_partition.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class BrokerState(Struct, gc=False):
    broker_id: int = 0
    broker_epoch: int = -1
    unknown_tags: UnknownTags = None


class RequestPartitionData(Struct, gc=False):
    partition_index: int = 0
    leader_epoch: int = 0
    new_isr: list[int] = []
    new_isr_with_epochs: list[BrokerState] = []
    leader_recovery_state: int = 0
    partition_epoch: int = 0
    unknown_tags: UnknownTags = None


class RequestTopicData(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[RequestPartitionData] = []
    unknown_tags: UnknownTags = None


class AlterPartitionRequest(Struct, gc=False):
    broker_id: int = 0
    broker_epoch: int = -1
    topics: list[RequestTopicData] = []
    unknown_tags: UnknownTags = None


class ResponsePartitionData(Struct, gc=False):
    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    isr: list[int] = []
    leader_recovery_state: int = 0
    partition_epoch: int = 0
    unknown_tags: UnknownTags = None


class ResponseTopicData(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[ResponsePartitionData] = []
    unknown_tags: UnknownTags = None


class AlterPartitionResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    topics: list[ResponseTopicData] = []
    unknown_tags: UnknownTags = None
