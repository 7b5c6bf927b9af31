"""Fetch (key 1), versions 4-18.

Generated from `schemas/fetch.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, Records, UnknownTags


class ReplicaState(Struct, gc=False, frozen=True):
    replica_id: int = -1
    replica_epoch: int = -1
    unknown_tags: UnknownTags = None


class FetchPartition(Struct, gc=False):
    partition: int = 0
    current_leader_epoch: int = -1
    fetch_offset: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: bytes = ZERO_UUID
    high_watermark: int = 9223372036854775807
    unknown_tags: UnknownTags = None


class FetchTopic(Struct, gc=False):
    topic: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: list[FetchPartition] = []
    unknown_tags: UnknownTags = None


class ForgottenTopic(Struct, gc=False):
    topic: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class FetchRequest(Struct, gc=False):
    cluster_id: str | None = None
    replica_id: int = -1
    replica_state: ReplicaState = ReplicaState()
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = []
    rack_id: str = ""
    unknown_tags: UnknownTags = None


class EpochEndOffset(Struct, gc=False, frozen=True):
    epoch: int = -1
    end_offset: int = -1
    unknown_tags: UnknownTags = None


class LeaderIdAndEpoch(Struct, gc=False, frozen=True):
    leader_id: int = -1
    leader_epoch: int = -1
    unknown_tags: UnknownTags = None


class SnapshotId(Struct, gc=False, frozen=True):
    end_offset: int = -1
    epoch: int = -1
    unknown_tags: UnknownTags = None


class AbortedTransaction(Struct, gc=False):
    producer_id: int = 0
    first_offset: int = 0
    unknown_tags: UnknownTags = None


class PartitionData(Struct, gc=False):
    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEndOffset = EpochEndOffset()
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    snapshot_id: SnapshotId = SnapshotId()
    aborted_transactions: list[AbortedTransaction] | None = []
    preferred_read_replica: int = -1
    records: Records = None
    unknown_tags: UnknownTags = None


class FetchableTopicResponse(Struct, gc=False):
    topic: str = ""
    topic_id: bytes = ZERO_UUID
    partitions: list[PartitionData] = []
    unknown_tags: UnknownTags = None


class NodeEndpoint(Struct, gc=False):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    unknown_tags: UnknownTags = None


class FetchResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    session_id: int = 0
    responses: list[FetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
    unknown_tags: UnknownTags = None
