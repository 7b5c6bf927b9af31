"""ReadShareGroupStateSummary (key 87), versions 0-1.

Generated from `schemas/read_share_group_state_summary.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class PartitionData(Struct, gc=False):
    partition: int = 0
    leader_epoch: int = 0
    unknown_tags: UnknownTags = None


class ReadStateSummaryData(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[PartitionData] = []
    unknown_tags: UnknownTags = None


class ReadShareGroupStateSummaryRequest(Struct, gc=False):
    group_id: str = ""
    topics: list[ReadStateSummaryData] = []
    unknown_tags: UnknownTags = None


class PartitionResult(Struct, gc=False):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    unknown_tags: UnknownTags = None


class ReadStateSummaryResult(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[PartitionResult] = []
    unknown_tags: UnknownTags = None


class ReadShareGroupStateSummaryResponse(Struct, gc=False):
    results: list[ReadStateSummaryResult] = []
    unknown_tags: UnknownTags = None
