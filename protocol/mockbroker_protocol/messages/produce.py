"""Produce (key 0), versions 3-13.

Generated from `schemas/produce.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, Records, UnknownTags


class PartitionProduceData(Struct, gc=False):
    index: int = 0
    records: Records = None
    unknown_tags: UnknownTags = None


class TopicProduceData(Struct, gc=False):
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partition_data: list[PartitionProduceData] = []
    unknown_tags: UnknownTags = None


class ProduceRequest(Struct, gc=False):
    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: list[TopicProduceData] = []
    unknown_tags: UnknownTags = None


class BatchIndexAndErrorMessage(Struct, gc=False):
    batch_index: int = 0
    batch_index_error_message: str | None = None
    unknown_tags: UnknownTags = None


class LeaderIdAndEpoch(Struct, gc=False, frozen=True):
    leader_id: int = -1
    leader_epoch: int = -1
    unknown_tags: UnknownTags = None


class PartitionProduceResponse(Struct, gc=False):
    index: int = 0
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: list[BatchIndexAndErrorMessage] = []
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    unknown_tags: UnknownTags = None


class TopicProduceResponse(Struct, gc=False):
    name: str = ""
    topic_id: bytes = ZERO_UUID
    partition_responses: list[PartitionProduceResponse] = []
    unknown_tags: UnknownTags = None


class NodeEndpoint(Struct, gc=False):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    unknown_tags: UnknownTags = None


class ProduceResponse(Struct, gc=False):
    responses: list[TopicProduceResponse] = []
    throttle_time_ms: int = 0
    node_endpoints: list[NodeEndpoint] = []
    unknown_tags: UnknownTags = None
