"""WriteShareGroupState (key 85), versions 0-1.

Generated from `schemas/write_share_group_state.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class StateBatch(Struct, gc=False):
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0
    unknown_tags: UnknownTags = None


class PartitionData(Struct, gc=False):
    partition: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: list[StateBatch] = []
    unknown_tags: UnknownTags = None


class WriteStateData(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[PartitionData] = []
    unknown_tags: UnknownTags = None


class WriteShareGroupStateRequest(Struct, gc=False):
    group_id: str = ""
    topics: list[WriteStateData] = []
    unknown_tags: UnknownTags = None


class PartitionResult(Struct, gc=False):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    unknown_tags: UnknownTags = None


class WriteStateResult(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[PartitionResult] = []
    unknown_tags: UnknownTags = None


class WriteShareGroupStateResponse(Struct, gc=False):
    results: list[WriteStateResult] = []
    unknown_tags: UnknownTags = None
