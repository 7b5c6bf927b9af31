"""DeleteShareGroupState (key 86), versions 0.

Generated from `schemas/delete_share_group_state.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class PartitionData(Struct, gc=False):
    partition: int = 0
    unknown_tags: UnknownTags = None


class DeleteStateData(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[PartitionData] = []
    unknown_tags: UnknownTags = None


class DeleteShareGroupStateRequest(Struct, gc=False):
    group_id: str = ""
    topics: list[DeleteStateData] = []
    unknown_tags: UnknownTags = None


class PartitionResult(Struct, gc=False):
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    unknown_tags: UnknownTags = None


class DeleteStateResult(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[PartitionResult] = []
    unknown_tags: UnknownTags = None


class DeleteShareGroupStateResponse(Struct, gc=False):
    results: list[DeleteStateResult] = []
    unknown_tags: UnknownTags = None
