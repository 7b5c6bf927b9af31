"""ShareAcknowledge (key 79), versions 1-2.

Generated from `schemas/share_acknowledge.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class AcknowledgementBatch(Struct, gc=False):
    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = []
    unknown_tags: UnknownTags = None


class AcknowledgePartition(Struct, gc=False):
    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = []
    unknown_tags: UnknownTags = None


class AcknowledgeTopic(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[AcknowledgePartition] = []
    unknown_tags: UnknownTags = None


class ShareAcknowledgeRequest(Struct, gc=False):
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    is_renew_ack: bool = False
    topics: list[AcknowledgeTopic] = []
    unknown_tags: UnknownTags = None


class LeaderIdAndEpoch(Struct, gc=False, frozen=True):
    leader_id: int = 0
    leader_epoch: int = 0
    unknown_tags: UnknownTags = None


class PartitionData(Struct, gc=False):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    unknown_tags: UnknownTags = None


class ShareAcknowledgeTopicResponse(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[PartitionData] = []
    unknown_tags: UnknownTags = None


class NodeEndpoint(Struct, gc=False):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    unknown_tags: UnknownTags = None


class ShareAcknowledgeResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareAcknowledgeTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
    unknown_tags: UnknownTags = None
