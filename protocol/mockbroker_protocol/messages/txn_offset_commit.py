"""TxnOffsetCommit (key 28), versions 0-5.

Generated from `schemas/txn_offset_commit.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class TxnOffsetCommitRequestPartition(Struct, gc=False):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""
    unknown_tags: UnknownTags = None


class TxnOffsetCommitRequestTopic(Struct, gc=False):
    name: str = ""
    partitions: list[TxnOffsetCommitRequestPartition] = []
    unknown_tags: UnknownTags = None


class TxnOffsetCommitRequest(Struct, gc=False):
    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: list[TxnOffsetCommitRequestTopic] = []
    unknown_tags: UnknownTags = None


class TxnOffsetCommitResponsePartition(Struct, gc=False):
    partition_index: int = 0
    error_code: int = 0
    unknown_tags: UnknownTags = None


class TxnOffsetCommitResponseTopic(Struct, gc=False):
    name: str = ""
    partitions: list[TxnOffsetCommitResponsePartition] = []
    unknown_tags: UnknownTags = None


class TxnOffsetCommitResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
    unknown_tags: UnknownTags = None
