"""ShareFetch (key 78), versions 1-2.

Generated from `schemas/share_fetch.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, Records, UnknownTags


class AcknowledgementBatch(Struct, gc=False):
    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = []
    unknown_tags: UnknownTags = None


class FetchPartition(Struct, gc=False):
    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = []
    unknown_tags: UnknownTags = None


class FetchTopic(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[FetchPartition] = []
    unknown_tags: UnknownTags = None


class ForgottenTopic(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class ShareFetchRequest(Struct, gc=False):
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    max_records: int = 0
    batch_size: int = 0
    share_acquire_mode: int = 0
    is_renew_ack: bool = False
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = []
    unknown_tags: UnknownTags = None


class LeaderIdAndEpoch(Struct, gc=False, frozen=True):
    leader_id: int = 0
    leader_epoch: int = 0
    unknown_tags: UnknownTags = None


class AcquiredRecords(Struct, gc=False):
    first_offset: int = 0
    last_offset: int = 0
    delivery_count: int = 0
    unknown_tags: UnknownTags = None


class PartitionData(Struct, gc=False):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    acknowledge_error_code: int = 0
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    records: Records = None
    acquired_records: list[AcquiredRecords] = []
    unknown_tags: UnknownTags = None


class ShareFetchableTopicResponse(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[PartitionData] = []
    unknown_tags: UnknownTags = None


class NodeEndpoint(Struct, gc=False):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    unknown_tags: UnknownTags = None


class ShareFetchResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareFetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
    unknown_tags: UnknownTags = None
