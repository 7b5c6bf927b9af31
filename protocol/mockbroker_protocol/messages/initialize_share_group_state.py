"""InitializeShareGroupState (key 83), versions 0.

Generated from `schemas/initialize_share_group_state.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class PartitionData(Struct, gc=False):
    partition: int = 0
    state_epoch: int = 0
    start_offset: int = 0
    unknown_tags: UnknownTags = None


class InitializeStateData(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[PartitionData] = []
    unknown_tags: UnknownTags = None


class InitializeShareGroupStateRequest(Struct, gc=False):
    group_id: str = ""
    topics: list[InitializeStateData] = []
    unknown_tags: UnknownTags = None


class PartitionResult(Struct, gc=False):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    unknown_tags: UnknownTags = None


class InitializeStateResult(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[PartitionResult] = []
    unknown_tags: UnknownTags = None


class InitializeShareGroupStateResponse(Struct, gc=False):
    results: list[InitializeStateResult] = []
    unknown_tags: UnknownTags = None
